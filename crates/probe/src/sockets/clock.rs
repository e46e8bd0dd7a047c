//! Clock adapter: the only reader of a clock in this crate.

use std::time::Instant;

/// Monotonic clock in nanoseconds since its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "sending and receiving take real time")]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Nanoseconds since the start.
    pub fn ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
