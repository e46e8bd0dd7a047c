//! Virtual time of a lab: real time since its start, divided by the dilation.

use leeward_fabric::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Real time by which a timer of the kernel may be late: a queue catches up with what it missed in this time.
pub(crate) const TIMER_LATENESS_US: u64 = 200;

/// Real time of the machine's monotonic clock, in nanoseconds.
pub(crate) fn real_now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Virtual clock that starts at 0 and runs slower than real time by a whole factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    start: u64,
    dilation: u64,
}

impl Clock {
    /// Starts a clock at a real time in nanoseconds; a dilation of 0 counts as 1.
    pub fn new(start: u64, dilation: u32) -> Clock {
        Clock { start, dilation: u64::from(dilation.max(1)) }
    }

    /// Starts a clock now.
    pub fn start(dilation: u32) -> Clock {
        Clock::new(real_now(), dilation)
    }

    /// Factor by which real time is longer.
    pub fn dilation(&self) -> u32 {
        self.dilation as u32
    }

    /// Real time at which the clock started, in nanoseconds of the monotonic clock.
    pub fn epoch(&self) -> u64 {
        self.start
    }

    /// Current virtual time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.at(real_now())
    }

    /// Virtual time of a real time.
    #[inline]
    pub fn at(&self, real: u64) -> Nanos {
        Nanos(real.saturating_sub(self.start) / self.dilation)
    }

    /// First real time at which the virtual time is `virtual_time` or later.
    #[inline]
    pub fn real(&self, virtual_time: Nanos) -> u64 {
        self.start.saturating_add(virtual_time.0.saturating_mul(self.dilation))
    }

    /// Real time from now until a virtual time, in nanoseconds; 0 if it has passed.
    #[inline]
    pub fn until(&self, virtual_time: Nanos) -> u64 {
        self.real(virtual_time).saturating_sub(real_now())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_real_time_of_a_virtual_time_is_its_first_nanosecond(
            start in 0_u64..1 << 50,
            dilation in 1_u32..1000,
            at in 0_u64..1 << 40,
        ) {
            let clock = Clock::new(start, dilation);
            let real = clock.real(Nanos(at));
            prop_assert_eq!(clock.at(real), Nanos(at));
            if at > 0 {
                prop_assert_eq!(clock.at(real - 1), Nanos(at - 1));
            }
        }
    }
}
