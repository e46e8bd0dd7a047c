//! The service's clock. The engine counts nanoseconds, and the API uses RFC 3339.
//!
//! The engine's time starts at the wall clock, counted from the year 2020 in every run of the service, so stored times
//! stay valid. From then on it follows the machine's time since boot, which counts the time of a suspension too. So it
//! never goes back, and it never jumps: a wall clock that is set while the service runs changes neither the age of
//! telemetry nor the end of a decision. What changes is the conversion: [`Clock::parse`] reads times of the wall clock as
//! it is now, and [`Clock::text`] shows each time as the wall clock showed it then. After a clock was set and set back,
//! everything is as before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use rustix::time::{ClockId, clock_gettime};

/// Unix time in seconds of the engine's zero: 2020-01-01T00:00:00Z.
const ORIGIN: i64 = 1_577_836_800;

/// Difference between the expected and the actual wall clock beyond which it was set. Clients of NTP correct smaller
/// differences gradually, and by the same amount in both clocks.
const TOLERANCE: i64 = 250_000_000;
/// Largest number of steps in memory. Earlier times are shown as before the first of these.
const MAX_STEPS: usize = 1_000;

/// Readings of a machine's two clocks, taken together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReadings {
    /// Wall clock, counted from the engine's zero.
    pub wall: Nanos,
    /// Monotonic clock, from any start. This clock is read after the wall clock.
    pub monotonic: Nanos,
}

/// A step of the wall clock, while the service runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// Engine time at which the step was noticed.
    pub at: Nanos,
    /// Nanoseconds by which the clock was set forward; negative if it was set back.
    pub by: i64,
    /// Lead of the wall clock over the engine's time since the step, in nanoseconds: the sum of all steps.
    pub lead: i64,
}

/// Source of time, with its conversion to text and back. Clones show the same time.
#[derive(Clone)]
pub struct Clock {
    /// Wall time at the engine's zero.
    origin: Timestamp,
    readings: Arc<dyn Fn() -> ClockReadings + Send + Sync>,
    /// Lead of the engine's time over the monotonic clock.
    ahead: Nanos,
    steps: Arc<Steps>,
}

