//! Report schedule: times of readings and of retries, from given times and random numbers.
//!
//! Agents on thousands of hosts must not report at the same time, neither in normal operation nor when a controller
//! comes back. Each agent has its own offset for readings, every report has some jitter, and every retry delay has more
//! jitter.
//!
//! This schedule takes times and random numbers as arguments, and combines readings with retries.

use leeward_client::Backoff;
use leeward_fabric::Nanos;

/// Jitter of a report as a share of the interval.
const JITTER: f64 = 0.1;
/// Longest delay after failures.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// Report schedule of one agent.
#[derive(Clone, Debug)]
pub struct ReportSchedule {
    interval: Nanos,
    /// Time of the next reading without jitter; all such times differ by multiples of the interval.
    next_reading: Nanos,
    backoff: Backoff,
    /// Time until which nothing is sent.
    quiet_until: Nanos,
}

fn part(whole: Nanos, share: f64) -> Nanos {
    Nanos((whole.0 as f64 * share) as u64)
}

impl ReportSchedule {
    /// Creates a schedule that begins within one interval from `now`. All `random` arguments are in [0, 1).
    pub fn new(interval: Nanos, now: Nanos, random: f64) -> ReportSchedule {
        let next_reading = now.plus(part(interval, random));
        ReportSchedule { interval, next_reading, backoff: Backoff::new(interval, LONGEST), quiet_until: now }
    }

    /// Time between readings.
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// Time of the next reading after `now`. Missed times are skipped, because two readings at once give no window.
    pub fn next(&mut self, now: Nanos, random: f64) -> Nanos {
        if self.next_reading <= now {
            let missed = (now.0 - self.next_reading.0) / self.interval.0 + 1;
            self.next_reading =
                Nanos(self.next_reading.0.saturating_add(missed.saturating_mul(self.interval.0)));
        }
        self.next_reading.plus(part(self.interval, JITTER * random))
    }

    /// Returns true if a report may be sent at `now`.
    pub fn may_send(&self, now: Nanos) -> bool {
        now >= self.quiet_until
    }

    /// Records an accepted report.
    pub fn succeeded(&mut self) {
        self.backoff.succeeded();
    }

    /// Records a failed report and returns the delay; see [`Backoff`].
    pub fn failed(&mut self, now: Nanos, after: Option<Nanos>, random: f64) -> Nanos {
        let wait = self.backoff.failed(after, random);
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
        fn readings_come_once_an_interval_despite_jitter_and_delays(
            interval in 1_000_u64..100_000_000_000,
            start in 0_u64..1 << 50,
            steps in prop::collection::vec((0.0_f64..1.0, 0.0_f64..3.0), 1..50),
            offset in 0.0_f64..1.0,
        ) {
            let interval = Nanos(interval);
            let mut schedule = ReportSchedule::new(interval, Nanos(start), offset);
            let first = schedule.next_reading;
            prop_assert!(first.0 - start <= interval.0);
            let mut now = Nanos(start);
            for (random, late) in steps {
                let next = schedule.next(now, random);
                prop_assert!(next > now && next.0 - now.0 <= 2 * interval.0 + 1);
                let phase = (next.0 - first.0) % interval.0;
                prop_assert!(phase as f64 <= JITTER * interval.0 as f64, "readings keep their phase: {}", phase);
                now = next.plus(part(interval, late));
            }
        }

        #[test]
        fn waits_double_up_to_a_minute_and_end_with_success(
            randoms in prop::collection::vec(0.0_f64..1.0, 1..60),
            requested in prop::option::of(0_u64..1 << 62),
        ) {
            let mut schedule = ReportSchedule::new(Nanos::SECOND, Nanos(0), 0.0);
            let mut expected = Nanos::SECOND.0;
            for random in randoms {
                let wait = schedule.failed(Nanos(7), None, random);
                prop_assert!(wait.0 >= expected / 2 && wait.0 <= expected);
                prop_assert!(!schedule.may_send(Nanos(6).plus(wait)) && schedule.may_send(Nanos(7).plus(wait)));
                expected = (2 * expected).min(LONGEST.0);
            }
            let wait = schedule.failed(Nanos(7), requested.map(Nanos), 0.9);
            prop_assert!(requested.is_none_or(|least| wait.0 >= least.min(LONGEST.0)) && wait.0 <= 2 * LONGEST.0);
            schedule.succeeded();
            prop_assert!(schedule.failed(Nanos(7), None, 1.0 - 1e-9) <= Nanos::SECOND);
        }
    }
}
