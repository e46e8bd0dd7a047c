//! Delays after failures: each one doubles the delay, with jitter, and a controller may request a longer one.
//!
//! Hand-written, because existing back-off crates sleep or read a clock themselves. This one takes random numbers as
//! arguments, and honors the delay that a controller requests.

use leeward_fabric::Nanos;

/// Longest delay that a controller may request.
const LONGEST_REQUESTED: Nanos = Nanos(60 * Nanos::SECOND.0);

/// Delays after failures. Programs on thousands of hosts must not retry at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    first: Nanos,
    longest: Nanos,
    failures: u32,
}

impl Backoff {
    /// Delays that begin with up to `first` and grow to up to `longest`, or to `first` if that is longer.
    pub fn new(first: Nanos, longest: Nanos) -> Backoff {
        Backoff { first, longest: longest.max(first), failures: 0 }
    }

    /// The next failure begins with the first delay again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Delay after a failure; `random` is in [0, 1). Each further failure doubles the delay. `after` is the delay that the
    /// controller requested.
    pub fn failed(&mut self, after: Option<Nanos>, random: f64) -> Nanos {
        let doubled = self.first.0.saturating_mul(1 << self.failures.min(20)).min(self.longest.0);
        self.failures = self.failures.saturating_add(1);
        // The delay is 0.5 to 1 times the doubled delay, and at least 1 to 2 times the requested delay, at random.
        let wait = part(Nanos(doubled), 0.5 + 0.5 * random);
        let requested = after.map_or(Nanos(0), |after| Nanos(after.0.min(LONGEST_REQUESTED.0)));
        wait.max(part(requested, 1.0 + random))
    }
}

fn part(whole: Nanos, share: f64) -> Nanos {
    Nanos((whole.0 as f64 * share) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delays_double_up_to_the_longest_and_end_with_success(
            randoms in prop::collection::vec(0.0_f64..1.0, 1..60),
            requested in prop::option::of(0_u64..1 << 62),
        ) {
            let longest = 60 * Nanos::SECOND.0;
            let mut backoff = Backoff::new(Nanos::SECOND, Nanos(longest));
            let mut expected = Nanos::SECOND.0;
            for random in randoms {
                let wait = backoff.failed(None, random);
                prop_assert!(wait.0 >= expected / 2 && wait.0 <= expected);
                expected = (2 * expected).min(longest);
            }
            let wait = backoff.failed(requested.map(Nanos), 0.9);
            prop_assert!(requested.is_none_or(|least| wait.0 >= least.min(longest)) && wait.0 <= 2 * longest);
            backoff.succeeded();
            prop_assert!(backoff.failed(None, 1.0 - 1e-9) <= Nanos::SECOND);
        }
    }

    #[test]
    fn a_first_delay_above_the_longest_is_the_longest() {
        let mut backoff = Backoff::new(Nanos(100), Nanos(10));
        assert_eq!([backoff.failed(None, 0.0), backoff.failed(None, 0.0)], [Nanos(50), Nanos(50)]);
    }
}