/// Steps of the wall clock.
#[derive(Default)]
struct Steps {
    /// Lead of the wall clock over the engine's time, in nanoseconds.
    lead: AtomicI64,
    /// Number of steps so far.
    count: AtomicU64,
    all: RwLock<VecDeque<ClockStep>>,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        let origin = Timestamp::from_second(ORIGIN).expect("2020 is in range");
        Clock::with_readings(origin, move || {
            // A machine whose clock shows an earlier year starts at 2020.
            let wall = u64::try_from(Timestamp::now().duration_since(origin).as_nanos()).unwrap_or(0);
            let boot = clock_gettime(ClockId::Boottime);
            let monotonic = boot.tv_sec.cast_unsigned() * Nanos::SECOND.0 + boot.tv_nsec.cast_unsigned();
            ClockReadings { wall: Nanos(wall), monotonic: Nanos(monotonic) }
        })
    }

    /// A clock with zero at `origin` that follows these readings.
    pub fn with_readings(
        origin: Timestamp,
        readings: impl Fn() -> ClockReadings + Send + Sync + 'static,
    ) -> Clock {
        let ClockReadings { wall, monotonic } = readings();
        let ahead = wall.since(monotonic);
        let steps =
            Steps { lead: AtomicI64::new(difference(wall, monotonic.plus(ahead))), ..Steps::default() };
        Clock { origin, readings: Arc::new(readings), ahead, steps: Arc::new(steps) }
    }

    /// A clock with zero at `origin` that shows `now`, which never goes back. Its wall clock is never set.
    pub fn new(origin: Timestamp, now: impl Fn() -> Nanos + Send + Sync + 'static) -> Clock {
        Clock::with_readings(origin, move || {
            let now = now();
            ClockReadings { wall: now, monotonic: now }
        })
    }

    /// Current time.
    pub fn now(&self) -> Nanos {
        let readings = (self.readings)();
        let lead = self.lead_of(readings);
        if (lead - self.lead()).abs() > TOLERANCE {
            self.record_step();
        }
        readings.monotonic.plus(self.ahead)
    }

    /// Lead of the wall clock over the engine's time in nanoseconds: the sum of all steps since the start, negative if the
    /// clock was set back.
    pub fn lead(&self) -> i64 {
        self.steps.lead.load(Ordering::Relaxed)
    }

    /// Number of steps of the wall clock so far.
    pub fn step_count(&self) -> u64 {
        self.steps.count.load(Ordering::Relaxed)
    }

    /// The last step of the wall clock.
    pub fn last_step(&self) -> Option<ClockStep> {
        self.steps.all.read().unwrap_or_else(PoisonError::into_inner).back().copied()
    }

    fn lead_of(&self, ClockReadings { wall, monotonic }: ClockReadings) -> i64 {
        difference(wall, monotonic.plus(self.ahead))
    }

    /// Records that the wall clock was set, unless a second reading shows that it was not: a thread may wait long between
    /// its readings of the two clocks.
    fn record_step(&self) {
        let mut all = self.steps.all.write().unwrap_or_else(PoisonError::into_inner);
        let readings = (self.readings)();
        let (lead, before) = (self.lead_of(readings), self.lead());
        if (lead - before).abs() <= TOLERANCE {
            return;
        }
        all.push_back(ClockStep { at: readings.monotonic.plus(self.ahead), by: lead - before, lead });
        if all.len() > MAX_STEPS {
            all.pop_front();
        }
        self.steps.lead.store(lead, Ordering::Relaxed);
        self.steps.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Lead of the wall clock at an engine time.
    fn lead_at(&self, at: Nanos) -> i64 {
        if self.step_count() == 0 {
            return self.lead();
        }
        let all = self.steps.all.read().unwrap_or_else(PoisonError::into_inner);
        let later = all.partition_point(|step| step.at <= at);
        match (later.checked_sub(1).and_then(|last| all.get(last)), all.front()) {
            (Some(step), _) => step.lead,
            (None, Some(first)) => first.lead - first.by,
            (None, None) => self.lead(),
        }
    }

    /// Converts a time to milliseconds since 1970.
    pub fn unix_ms(&self, at: Nanos) -> i64 {
        let wall = self.origin.as_millisecond().saturating_add_unsigned(at.0 / 1_000_000);
        wall.saturating_add(self.lead_at(at) / 1_000_000)
    }

    /// Converts milliseconds since 1970, by the wall clock as it is now, to a time; `None` before the engine's zero.
    pub fn at_unix_ms(&self, ms: i64) -> Option<Nanos> {
        let since = ms.checked_sub(self.origin.as_millisecond())?.checked_mul(1_000_000)?;
        u64::try_from(since.checked_sub(self.lead())?).ok().map(Nanos)
    }

    /// Formats a time as RFC 3339, as the wall clock showed it.
    pub fn text(&self, at: Nanos) -> String {
        let since = SignedDuration::try_from(std::time::Duration::from_nanos(at.0)).ok();
        let since = since.and_then(|since| since.checked_add(SignedDuration::from_nanos(self.lead_at(at))));
        let wall = since.and_then(|since| self.origin.checked_add(since).ok());
        wall.unwrap_or(Timestamp::MAX).to_string()
    }

    /// Parses a time in RFC 3339, by the wall clock as it is now.
    ///
    /// # Errors
    /// Returns a message for an invalid time, or for a time outside the engine's range.
    pub fn parse(&self, text: &str) -> Result<Nanos, String> {
        let expected = "a time as in 2026-01-31T12:00:00.5Z (RFC 3339)";
        let wall: Timestamp =
            text.parse().map_err(|_| format!("`{}`: expected {expected}", excerpt(text)))?;
        let since = wall.duration_since(self.origin).as_nanos() - i128::from(self.lead());
        if since < 0 {
            let start = self.origin;
            return Err(format!("`{}`: times of this service start at {start}", excerpt(text)));
        }
        u64::try_from(since).map(Nanos).map_err(|_| format!("`{}`: too far in the future", excerpt(text)))
    }
}

