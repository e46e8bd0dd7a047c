//! Link model: the time that packets occupy a link, exact to a fraction of a nanosecond.

use leeward_fabric::Bandwidth;

/// Time for one byte as a fraction in lowest terms: nanoseconds over bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    nanos: u64,
    bytes: u64,
}

impl Pace {
    /// Returns the pace of a rate. A rate of 0 counts as 1 bit/s, so that every packet takes a finite time.
    pub fn of(rate: Bandwidth) -> Pace {
        const BIT_NANOS: u64 = 8_000_000_000;
        let rate = rate.0.max(1);
        let (mut a, mut b) = (BIT_NANOS, rate);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Pace { nanos: BIT_NANOS / a, bytes: rate / a }
    }
}

/// Time at which a link becomes free. The clock keeps fractions of a nanosecond, so packets sent back to back take
/// exactly the sum of their times, without drift. Times for callers are rounded up: less than 1 ns late, never early.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pace: Pace,
    /// Time at which the last packet has left the link: whole nanoseconds, and a numerator over `pace.bytes`.
    whole: u64,
    part: u64,
}

impl Link {
    /// Creates a link that is free from time 0.
    pub fn new(pace: Pace) -> Link {
        Link { pace, whole: 0, part: 0 }
    }

    /// Earliest time at which the link is free.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.whole.saturating_add(u64::from(self.part > 0))
    }

    /// Returns the link after a packet that starts at `now`; `now` must not be before [`Link::free_at`].
    #[inline]
    pub fn after(&self, now: u64, bytes: u32) -> Link {
        let (whole, part) = if now > self.free_at() { (now, 0) } else { (self.whole, self.part) };
        let total = u128::from(bytes) * u128::from(self.pace.nanos) + u128::from(part);
        let divisor = self.pace.bytes;
        // 32-bit divisions are several times faster and suffice for round rates.
        let (taken, part) = if total <= u128::from(u32::MAX) && divisor <= u64::from(u32::MAX) {
            let (total, divisor) = (total as u32, divisor as u32);
            (u64::from(total / divisor), u64::from(total % divisor))
        } else {
            let divisor = u128::from(divisor);
            (u64::try_from(total / divisor).unwrap_or(u64::MAX), (total % divisor) as u64)
        };
        Link { pace: self.pace, whole: whole.saturating_add(taken), part }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_back_to_back_take_the_time_of_their_sum(
            rate in 1_u64..400_000_000_000,
            packets in prop::collection::vec(1_u32..10_000, 1..200),
        ) {
            let mut link = Link::new(Pace::of(Bandwidth(rate)));
            let mut sum = 0_u128;
            for bytes in packets {
                link = link.after(link.free_at(), bytes);
                sum += u128::from(bytes);
                let exact = (sum * 8_000_000_000).div_ceil(u128::from(rate));
                prop_assert_eq!(u128::from(link.free_at()), exact);
            }
        }
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut link = Link::new(Pace::of(Bandwidth(3_000_000_000)));
        link = link.after(0, 1); // 2.67 ns
        assert_eq!(link.free_at(), 3);
        link = link.after(10, 3); // 8 ns
        assert_eq!(link.free_at(), 18);
    }
}
