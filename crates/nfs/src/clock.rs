//! Clocks. No other module of the proxy reads one.

use std::time::{Instant, SystemTime};

use leeward_fabric::Nanos;

/// Monotonic clock of a proxy, and the wall-clock time of its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall: Nanos,
}

#[expect(clippy::disallowed_methods, reason = "the adapter that reads clocks")]
impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Clock {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall = Nanos(since.map_or(0, |since| since.as_nanos() as u64));
        Clock { start: Instant::now(), wall }
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Time since 1970 of a time since the start. It never goes back: a later step of the wall clock changes nothing.
    pub fn wall(&self, now: Nanos) -> Nanos {
        self.wall.plus(now)
    }

    /// Time since the start of a time since 1970; `None` if that was before the start.
    pub fn of_wall(&self, wall: Nanos) -> Option<Nanos> {
        wall.0.checked_sub(self.wall.0).map(Nanos)
    }
}
