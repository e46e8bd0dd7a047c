//! Heartbeat of the store's thread. The thread may hang on a disk or a server; the rest of the service must not hang
//! with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Silence after which the store counts as unavailable. The thread sends a sign of life twice per second.
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// Time of the last sign of life.
pub(super) struct Heartbeat {
    began: Instant,
    /// Milliseconds since `began`; [`HELD`] while the deadline is suspended.
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

    /// Gives a sign of life.
    pub fn beat(&self) {
        self.last.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Suspends the deadline during an operation of unknown length, until the next sign.
    pub fn pause(&self) {
        self.last.store(HELD, Ordering::Relaxed);
    }

    /// Waits until the thread has been silent for [`SILENCE`].
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
