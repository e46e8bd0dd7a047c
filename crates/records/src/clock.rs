//! The service's clock. The engine counts nanoseconds since 2020, and the API uses RFC 3339.
//!
//! The engine's time starts with the year 2020 in every run of the service, so stored times stay valid. It follows the
//! monotonic clock, and jumps forward to the wall clock if the wall clock is ahead: after the machine slept, or after
//! its clock was set forward. Time never goes back. If the wall clock is set back, time continues from its last value,
//! because past decisions and windows must not lie in the future. [`Clock::behind`] returns the lag of the machine's
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

/// Unix time in seconds of the engine's zero: 2020-01-01T00:00:00Z.
const ORIGIN: i64 = 1_577_836_800;

/// Readings of a machine's two clocks, taken together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReadings {
    /// Wall clock, counted from the engine's zero.
    pub wall: Nanos,
    /// Monotonic clock, from any start. This clock is read after the wall clock, so the delay between the two readings
    /// can only make the service's time late.
    pub monotonic: Nanos,
}

/// Source of time, with its conversion to text and back. Clones show the same time.
#[derive(Clone)]
pub struct Clock {
    /// Wall time at the engine's zero.
    origin: Timestamp,
    readings: Arc<dyn Fn() -> ClockReadings + Send + Sync>,
    /// Largest lead of the wall clock over the monotonic one so far, in nanoseconds.
    ahead: Arc<AtomicU64>,
}

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one place of the service that reads a clock")]
    pub fn system() -> Clock {
        let origin = Timestamp::from_second(ORIGIN).expect("2020 is in range");
        let started = std::time::Instant::now();
        Clock::with_readings(origin, move || {
            // A machine whose clock shows an earlier year starts at 2020.
            let wall = u64::try_from(Timestamp::now().duration_since(origin).as_nanos()).unwrap_or(0);
            ClockReadings { wall: Nanos(wall), monotonic: Nanos(started.elapsed().as_nanos() as u64) }
        })
    }

    /// A clock with zero at `origin` that follows these readings.
    pub fn with_readings(
        origin: Timestamp,
        readings: impl Fn() -> ClockReadings + Send + Sync + 'static,
    ) -> Clock {
        Clock { origin, readings: Arc::new(readings), ahead: Arc::default() }
    }

    /// A clock with zero at `origin` that shows the largest value so far of `now`.
    pub fn new(origin: Timestamp, now: impl Fn() -> Nanos + Send + Sync + 'static) -> Clock {
        Clock::with_readings(origin, move || ClockReadings { wall: now(), monotonic: Nanos(0) })
    }

    /// Current time.
    pub fn now(&self) -> Nanos {
        self.time(self.read_clocks().monotonic)
    }

    /// Lag of the machine's wall clock behind the current time. The lag is large only after the wall clock was set
    /// back; otherwise it is at most the time between two readings.
    pub fn behind(&self) -> Nanos {
        let ClockReadings { wall, monotonic } = self.read_clocks();
        self.time(monotonic).since(wall)
    }

    /// Lead of the current time over the monotonic clock. The lead grows when the wall clock goes forward.
    pub fn ahead(&self) -> Nanos {
        self.read_clocks();
        Nanos(self.ahead.load(Ordering::Relaxed))
    }

    /// Reads both clocks, and updates the lead.
    fn read_clocks(&self) -> ClockReadings {
        let readings = (self.readings)();
        let ahead = readings.wall.since(readings.monotonic).0;
        // Most readings do not raise the lead. An atomic load is cheaper than a write to memory that all threads share.
        if self.ahead.load(Ordering::Relaxed) < ahead {
            self.ahead.fetch_max(ahead, Ordering::Relaxed);
        }
        readings
    }

    fn time(&self, monotonic: Nanos) -> Nanos {
        monotonic.plus(Nanos(self.ahead.load(Ordering::Relaxed)))
    }

    /// Converts a time to milliseconds since 1970.
    pub fn unix_ms(&self, at: Nanos) -> i64 {
        self.origin.as_millisecond().saturating_add_unsigned(at.0 / 1_000_000)
    }

    /// Converts milliseconds since 1970 to a time; `None` before the engine's zero.
    pub fn at_unix_ms(&self, ms: i64) -> Option<Nanos> {
        let since = u64::try_from(ms.checked_sub(self.origin.as_millisecond())?).ok()?;
        since.checked_mul(1_000_000).map(Nanos)
    }

    /// Formats a time as RFC 3339.
    pub fn text(&self, at: Nanos) -> String {
        let since = SignedDuration::try_from(std::time::Duration::from_nanos(at.0));
        let wall = since.ok().and_then(|since| self.origin.checked_add(since).ok());
        wall.unwrap_or(Timestamp::MAX).to_string()
    }

    /// Parses a time in RFC 3339.
    ///
    /// # Errors
    /// Returns a message for an invalid time, or for a time outside the engine's range.
    pub fn parse(&self, text: &str) -> Result<Nanos, String> {
        let expected = "a time as in 2026-01-31T12:00:00.5Z (RFC 3339)";
        let wall: Timestamp =
            text.parse().map_err(|_| format!("`{}`: expected {expected}", excerpt(text)))?;
        let since = wall.duration_since(self.origin).as_nanos();
        if since < 0 {
            let start = self.origin;
            return Err(format!("`{}`: times of this service start at {start}", excerpt(text)));
        }
        u64::try_from(since).map(Nanos).map_err(|_| format!("`{}`: too far in the future", excerpt(text)))
    }
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
        fn time_is_monotonic_and_never_behind_the_wall_clock(
            first in 0_u64..1_000_000,
            steps in prop::collection::vec((0_u64..1_000, prop::option::of(0_u64..2_000_000)), 1..50),
        ) {
            let (readings, clock) = settable_clock(first);
            let mut last = clock.now();
            prop_assert_eq!(last, Nanos(first));
            for (passed, wall) in steps {
                let mut current = readings.lock().expect("the lock is not poisoned");
                current.monotonic = current.monotonic.plus(Nanos(passed));
                current.wall = wall.map_or(current.wall.plus(Nanos(passed)), Nanos);
                let wall = current.wall;
                drop(current);
                let now = clock.now();
                prop_assert_eq!(now, last.plus(Nanos(passed)).max(wall));
                prop_assert_eq!(clock.behind(), now.since(wall));
                prop_assert_eq!(clock.clone().now(), now, "clones show the same time");
                last = now;
            }
        }
    }

    #[test]
    fn forward_clock_steps_are_followed_and_backward_ones_reported() {
        let (readings, clock) = settable_clock(1_000);
        let set = |wall: u64, monotonic: u64| {
            *readings.lock().expect("the lock is not poisoned") =
                ClockReadings { wall: Nanos(wall), monotonic: Nanos(monotonic) };
            (clock.now().0, clock.behind().0, clock.ahead().0)
        };
        assert_eq!(set(1_000, 0), (1_000, 0, 1_000));
        assert_eq!(set(1_010, 10), (1_010, 0, 1_000));
        assert_eq!(set(5_000, 20), (5_000, 0, 4_980), "the machine slept");
        assert_eq!(set(2_000, 30), (5_010, 3_010, 4_980), "the clock was set back");
        assert_eq!(set(4_990, 40), (5_020, 30, 4_980), "the clock was almost corrected");
        assert_eq!(set(5_030, 50), (5_030, 0, 4_980));
        assert_eq!(set(0, 60), (5_040, 5_040, 4_980), "the clock was set to a year before 2020");
    }
}
