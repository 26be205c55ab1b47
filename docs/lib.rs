//! Book.
