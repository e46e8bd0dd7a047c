//! Memory limit for request bodies, over all requests together. If every allowed connection sent a body of the largest
//! size, the bodies would exceed the memory of a machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all bodies in memory, with their limit.
pub struct Bodies {
    limit: usize,
    used: AtomicUsize,
}

/// Bytes of one request's body. The bytes are subtracted from the total when this value is dropped, after the response.
pub struct BodyBytes {
    all: Arc<Bodies>,
    bytes: AtomicUsize,
}

impl Bodies {
    /// Creates a limit of `limit` bytes.
    pub fn new(limit: usize) -> Bodies {
        Bodies { limit, used: AtomicUsize::new(0) }
    }
}

impl BodyBytes {
    /// Starts with no bytes.
    pub fn new(all: Arc<Bodies>) -> BodyBytes {
        BodyBytes { all, bytes: AtomicUsize::new(0) }
    }

    /// Adds received bytes. Returns false if they exceed the limit. Announced lengths reserve no memory, so no client
    /// can exhaust the memory by a header.
    pub fn take(&self, bytes: usize) -> bool {
        let before = self.all.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.all.limit
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        self.all.used.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_body_frees_its_memory() {
        let all = Arc::new(Bodies::new(100));
        let (one, other) = (BodyBytes::new(all.clone()), BodyBytes::new(all.clone()));
        assert!(one.take(60) && other.take(40));
        assert!(!other.take(1));
        drop(other);
        assert!(one.take(40) && !one.take(1));
        drop(one);
        assert_eq!(all.used.load(Ordering::Relaxed), 0);
    }
}
