//! Detects changes of the machine's clock: a new time while the service runs, or a jump ahead after the machine slept.

use std::convert::Infallible;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_records::Clock;

/// Check interval.
const TICK: Duration = Duration::from_secs(1);

/// Change to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Updates {
    /// The clock went forward by this duration, and so did the service's time.
    Forward(Nanos),
    /// The clock is behind the service's time by this duration, because it was set back.
    Back(Nanos),
    /// The clock is no longer behind.
    Right,
}

/// Last reported state.
struct EventRecord {
    ahead: Nanos,
    behind: Nanos,
}

impl EventRecord {
    /// Compares two values with the last state. The first is the lead of the service's time over the monotonic clock;
    /// the second is the lag of the wall clock behind the service's time. Changes within an interval are not reported,
    /// because reports may differ by the same amount.
    fn look(&mut self, ahead: Nanos, behind: Nanos, interval: Nanos) -> Option<Updates> {
        let forward = ahead.since(std::mem::replace(&mut self.ahead, ahead));
        let known = self.behind;
        self.behind = if behind <= interval {
            Nanos(0)
        } else if known == Nanos(0) || behind > known.plus(interval) {
            behind
        } else {
            known.min(behind)
        };
        if forward > interval {
            Some(Updates::Forward(forward))
        } else if self.behind > known {
            Some(Updates::Back(behind))
        } else {
            (self.behind == Nanos(0) && known > Nanos(0)).then_some(Updates::Right)
        }
    }
}

/// Logs when the machine's clock goes forward or is set back by more than an interval.
pub async fn watch_clock(clock: &Clock, interval: Nanos) -> Infallible {
    let mut told = EventRecord { ahead: clock.ahead(), behind: Nanos(0) };
    loop {
        tokio::time::sleep(TICK).await;
        match told.look(clock.ahead(), clock.behind(), interval) {
            Some(Updates::Forward(by)) => tracing::warn!(
                seconds = by.as_secs_f64(),
                "the machine's clock went forward (it was set, or the machine slept), and time with it: what was to end by \
                 now has ended"
            ),
            Some(Updates::Back(by)) => tracing::warn!(
                seconds = by.as_secs_f64(),
                "the machine's clock was set back, and time goes on without it: start the service again if the clock is \
                 right now"
            ),
            Some(Updates::Right) => tracing::info!("the machine's clock is behind no more"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_step_longer_than_an_interval_is_reported_once() {
        let mut told = EventRecord { ahead: Nanos(1_000), behind: Nanos(0) };
        let steps = [
            (1_000, 0, None, "nothing happened"),
            (1_009, 9, None, "less than an interval"),
            (5_000, 0, Some(Updates::Forward(Nanos(3_991))), "it slept"),
            (5_000, 300, Some(Updates::Back(Nanos(300))), "it was set back"),
            (5_000, 305, None, "it is still"),
            (5_000, 400, Some(Updates::Back(Nanos(400))), "and further"),
            (5_000, 100, None, "almost right again"),
            (5_000, 400, Some(Updates::Back(Nanos(400))), "and back again"),
            (5_001, 0, Some(Updates::Right), "right again"),
            (5_001, 0, None, "it stays so"),
            (5_001, 50, Some(Updates::Back(Nanos(50))), "set back"),
            (6_000, 0, Some(Updates::Forward(Nanos(999))), "set forward, beyond the time"),
            (6_000, 0, None, "it stays so"),
        ];
        for (ahead, behind, updates, what) in steps {
            assert_eq!(told.look(Nanos(ahead), Nanos(behind), Nanos(10)), updates, "{what}");
        }
    }
}
