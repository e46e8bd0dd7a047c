//! Counter of one port in one direction: converts readings to bits over time intervals.
//!
//! The counter is assumed to grow evenly between two readings. The bits of consecutive intervals therefore add up to
//! the counted total, for any schedule of readings. Unknown growth (a restart, a jump beyond the port's speed, 32 bits that
//! may have overflowed once more) is in no interval.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

/// Largest number of segments. Beyond this number, new growth is merged into the last segment.
const MAX_SEGMENTS: usize = 1024;
/// Largest value of a counter; larger readings are invalid.
const MAX_VALUE: f64 = 9e18;
/// Wrap-around value of a 32-bit counter.
const WRAP_32: f64 = 4_294_967_296.0;

/// Counter state.
#[derive(Clone, Debug)]
pub struct Counter {
    last: (Nanos, f64),
    /// Known growth that [`Counter::take`] has not returned yet, as consecutive segments without gaps. The last segment
    /// ends at the last reading.
    segments: VecDeque<Segment>,
    /// Time between the last two readings.
    spacing: Option<Nanos>,
    /// Time of the reading at which the last value appeared first. A device that answers from a cache repeats a value.
    appeared: Nanos,
    /// True if the last reading exceeded the port's speed.
    fast: bool,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    from: Nanos,
    until: Nanos,
    bits: f64,
}

/// Properties of the counters.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Bits per count.
    pub bits: f64,
    /// True for 32-bit counters, false for 64-bit ones.
    pub narrow: bool,
    /// Rate in bit/s above which a reading exceeds the port's speed.
    pub max_rate: f64,
}

/// Result of a reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The counter grew.
    Grew,
    /// No new information: the reading is not later than the last one, or its value is invalid.
    Nothing,
    /// The counter restarted; its growth is unknown.
    Restarted,
    /// The counter grew by more than the port can carry, and did not at the reading before. The real growth is unknown.
    Jumped,
    /// A value repeated, and then grew by more than the port can carry since the last repetition, but not since the value
    /// appeared. Only the part of the time since the last repetition counts.
    CaughtUp,
    /// A counter of 32 bits grew, but may have overflowed once more. The real growth is unknown.
    Ambiguous,
}

/// True for a valid counter value.
pub fn is_count(value: f64) -> bool {
    (0.0..=MAX_VALUE).contains(&value)
}

impl Counter {
    /// A counter with its first reading.
    pub fn new(at: Nanos, value: f64) -> Counter {
        Counter {
            last: (at, value.floor()),
            segments: VecDeque::new(),
            spacing: None,
            appeared: at,
            fast: false,
        }
    }

    /// Adds a reading.
    pub fn read(&mut self, at: Nanos, value: f64, unit: Unit) -> Step {
        let (before, counted) = self.last;
        if at <= before || !is_count(value) {
            return Step::Nothing;
        }
        self.last = (at, value.floor());
        self.spacing = Some(at.since(before));
        let limit = unit.max_rate * at.since(before).as_secs_f64();
        let mut growth = value.floor() - counted;
        // A 32-bit counter wrapped around, unless the growth would exceed the port's speed.
        if growth < 0.0 && unit.narrow && (growth + WRAP_32) * unit.bits <= limit {
            growth += WRAP_32;
        }
        if growth < 0.0 {
            self.appeared = at;
            self.segments.clear();
            return Step::Restarted;
        }
        if growth > 0.0 && unit.narrow && (growth + WRAP_32) * unit.bits <= limit {
            self.appeared = at;
            self.segments.clear();
            return Step::Ambiguous;
        }
        let mut bits = growth * unit.bits;
        let appeared = if growth > 0.0 { std::mem::replace(&mut self.appeared, at) } else { self.appeared };
        let mut step = Step::Grew;
        if bits > limit && appeared < before && bits <= unit.max_rate * at.since(appeared).as_secs_f64() {
            bits *= at.since(before).as_secs_f64() / at.since(appeared).as_secs_f64();
            step = Step::CaughtUp;
        }
        // Two fast readings in a row are real traffic, and the reported speed of the port is wrong.
        if bits > limit && !std::mem::replace(&mut self.fast, true) {
            self.segments.clear();
            return Step::Jumped;
        }
        self.fast = bits > limit;
        let is_full = self.segments.len() >= MAX_SEGMENTS;
        match self.segments.back_mut().filter(|_| is_full) {
            Some(last) => (last.until, last.bits) = (at, last.bits + bits),
            None => self.segments.push_back(Segment { from: before, until: at, bits }),
        }
        step
    }

