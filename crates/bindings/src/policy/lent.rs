//! The context of a decision, lent to Python for the duration of a call.
//!
//! A Python object has no lifetime, so a view cannot borrow the context. It has a pointer, behind a lock, and [`lend`]
//! removes the pointer when the call ends. A use after that finds nothing, and no use can overlap the end.

#![allow(unsafe_code, reason = "an object of Python cannot borrow, and a copy of the ledger would be slow")]

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use leeward_placement::Context;

/// Pointer to a lent context, whose lifetimes are unknown to the compiler.
struct Pointer(NonNull<Context<'static, 'static>>);

// SAFETY: a context may be used in any thread, which the function below checks. The pointer is used under a lock only, by
// one thread at a time, while the function that owns the borrow waits in `lend`.
unsafe impl Send for Pointer {}

const _: fn() = || {
    fn check<T: Send>() {}
    check::<Context<'static, 'static>>();
};

/// A context while it is lent; empty afterwards.
pub struct Lent(Mutex<Option<Pointer>>);

impl Lent {
    /// Calls `read` with the context; `None` after the end of the call for which it was lent. `read` must not call
    /// Python, which could use this context again and would wait for itself.
    pub fn with<R>(&self, read: impl FnOnce(&mut Context<'_, '_>) -> R) -> Option<R> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Pointer(context) = slot.as_mut()?;
        // SAFETY: `lend` has an exclusive borrow of the context until it has removed the pointer, for which it needs
        // the lock that is held here. `read` takes a context of any lifetimes, so no part of it can outlive the call.
        Some(read(unsafe { context.as_mut() }))
    }
}

/// Calls `call` with the context, which ends with the call, also if it panics.
pub fn lend<R>(context: &mut Context<'_, '_>, call: impl FnOnce(&Arc<Lent>) -> R) -> R {
    let pointer = NonNull::from(context).cast::<Context<'static, 'static>>();
    let lent = Arc::new(Lent(Mutex::new(Some(Pointer(pointer)))));
    let _end = End(&lent);
    call(&lent)
}

/// Removes the pointer when it is dropped.
struct End<'a>(&'a Lent);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