/// Difference of two times in nanoseconds.
fn difference(one: Nanos, other: Nanos) -> i64 {
    i64::try_from(i128::from(one.0) - i128::from(other.0)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    /// Settable readings, and a clock that follows them. The wall clock starts at `wall`.
    fn settable_clock(wall: u64) -> (Arc<Mutex<ClockReadings>>, Clock) {
        let readings = Arc::new(Mutex::new(ClockReadings { wall: Nanos(wall), monotonic: Nanos(0) }));
        let (origin, shared) = ("2026-01-31T12:00:00Z".parse().expect("a time"), readings.clone());
        (readings, Clock::with_readings(origin, move || *shared.lock().expect("the lock is not poisoned")))
    }

    fn clock() -> Clock {
        Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), || Nanos(0))
    }

    #[test]
    fn times_round_trip_to_the_nanosecond() {
        for at in [0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_001, u64::MAX / 4] {
            let text = clock().text(Nanos(at));
            assert_eq!(clock().parse(&text), Ok(Nanos(at)), "{text}");
        }
        assert_eq!(clock().text(Nanos(1_500_000_000)), "2026-01-31T12:00:01.5Z");
        assert_eq!(clock().parse("2026-01-31T14:00:01+02:00"), Ok(Nanos::SECOND));
    }

    #[test]
    fn milliseconds_since_1970_convert_to_the_same_times() {
        assert_eq!(clock().unix_ms(Nanos(1_500_000_000)), 1_769_860_801_500);
        assert_eq!(clock().at_unix_ms(1_769_860_801_500), Some(Nanos(1_500_000_000)));
        for ms in [1_769_860_799_999, 0, i64::MIN, i64::MAX] {
            assert_eq!(clock().at_unix_ms(ms), None, "{ms}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "12:00",
            "2026-01-31",
            "2026-01-31T11:59:59.999999999Z",
            "9999-01-01T00:00:00Z",
            "1769860800",
        ] {
            assert!(clock().parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn system_clock_times_are_the_same_in_every_run() {
        let (one, other) = (Clock::system(), Clock::system());
        assert_eq!(one.text(Nanos(0)), "2020-01-01T00:00:00Z");
        assert_eq!(one.parse("2030-01-01T00:00:00Z"), other.parse("2030-01-01T00:00:00Z"));
        assert!(
            other.now() >= Nanos(Nanos::SECOND.0 * 86_400 * 365)
                && other.now() < one.now().plus(Nanos::SECOND)
        );
    }

    proptest! {
        /// Both clocks advance, and the wall clock is sometimes set to any time.
        #[test]
        fn time_follows_the_monotonic_clock_and_its_text_the_wall_clock(
            steps in prop::collection::vec((0_u64..1_000, prop::option::of(0_u64..2_000)), 1..50),
        ) {
            let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
            let (readings, clock) = settable_clock(1_000 * Nanos::SECOND.0);
            let mut last = clock.now();
            for (passed, wall) in steps {
                let mut current = readings.lock().expect("the lock is not poisoned");
                current.monotonic = current.monotonic.plus(second(passed));
                current.wall = wall.map_or(current.wall.plus(second(passed)), second);
                let wall = current.wall;
                drop(current);
                let now = clock.now();
                prop_assert_eq!(now, last.plus(second(passed)));
                prop_assert_eq!(clock.text(now), super::tests::clock().text(wall));
                prop_assert_eq!(clock.parse(&clock.text(now)), Ok(now));
                prop_assert_eq!(clock.at_unix_ms(clock.unix_ms(now)), Some(now));
                prop_assert_eq!(clock.clone().now(), now, "clones show the same time");
                last = now;
            }
        }
    }

    #[test]
    fn a_step_changes_the_text_of_later_times_only_and_a_step_back_restores_it() {
        let (readings, clock) = settable_clock(0);
        let set = |wall: u64, monotonic: u64| {
            *readings.lock().expect("the lock is not poisoned") = ClockReadings {
                wall: Nanos(wall * Nanos::SECOND.0),
                monotonic: Nanos(monotonic * Nanos::SECOND.0),
            };
            (clock.now().0 / Nanos::SECOND.0, clock.lead() / 1_000_000_000, clock.step_count())
        };
        let text = |seconds: u64| clock.text(Nanos(seconds * Nanos::SECOND.0));
        assert_eq!(set(10, 10), (10, 0, 0));
        assert_eq!(set(3_620, 20), (20, 3_600, 1), "the clock was set forward");
        assert_eq!(
            (text(15), text(25)),
            ("2026-01-31T12:00:15Z".to_owned(), "2026-01-31T13:00:25Z".to_owned())
        );
        assert_eq!(clock.parse("2026-01-31T13:00:25Z"), Ok(Nanos(25 * Nanos::SECOND.0)));
        assert_eq!(set(30, 30), (30, 0, 2), "the clock was set back");
        let step = clock.last_step().expect("a step");
        assert_eq!((step.at, step.by), (Nanos(30 * Nanos::SECOND.0), -3_600_000_000_000));
        assert_eq!(text(25), "2026-01-31T13:00:25Z", "as the clock showed it then");
        assert_eq!(
            (text(35), clock.parse(&text(35))),
            ("2026-01-31T12:00:35Z".to_owned(), Ok(Nanos(35_000_000_000)))
        );
        assert_eq!(set(0, 40).1, -40, "the clock was set to a year before 2020");
    }

    #[test]
    fn a_thread_that_waits_between_the_two_readings_sees_no_step() {
        let calls = AtomicU64::new(0);
        let origin = "2026-01-31T12:00:00Z".parse().expect("a time");
        let clock = Clock::with_readings(origin, move || {
            // The second reading comes late.
            let late = if calls.fetch_add(1, Ordering::Relaxed) == 1 { 5 } else { 0 };
            ClockReadings { wall: Nanos(0), monotonic: Nanos(late * Nanos::SECOND.0) }
        });
        assert_eq!(clock.now(), Nanos(5 * Nanos::SECOND.0));
        assert_eq!((clock.step_count(), clock.lead(), clock.last_step()), (0, 0, None));
    }
}
