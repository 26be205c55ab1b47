//! Asking and showing.
