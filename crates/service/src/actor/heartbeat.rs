//! When something was last heard of the store's thread. It may wait for a disk or a server that says nothing, and nobody
//! else is to wait with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// After so long without a sign of life, nothing can be kept as far as anyone knows. The thread gives one twice a second.
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// When the last sign of life was given.
pub(super) struct Heartbeat {
    began: Instant,
    /// Milliseconds from then; [`HELD`] while none is due.
    last: AtomicU64,
}

const HELD: u64 = u64::MAX;

#[expect(
    clippy::disallowed_methods,
    reason = "how long something takes on this machine, and nothing that is decided"
)]
impl Heartbeat {
    pub fn new() -> Heartbeat {
        Heartbeat { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// It lives.
    pub fn beat(&self) {
        self.last.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// It does what takes as long as it takes: no sign is due until the next one is given.
    pub fn pause(&self) {
        self.last.store(HELD, Ordering::Relaxed);
    }

    /// Waits until it has given no sign for long.
    pub async fn stops(&self) {
        loop {
            let last = self.began + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let Some(left) = SILENCE.checked_sub(last.elapsed()).filter(|left| !left.is_zero()) else {
                return;
            };
            tokio::time::sleep(left).await;
        }
    }
}
