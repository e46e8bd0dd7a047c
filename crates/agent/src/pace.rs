//! When to read, and when to try again: times and random numbers in, times out.
//!
//! Agents of thousands of hosts must not ask at once, neither when all is well nor when the controller comes back: readings
//! of each agent have an offset of their own, every report a little of chance, and every wait after a failure more of it.

use leeward_fabric::Nanos;

/// The share of an interval by which a report may come later than the rhythm says.
const JITTER: f64 = 0.1;
/// The longest wait after failures.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// The rhythm of an agent.
#[derive(Clone, Debug)]
pub struct Pace {
    interval: Nanos,
    /// The rhythm without chance; times are this plus multiples of the interval.
    beat: Nanos,
    failures: u32,
    /// Before then nothing is sent.
    quiet_until: Nanos,
}

fn part(of: Nanos, share: f64) -> Nanos {
    Nanos((of.0 as f64 * share) as u64)
}

impl Pace {
    /// A rhythm that begins within an interval from now. `random` is from 0 up to 1, as everywhere here.
    pub fn new(interval: Nanos, now: Nanos, random: f64) -> Pace {
        let beat = now.plus(part(interval, random));
        Pace { interval, beat, failures: 0, quiet_until: now }
    }

    /// When to read next, after `now`. Beats that were missed are passed over: two readings at once say nothing.
    pub fn next(&mut self, now: Nanos, random: f64) -> Nanos {
        if self.beat <= now {
            let missed = (now.0 - self.beat.0) / self.interval.0 + 1;
            self.beat = Nanos(self.beat.0.saturating_add(missed.saturating_mul(self.interval.0)));
        }
        self.beat.plus(part(self.interval, JITTER * random))
    }

    /// Whether it may be sent.
    pub fn may_send(&self, now: Nanos) -> bool {
        now >= self.quiet_until
    }

    /// A report was taken in.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It was not. Each failure in a row doubles the wait, up to a minute; `after` is what the controller asked for. Returns
    /// the wait.
    pub fn failed(&mut self, now: Nanos, after: Option<Nanos>, random: f64) -> Nanos {
        let doubled =
            self.interval.0.saturating_mul(1 << self.failures.min(20)).min(LONGEST.0.max(self.interval.0));
        self.failures = self.failures.saturating_add(1);
        // Between a half and the whole of it, and what was asked for and up to as much again.
        let wait = part(Nanos(doubled), 0.5 + 0.5 * random);
        let asked = after.map_or(Nanos(0), |after| Nanos(after.0.min(LONGEST.0)));
        let wait = wait.max(part(asked, 1.0 + random));
        self.quiet_until = now.plus(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn readings_come_once_an_interval_whatever_chance_and_delays(
            interval in 1_000_u64..100_000_000_000,
            start in 0_u64..1 << 50,
            steps in prop::collection::vec((0.0_f64..1.0, 0.0_f64..3.0), 1..50),
            offset in 0.0_f64..1.0,
        ) {
            let interval = Nanos(interval);
            let mut pace = Pace::new(interval, Nanos(start), offset);
            let first = pace.beat;
            prop_assert!(first.0 - start <= interval.0);
            let mut now = Nanos(start);
            for (random, late) in steps {
                let next = pace.next(now, random);
                prop_assert!(next > now && next.0 - now.0 <= 2 * interval.0 + 1);
                let phase = (next.0 - first.0) % interval.0;
                prop_assert!(phase as f64 <= JITTER * interval.0 as f64, "its own rhythm is kept: {}", phase);
                now = next.plus(part(interval, late));
            }
        }

        #[test]
        fn waits_double_up_to_a_minute_and_end_with_success(
            randoms in prop::collection::vec(0.0_f64..1.0, 1..60),
            asked in prop::option::of(0_u64..1 << 62),
        ) {
            let mut pace = Pace::new(Nanos::SECOND, Nanos(0), 0.0);
            let mut expected = Nanos::SECOND.0;
            for random in randoms {
                let wait = pace.failed(Nanos(7), None, random);
                prop_assert!(wait.0 >= expected / 2 && wait.0 <= expected);
                prop_assert!(!pace.may_send(Nanos(6).plus(wait)) && pace.may_send(Nanos(7).plus(wait)));
                expected = (2 * expected).min(LONGEST.0);
            }
            let wait = pace.failed(Nanos(7), asked.map(Nanos), 0.9);
            prop_assert!(asked.is_none_or(|asked| wait.0 >= asked.min(LONGEST.0)) && wait.0 <= 2 * LONGEST.0);
            pace.succeeded();
            prop_assert!(pace.failed(Nanos(7), None, 1.0 - 1e-9) <= Nanos::SECOND);
        }
    }
}
