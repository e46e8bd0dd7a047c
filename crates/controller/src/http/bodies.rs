//! How many bytes of bodies are held at once, by all requests together: as many connections as may be open, each with the
//! largest body, would be more than a machine has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All bodies that are held.
pub struct Bodies {
    most: usize,
    held: AtomicUsize,
}

/// What has come of the body of one request; it is let go of when this is dropped, which is when that is answered.
pub struct Held {
    of: Arc<Bodies>,
    bytes: AtomicUsize,
}

impl Bodies {
    /// So many bytes at most.
    pub fn new(most: usize) -> Bodies {
        Bodies { most, held: AtomicUsize::new(0) }
    }
}

impl Held {
    /// Nothing has come yet.
    pub fn new(of: Arc<Bodies>) -> Held {
        Held { of, bytes: AtomicUsize::new(0) }
    }

    /// So many bytes more have come; whether there is room for them. What is only announced takes none, so nobody can keep
    /// room by a promise.
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
    fn there_is_room_again_when_a_request_was_answered_or_refused() {
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
