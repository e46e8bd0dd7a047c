//! Detects changes of the machine's clock: a new setting while the service runs, or a jump ahead after a suspension.

use std::convert::Infallible;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_records::Clock;

/// Check interval.
const TICK: Duration = Duration::from_secs(1);

/// Change to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClockChange {
    /// The clock went forward by this duration, and so did the service's time.
    Forward(Nanos),
    /// The clock is behind the service's time by this duration, because it was set back.
    Backward(Nanos),
    /// The clock is no longer behind.
    Recovered,
}

/// Last reported state.
struct ReportedState {
    ahead: Nanos,
    behind: Nanos,
}

impl ReportedState {
    /// Compares two values with the last state. The first is the lead of the service's time over the monotonic clock;
    /// the second is the lag of the wall clock behind the service's time. Changes within an interval are not reported,
    /// because reports may differ by the same amount.
    fn compare(&mut self, ahead: Nanos, behind: Nanos, interval: Nanos) -> Option<ClockChange> {
        let forward = ahead.since(std::mem::replace(&mut self.ahead, ahead));
        let before = self.behind;
        self.behind = if behind <= interval {
            Nanos(0)
        } else if before == Nanos(0) || behind > before.plus(interval) {
            behind
        } else {
            before.min(behind)
        };
        if forward > interval {
            Some(ClockChange::Forward(forward))
        } else if self.behind > before {
            Some(ClockChange::Backward(behind))
        } else {
            (self.behind == Nanos(0) && before > Nanos(0)).then_some(ClockChange::Recovered)
        }
    }
}

/// Logs when the machine's clock goes forward or is set back by more than an interval.
pub async fn watch_clock(clock: &Clock, interval: Nanos) -> Infallible {
    let mut reported = ReportedState { ahead: clock.ahead(), behind: Nanos(0) };
    loop {
        tokio::time::sleep(TICK).await;
        match reported.compare(clock.ahead(), clock.behind(), interval) {
            Some(ClockChange::Forward(by)) => tracing::warn!(
                seconds = by.as_secs_f64(),
                "the machine's clock jumped ahead (it was set, or the machine was suspended), and the service's time \
                 with it: decisions due by now have expired"
            ),
            Some(ClockChange::Backward(by)) => tracing::warn!(
                seconds = by.as_secs_f64(),
                "the machine's clock was set back, and the service's time continues ahead of it: restart the service \
                 if the clock is correct now"
            ),
            Some(ClockChange::Recovered) => {
                tracing::info!("the machine's clock is no longer behind the service's time")
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_step_longer_than_an_interval_is_reported_once() {
        let mut reported = ReportedState { ahead: Nanos(1_000), behind: Nanos(0) };
        let steps = [
            (1_000, 0, None, "nothing happened"),
            (1_009, 9, None, "less than an interval"),
            (5_000, 0, Some(ClockChange::Forward(Nanos(3_991))), "the machine was suspended"),
            (5_000, 300, Some(ClockChange::Backward(Nanos(300))), "the clock was set back"),
            (5_000, 305, None, "the clock is still behind"),
            (5_000, 400, Some(ClockChange::Backward(Nanos(400))), "further behind"),
            (5_000, 100, None, "almost right again"),
            (5_000, 400, Some(ClockChange::Backward(Nanos(400))), "set back again"),
            (5_001, 0, Some(ClockChange::Recovered), "right again"),
            (5_001, 0, None, "no change"),
            (5_001, 50, Some(ClockChange::Backward(Nanos(50))), "set back"),
            (6_000, 0, Some(ClockChange::Forward(Nanos(999))), "set forward, beyond the time"),
            (6_000, 0, None, "no change"),
        ];
        for (ahead, behind, change, what) in steps {
            assert_eq!(reported.compare(Nanos(ahead), Nanos(behind), Nanos(10)), change, "{what}");
        }
    }
}
