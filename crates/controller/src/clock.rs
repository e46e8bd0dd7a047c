//! The edge of time: the engine counts nanoseconds since it started, people write RFC 3339.
//!
//! The engine's time begins with the year 2020, for every run of the service alike, so what is stored means the same
//! later. The two are tied together once, at the start, and from then on the monotonic clock alone counts; a wall clock
//! that is set anew does not make time jump.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

/// Seconds of the Unix epoch at which the engine's time begins: 2020-01-01T00:00:00Z.
const ORIGIN: i64 = 1_577_836_800;

/// What time it is, and how it is written.
#[derive(Clone)]
pub struct Clock {
    /// Wall time at the engine's zero.
    origin: Timestamp,
    now: Arc<dyn Fn() -> Nanos + Send + Sync>,
}

impl Clock {
    /// The machine's clock, from now on.
    #[expect(clippy::disallowed_methods, reason = "the one place of the service that reads a clock")]
    pub fn system() -> Clock {
        let origin = Timestamp::from_second(ORIGIN).expect("a time that there was");
        let (started, wall) = (std::time::Instant::now(), Timestamp::now());
        // A machine that takes this for an earlier year begins with the year 2020.
        let before = u64::try_from(wall.duration_since(origin).as_nanos()).unwrap_or(0);
        let now = move || Nanos(before).plus(Nanos(started.elapsed().as_nanos() as u64));
        Clock { origin, now: Arc::new(now) }
    }

    /// A clock whose zero was at `origin`, and which reads what `now` says.
    pub fn new(origin: Timestamp, now: impl Fn() -> Nanos + Send + Sync + 'static) -> Clock {
        Clock { origin, now: Arc::new(now) }
    }

    /// What time it is.
    pub fn now(&self) -> Nanos {
        (self.now)()
    }

    /// A time as people read it.
    pub fn text(&self, at: Nanos) -> String {
        let since = SignedDuration::try_from(std::time::Duration::from_nanos(at.0));
        let wall = since.ok().and_then(|since| self.origin.checked_add(since).ok());
        wall.unwrap_or(Timestamp::MAX).to_string()
    }

    /// A time as people write it, or what is wrong with it.
    pub fn read(&self, text: &str) -> Result<Nanos, String> {
        let expected = "a time as in 2026-01-31T12:00:00.5Z (RFC 3339)";
        let wall: Timestamp =
            text.parse().map_err(|_| format!("`{}`: expected {expected}", excerpt(text)))?;
        let since = wall.duration_since(self.origin).as_nanos();
        if since < 0 {
            let begins = self.origin;
            return Err(format!("`{}`: the service knows nothing before {begins}", excerpt(text)));
        }
        u64::try_from(since).map(Nanos).map_err(|_| format!("`{}`: too far ahead", excerpt(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), || Nanos(0))
    }

    #[test]
    fn what_is_written_is_read_back_to_the_nanosecond() {
        for at in [0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_001, u64::MAX / 4] {
            let text = clock().text(Nanos(at));
            assert_eq!(clock().read(&text), Ok(Nanos(at)), "{text}");
        }
        assert_eq!(clock().text(Nanos(1_500_000_000)), "2026-01-31T12:00:01.5Z");
        assert_eq!(clock().read("2026-01-31T14:00:01+02:00"), Ok(Nanos::SECOND));
    }

    #[test]
    fn what_is_no_time_of_the_service_is_refused() {
        for text in [
            "",
            "12:00",
            "2026-01-31",
            "2026-01-31T11:59:59.999999999Z",
            "9999-01-01T00:00:00Z",
            "1769860800",
        ] {
            assert!(clock().read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_of_the_machine_s_clock_mean_the_same_in_every_run() {
        let (one, other) = (Clock::system(), Clock::system());
        assert_eq!(one.text(Nanos(0)), "2020-01-01T00:00:00Z");
        assert_eq!(one.read("2030-01-01T00:00:00Z"), other.read("2030-01-01T00:00:00Z"));
        assert!(
            other.now() >= Nanos(Nanos::SECOND.0 * 86_400 * 365)
                && other.now() < one.now().plus(Nanos::SECOND)
        );
    }
}
