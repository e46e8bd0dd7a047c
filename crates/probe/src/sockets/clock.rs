//! The one place that reads a clock.

use std::time::Instant;

/// Nanoseconds since the clock was made; monotonic.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins at zero.
    #[expect(clippy::disallowed_methods, reason = "sending and receiving take real time")]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// What it shows.
    pub fn ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
