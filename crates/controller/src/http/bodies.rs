//! Memory limit for request bodies, over all requests together. With the largest body on every allowed connection, the
//! bodies would exceed the memory of a machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all bodies in memory.
pub struct Bodies {
    most: usize,
    held: AtomicUsize,
}

/// Bytes of one request's body. Dropping it, once the request is answered, frees them.
pub struct Held {
    of: Arc<Bodies>,
    bytes: AtomicUsize,
}

impl Bodies {
    /// Creates a limit of `most` bytes.
    pub fn new(most: usize) -> Bodies {
        Bodies { most, held: AtomicUsize::new(0) }
    }
}

impl Held {
    /// Starts with no bytes.
    pub fn new(of: Arc<Bodies>) -> Held {
        Held { of, bytes: AtomicUsize::new(0) }
    }

    /// Adds received bytes. Returns false if they exceed the limit. Announced lengths reserve no memory, so no client
    /// can exhaust it by a header.
    pub fn take(&self, bytes: usize) -> bool {
        let before = self.of.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.of.most
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.held.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_body_frees_its_memory() {
        let all = Arc::new(Bodies::new(100));
        let (one, other) = (Held::new(all.clone()), Held::new(all.clone()));
        assert!(one.take(60) && other.take(40));
        assert!(!other.take(1));
        drop(other);
        assert!(one.take(40) && !one.take(1));
        drop(one);
        assert_eq!(all.held.load(Ordering::Relaxed), 0);
    }
}
