//! Heartbeat of the store's thread. The thread may hang on a disk or a server, and the rest of the service must not
//! hang with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Silence after which the store counts as unavailable. The thread sends a heartbeat twice per second.
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// Time of the last heartbeat.
pub(super) struct Heartbeat {
    began: Instant,
    /// Milliseconds since `began`; [`PAUSED`] while the deadline is suspended.
    last: AtomicU64,
}

const PAUSED: u64 = u64::MAX;

#[expect(
    clippy::disallowed_methods,
    reason = "measures durations on this machine; no decision depends on them"
)]
impl Heartbeat {
    pub fn new() -> Heartbeat {
        Heartbeat { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Records a heartbeat.
    pub fn beat(&self) {
        self.last.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Suspends the deadline during an operation of unknown length, until the next heartbeat.
    pub fn pause(&self) {
        self.last.store(PAUSED, Ordering::Relaxed);
    }

    /// Waits until the thread has been silent for [`SILENCE`].
    pub async fn wait_for_silence(&self) {
        loop {
            let last = self.began + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let Some(rest) = SILENCE.checked_sub(last.elapsed()).filter(|rest| !rest.is_zero()) else {
                return;
            };
            tokio::time::sleep(rest).await;
        }
    }
}
