//! The one place of the agent that reads clocks, and draws random numbers.

use std::hash::{BuildHasher, RandomState};
use std::time::{Instant, SystemTime};

use leeward_fabric::Nanos;

/// The machine's clocks.
pub struct Clock(Instant);

#[expect(clippy::disallowed_methods, reason = "the adapter that reads clocks")]
impl Clock {
    /// A monotonic clock that begins now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Since it began.
    pub fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Wall time since 1970; 0 before.
    pub fn wall() -> Nanos {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Nanos(since.map_or(0, |since| since.as_nanos() as u64))
    }

    /// Waits until then.
    pub fn sleep_until(&self, then: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(then.since(self.now()).0));
    }
}

/// A number from 0 up to 1. The standard library takes its keys from the system's randomness once a process and counts on from
/// there, which is random enough to keep hosts apart.
pub fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
