//! Allocations of a thread. A test whose global allocator is [`Counting`] counts them.

#![allow(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait; this allocator forwards to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of allocations of this thread. Other threads belong to the test harness, or to other parts of the test.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts allocations.
#[derive(Debug)]
pub struct Counting;

impl Counting {
    fn count() {
        // The counter does not allocate and has no destructor, so it lives as long as its thread.
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: all three functions pass their arguments to `System` unchanged and return its result, so `System` upholds the
// contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count();
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract; `block` comes from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        Counting::count();
        // SAFETY: the caller upholds the contract; `block` comes from `System`.
        unsafe { System.realloc(block, layout, bytes) }
    }
}

/// Number of allocations that `work` makes in the current thread: 0 if [`Counting`] is not the global allocator.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static COUNTING: Counting = Counting;

    #[test]
    fn the_allocation_counter_counts() {
        assert_eq!(allocations(|| drop(std::hint::black_box(Vec::<u64>::with_capacity(7)))), 1);
        assert_eq!(allocations(|| assert_eq!(std::hint::black_box(7), 7)), 0);
    }
}