    /// True if the counter grew at the last reading.
    pub fn is_growing(&self) -> bool {
        self.appeared == self.last.0 && self.spacing.is_some()
    }

    /// Interval of known growth.
    pub fn known(&self) -> (Nanos, Nanos) {
        (self.segments.front().map_or(self.last.0, |segment| segment.from), self.last.0)
    }

    /// Time between the last two readings.
    pub fn spacing(&self) -> Option<Nanos> {
        self.spacing
    }

    /// Takes the bits of an interval within [`Counter::known`], and drops everything before its end.
    pub fn take(&mut self, from: Nanos, until: Nanos) -> f64 {
        let mut taken = 0.0;
        while let Some(segment) = self.segments.front_mut().filter(|segment| segment.from < until) {
            let length = segment.until.since(segment.from).as_secs_f64();
            let part = |time: Nanos| segment.bits * (time.as_secs_f64() / length);
            let skipped = part(from.since(segment.from).min(segment.until.since(segment.from)));
            if segment.until > until {
                let rest = part(segment.until.since(until));
                taken += (segment.bits - rest - skipped).max(0.0);
                (segment.from, segment.bits) = (until, rest);
                break;
            }
            taken += segment.bits - skipped;
            self.segments.pop_front();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: Unit = Unit { bits: 8.0, narrow: false, max_rate: 2e12 };

    fn at(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    proptest! {
        /// Readings split over any number of answers, with intervals taken at any time.
        #[test]
        fn consecutive_intervals_sum_to_the_counted_bits(
            steps in prop::collection::vec((1_u64..60_000, 0_u64..1 << 30), 1..40),
            ends in prop::collection::vec(0_u64..2_000_000, 0..40),
            first in 0_u64..1 << 50,
        ) {
            let mut counter = Counter::new(at(0), first as f64);
            let (mut time, mut value) = (0, first);
            let mut ends: Vec<u64> = ends;
            ends.sort_unstable();
            let (mut taken, mut last_end) = (0.0, at(0));
            for &(ms, grew) in &steps {
                (time, value) = (time + ms, value + grew);
                counter.read(at(time), value as f64, Unit { max_rate: f64::INFINITY, ..UNIT });
                let due: Vec<u64> = ends.iter().copied().filter(|&end| end <= time).collect();
                ends.retain(|&end| end > time);
                for end in due {
                    if at(end) <= last_end {
                        continue;
                    }
                    prop_assert_eq!(counter.known().0, last_end, "consecutive intervals");
                    let bits = counter.take(last_end, at(end));
                    prop_assert!(bits >= 0.0);
                    (taken, last_end) = (taken + bits, at(end));
                }
            }
            taken += counter.take(last_end, at(time));
            let whole = 8.0 * (value - first) as f64;
            prop_assert!((taken - whole).abs() <= 1e-6 * whole.max(1.0), "{} {}", taken, whole);
        }

        /// The same readings in one answer, and in several answers with some readings repeated.
        #[test]
        fn the_split_of_readings_into_answers_makes_no_difference(
            steps in prop::collection::vec((1_u64..60_000, 0_u64..1 << 30, any::<bool>()), 1..30),
            overlap in 0_usize..4,
        ) {
            let mut readings = vec![];
            let (mut time, mut value) = (0, 0);
            for (ms, grew, resets) in steps {
                time += ms;
                value = if resets { grew / 7 } else { value + grew };
                readings.push((at(time), value as f64));
            }
            let mut whole = Counter::new(at(0), 0.0);
            for &(at, value) in &readings {
                whole.read(at, value, UNIT);
            }
            let mut parts = Counter::new(at(0), 0.0);
            for (index, _) in readings.iter().enumerate() {
                for &(at, value) in &readings[index.saturating_sub(overlap)..=index] {
                    parts.read(at, value, UNIT);
                }
            }
            prop_assert_eq!(whole.known(), parts.known());
            let (from, until) = whole.known();
            prop_assert_eq!(whole.take(from, until), parts.take(from, until));
        }

        #[test]
        fn any_readings_give_finite_nonnegative_bits(
            readings in prop::collection::vec((0_u64..1 << 50, any::<f64>()), 0..40),
            narrow in any::<bool>(),
            max_rate in prop_oneof![Just(0.0), Just(1e9), Just(f64::INFINITY)],
        ) {
            let mut counter = Counter::new(at(0), 0.0);
            for (time, value) in readings {
                counter.read(Nanos(time), value, Unit { narrow, max_rate, ..UNIT });
                let (from, until) = counter.known();
                let bits = counter.clone().take(from, until);
                prop_assert!(bits.is_finite() && bits >= 0.0);
            }
        }
    }

    #[test]
    fn growth_that_is_not_known_counts_no_bits() {
        let unit = Unit { max_rate: 8000.0, ..UNIT };
        let narrow = Unit { narrow: true, ..unit };
        let fast = Unit { max_rate: 8.0 * (WRAP_32 + 400.0), ..narrow };
        let top = WRAP_32 - 100.0;
        for (unit, values, steps, bits) in [
            (unit, [100.0, 300.0, 600.0], [Step::Grew, Step::Grew], Some(4000.0)),
            (unit, [500.0, 20.0, 60.0], [Step::Restarted, Step::Grew], Some(320.0)),
            (unit, [500.0, 600.0, 20.0], [Step::Grew, Step::Restarted], None),
            (narrow, [top, 100.0, 200.0], [Step::Grew, Step::Grew], Some(2400.0)),
            // From half of the range, a wrap-around would exceed the speed.
            (narrow, [1e9, 100.0, 200.0], [Step::Restarted, Step::Grew], Some(800.0)),
            (unit, [top, 100.0, 200.0], [Step::Restarted, Step::Grew], Some(800.0)),
            // The limit is a thousand bytes per second. One series exceeds it once, another twice in a row.
            (unit, [0.0, 1001.0, 1901.0], [Step::Jumped, Step::Grew], Some(7200.0)),
            (unit, [0.0, 1001.0, 2002.0], [Step::Jumped, Step::Grew], Some(8008.0)),
            (unit, [0.0, 100.0, f64::NAN], [Step::Grew, Step::Nothing], Some(800.0)),
            (unit, [0.0, 100.0, -5.0], [Step::Grew, Step::Nothing], Some(800.0)),
            // A repeated value that catches up: 800 bytes per second over both seconds.
            (unit, [0.0, 0.0, 1600.0], [Step::Grew, Step::CaughtUp], Some(6400.0)),
            (unit, [0.0, 0.0, 2001.0], [Step::Grew, Step::Jumped], None),
            // At 2^32 bytes per second, a growth of 200 may be one of 2^32 + 200.
            (fast, [100.0, 300.0, 300.0], [Step::Ambiguous, Step::Grew], Some(0.0)),
            (fast, [top, 100.0, 100.0], [Step::Ambiguous, Step::Grew], Some(0.0)),
        ] {
            let mut counter = Counter::new(at(0), values[0]);
            let found =
                [1, 2].map(|number: usize| counter.read(at(1000 * number as u64), values[number], unit));
            let (from, until) = counter.known();
            let known = (from < until).then(|| counter.take(from, until));
            assert_eq!((found, known), (steps, bits), "{values:?}");
        }
    }
}
