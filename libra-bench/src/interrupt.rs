//! Ctrl-C: the case at hand ends, what is done is shown.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C asks for an end; a second one does not wait for it.
pub(crate) fn listen() {
    let handler = || {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(exit::INTERRUPTED.into());
        }
    };
    // Without a handler Ctrl-C ends the process at once, which is no reason to refuse work.
    let _ = ctrlc::set_handler(handler);
}

/// Whether the user asked for an end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
