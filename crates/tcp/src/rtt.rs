//! Round-trip times and the retransmission timeout (RFC 6298). The timestamp of each acknowledgement gives a sample
//! (RFC 7323).

use leeward_fabric::Nanos;

/// The smoothed round-trip time of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Nanoseconds; meaningless while `samples` is 0.
    smoothed: f64,
    variation: f64,
    least: u64,
    samples: u64,
}

impl RoundTrip {
    /// Takes a sample; there are `expected` samples per round trip. The gains are divided by `expected`. Otherwise,
    /// many samples per window would make the estimate forget the past too fast (RFC 7323, appendix G).
    pub(super) fn sample(&mut self, trip: Nanos, expected: f64) {
        let trip_ns = trip.0 as f64;
        if self.samples == 0 {
            (self.smoothed, self.variation, self.least) = (trip_ns, trip_ns / 2.0, trip.0);
        } else {
            let off = (trip_ns - self.smoothed).abs();
            self.variation += (off - self.variation) * 0.25 / expected;
            self.smoothed += (trip_ns - self.smoothed) * 0.125 / expected;
            self.least = self.least.min(trip.0);
        }
        self.samples += 1;
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(super) fn smoothed(&self) -> Option<Nanos> {
        (self.samples > 0).then_some(Nanos(self.smoothed as u64))
    }

    /// Least round-trip time so far.
    pub(super) fn least(&self) -> Option<Nanos> {
        (self.samples > 0).then_some(Nanos(self.least))
    }

    /// Margin of the timeout above the round trip: four mean deviations.
    pub(super) fn margin(&self) -> Nanos {
        Nanos((4.0 * self.variation) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sample_gives_three_round_trips_and_steady_ones_converge() {
        let mut trips = RoundTrip::default();
        assert_eq!(trips.smoothed(), None);
        trips.sample(Nanos(100_000), 1.0);
        assert_eq!((trips.smoothed(), trips.margin()), (Some(Nanos(100_000)), Nanos(200_000)));
        trips.sample(Nanos(180_000), 1.0);
        // In us: 7/8 of 100 plus 1/8 of 180, and four times the sum of 3/4 of 50 and 1/4 of 80 (RFC 6298, 2.3).
        assert_eq!((trips.smoothed(), trips.margin()), (Some(Nanos(110_000)), Nanos(230_000)));
        for _ in 0..200 {
            trips.sample(Nanos(180_000), 1.0);
        }
        assert_eq!(trips.least(), Some(Nanos(100_000)));
        assert!(trips.margin() < Nanos(10) && trips.smoothed() > Some(Nanos(179_990)));
    }
}
