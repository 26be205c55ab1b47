//! An allocator that counts, for tests of what allocates how much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting what this thread asks for.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TOTAL: Cell<isize> = const { Cell::new(0) };
}

fn count(freed: usize, taken: usize) {
    LIVE.set(LIVE.get() + taken as isize - freed as isize);
    PEAK.set(PEAK.get().max(LIVE.get()));
    TOTAL.set(TOTAL.get() + taken as isize);
}

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract is the same;
// counting touches only cells of this thread that need no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist while the contents move.
        count(0, size);
        count(layout.size(), 0);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `body` makes, and the peak and total of what it asks for.
pub(crate) fn asked<T>(body: impl FnOnce() -> T) -> (T, usize, usize) {
    LIVE.set(0);
    PEAK.set(0);
    TOTAL.set(0);
    let made = body();
    (made, PEAK.get() as usize, TOTAL.get() as usize)
}
