//! Counter of one port in one direction: converts readings to bits over time intervals.
//!
//! The counter is assumed to grow evenly between two readings. So the bits of consecutive intervals add up to the
//! counted total, for any schedule of readings. Unknown growth (a restart, a jump beyond the port's speed) is in no
//! interval.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

/// Largest number of segments. Beyond it, new growth is merged into the last segment.
const MOST_PIECES: usize = 1024;
/// Largest value of a counter; larger readings are invalid.
const MOST: f64 = 9e18;
/// Wrap-around value of a 32-bit counter.
const TOP: f64 = 4_294_967_296.0;

/// Counter state.
#[derive(Clone, Debug)]
pub struct Counter {
    last: (Nanos, f64),
    /// Known growth that has not been taken yet, as consecutive segments without gaps. The last one ends at the last
    /// reading.
    pieces: VecDeque<Piece>,
    /// Time between the last two readings.
    spacing: Option<Nanos>,
    /// True if the last reading exceeded the port's speed.
    fast: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
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
    pub too_fast: f64,
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
    /// The counter grew faster than the port can carry, once; its growth is unknown.
    Jumped,
}

/// True for a valid counter value.
pub fn is_count(value: f64) -> bool {
    (0.0..=MOST).contains(&value)
}

impl Counter {
    /// A counter with its first reading.
    pub fn new(at: Nanos, value: f64) -> Counter {
        Counter { last: (at, value.floor()), pieces: VecDeque::new(), spacing: None, fast: false }
    }

    /// Adds a reading.
    pub fn read(&mut self, at: Nanos, value: f64, unit: Unit) -> Step {
        let (before, counted) = self.last;
        if at <= before || !is_count(value) {
            return Step::Nothing;
        }
        self.last = (at, value.floor());
        self.spacing = Some(at.since(before));
        let possible = unit.too_fast * at.since(before).as_secs_f64();
        let mut grew = value.floor() - counted;
        // A 32-bit counter wrapped around, unless the growth would exceed the port's speed.
        if grew < 0.0 && unit.narrow && (grew + TOP) * unit.bits <= possible {
            grew += TOP;
        }
        if grew < 0.0 {
            self.pieces.clear();
            return Step::Restarted;
        }
        let bits = grew * unit.bits;
        // Two fast readings in a row are real traffic; then the port's speed is wrong.
        if bits > possible && !std::mem::replace(&mut self.fast, true) {
            self.pieces.clear();
            return Step::Jumped;
        }
        self.fast = bits > possible;
        let is_full = self.pieces.len() >= MOST_PIECES;
        match self.pieces.back_mut().filter(|_| is_full) {
            Some(last) => (last.until, last.bits) = (at, last.bits + bits),
            None => self.pieces.push_back(Piece { from: before, until: at, bits }),
        }
        Step::Grew
    }

    /// Interval of known growth.
    pub fn known(&self) -> (Nanos, Nanos) {
        (self.pieces.front().map_or(self.last.0, |piece| piece.from), self.last.0)
    }

    /// Time between the last two readings.
    pub fn spacing(&self) -> Option<Nanos> {
        self.spacing
    }

    /// Takes the bits of an interval within [`Counter::known`], and drops everything before its end.
    pub fn take(&mut self, from: Nanos, until: Nanos) -> f64 {
        let mut taken = 0.0;
        while let Some(piece) = self.pieces.front_mut().filter(|piece| piece.from < until) {
            let length = piece.until.since(piece.from).as_secs_f64();
            let part = |time: Nanos| piece.bits * (time.as_secs_f64() / length);
            let skipped = part(from.since(piece.from).min(piece.until.since(piece.from)));
            if piece.until > until {
                let left = part(piece.until.since(until));
                taken += (piece.bits - left - skipped).max(0.0);
                (piece.from, piece.bits) = (until, left);
                break;
            }
            taken += piece.bits - skipped;
            self.pieces.pop_front();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: Unit = Unit { bits: 8.0, narrow: false, too_fast: 2e12 };

    fn at(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    proptest! {
        /// Readings split over any number of answers, with intervals taken at any time.
        #[test]
        fn consecutive_intervals_sum_to_the_counted_bits(
            steps in prop::collection::vec((1_u64..60_000, 0_u64..1 << 30), 1..40),
            asks in prop::collection::vec(0_u64..2_000_000, 0..40),
            first in 0_u64..1 << 50,
        ) {
            let mut counter = Counter::new(at(0), first as f64);
            let (mut time, mut value) = (0, first);
            let mut asks: Vec<u64> = asks;
            asks.sort_unstable();
            let (mut taken, mut asked) = (0.0, at(0));
            for &(ms, grew) in &steps {
                (time, value) = (time + ms, value + grew);
                counter.read(at(time), value as f64, Unit { too_fast: f64::INFINITY, ..UNIT });
                let due: Vec<u64> = asks.iter().copied().filter(|&ask| ask <= time).collect();
                asks.retain(|&ask| ask > time);
                for ask in due {
                    if at(ask) <= asked {
                        continue;
                    }
                    prop_assert_eq!(counter.known().0, asked, "consecutive intervals");
                    let bits = counter.take(asked, at(ask));
                    prop_assert!(bits >= 0.0);
                    (taken, asked) = (taken + bits, at(ask));
                }
            }
            taken += counter.take(asked, at(time));
            let whole = 8.0 * (value - first) as f64;
            prop_assert!((taken - whole).abs() <= 1e-6 * whole.max(1.0), "{} {}", taken, whole);
        }

        /// The same readings in one answer, and in several answers with some readings repeated.
        #[test]
        fn the_split_of_readings_into_answers_makes_no_difference(
            steps in prop::collection::vec((1_u64..60_000, 0_u64..1 << 30, any::<bool>()), 1..30),
            again in 0_usize..4,
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
            for (number, _) in readings.iter().enumerate() {
                for &(at, value) in &readings[number.saturating_sub(again)..=number] {
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
            too_fast in prop_oneof![Just(0.0), Just(1e9), Just(f64::INFINITY)],
        ) {
            let mut counter = Counter::new(at(0), 0.0);
            for (time, value) in readings {
                counter.read(Nanos(time), value, Unit { narrow, too_fast, ..UNIT });
                let (from, until) = counter.known();
                let bits = counter.clone().take(from, until);
                prop_assert!(bits.is_finite() && bits >= 0.0);
            }
        }
    }

    #[test]
    fn resets_and_jumps_count_no_bits() {
        let unit = Unit { too_fast: 8000.0, ..UNIT };
        let narrow = Unit { narrow: true, ..unit };
        let top = TOP - 100.0;
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
