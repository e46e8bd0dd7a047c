//! Clocks and random numbers, for drivers of state machines. No other module reads a clock or draws a random number.

use std::hash::{BuildHasher, RandomState};
use std::time::{Instant, SystemTime};

use leeward_fabric::Nanos;

/// Clocks of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

#[expect(clippy::disallowed_methods, reason = "the adapter that reads clocks")]
impl Clock {
    /// Starts a monotonic clock at zero.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Wall-clock time since 1970; 0 before.
    pub fn wall() -> Nanos {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Nanos(since.map_or(0, |since| since.as_nanos() as u64))
    }

    /// Sleeps until `then`.
    pub fn sleep_until(&self, then: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(then.since(self.now()).0));
    }
}

/// Random number in [0, 1). The standard library takes the keys of its hash maps from the system's random source, and
/// then increments them. Such numbers are random enough to spread hosts over time.
pub fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
