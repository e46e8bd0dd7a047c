//! Counters become loads: what a host carried between two readings. No input or output, no clock.
//!
//! Every byte counted while an interface was watched stands in exactly one window, however long the gaps between readings
//! are and however often counters wrap. What cannot be known makes no window: silence is told as what it is, never as an
//! idle link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

/// Wall and monotonic clock may drift apart so far between two readings, or by a thousandth of the time between if that is
/// more: NTP slews the wall clock by 500 ppm at most. Beyond it somebody has set the wall clock, and nobody knows when the
/// window was.
const DRIFT: Nanos = Nanos(100_000_000);

/// What an interface counted one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Bytes.
    pub bytes: u64,
    /// Packets; they tell a counter that wrapped from one that began anew.
    pub packets: u64,
}

/// An interface as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The kernel's number of it, which stays when it is renamed.
    pub index: u32,
    /// What it is called.
    pub name: String,
    /// Whether it is a card of the machine, and no bridge, bond, tunnel or virtual function, whose bytes cross one.
    pub physical: bool,
    /// What came in.
    pub received: Count,
    /// What went out.
    pub sent: Count,
}

/// What was read of a machine at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The monotonic clock.
    pub at: Nanos,
    /// The wall clock, since 1970.
    pub wall: Nanos,
    /// All interfaces.
    pub interfaces: Vec<Interface>,
}

/// What the interfaces carried together between two readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins by the wall clock, since 1970.
    pub from: Nanos,
    /// When it ends.
    pub until: Nanos,
    /// Bytes that the host sent.
    pub egress: u64,
    /// Bytes that it received.
    pub ingress: u64,
}

impl Window {
    /// The mean rate of so many bytes, in bits per second.
    pub fn rate_bps(&self, bytes: u64) -> f64 {
        let seconds = Nanos(self.until.0 - self.from.0).as_secs_f64();
        8.0 * bytes as f64 / seconds
    }
}

/// Why a reading ends no window.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// It is the first.
    First,
    /// No interface is to be watched.
    NoInterface,
    /// No interface has this name that is to be watched; what the others carry is not all that the host does.
    Missing(String),
    /// An interface came, so what it carried before is not known.
    Came,
    /// An interface went, with what it carried last.
    Went,
    /// Counters began anew.
    Reset,
    /// The wall clock was set.
    ClockSet,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gap::Missing(name) => {
                let name = excerpt(name);
                return write!(f, "interface `{name}` is not there; /sys/class/net lists those that are");
            }
            Gap::First => "counters are read for the first time",
            Gap::NoInterface => "there is no interface to watch",
            Gap::Came => "an interface came",
            Gap::Went => "an interface went",
            Gap::Reset => "counters began anew",
            Gap::ClockSet => "the wall clock was set",
        })
    }
}

/// Turns readings into windows.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Names of interfaces to watch, and the index that each had last; empty for all that are physical.
    names: BTreeMap<String, Option<u32>>,
    last: Option<Last>,
}

#[derive(Clone, Debug)]
struct Last {
    at: Nanos,
    wall: Nanos,
    counts: BTreeMap<u32, [Count; 2]>,
}

/// Bytes from one count to a later one; `None` if the counter began anew or stepped back.
fn counted(before: Count, after: Count) -> Option<u64> {
    if after.packets < before.packets {
        return None;
    }
    match after.bytes.checked_sub(before.bytes) {
        Some(bytes) => Some(bytes),
        // A counter of bytes that fell while that of packets did not has wrapped: drivers of 32 bits do, soon.
        None if before.bytes <= u64::from(u32::MAX) => Some((1 << 32) - before.bytes + after.bytes),
        // One of 64 bits that wrapped fell by more than half of its range. One that fell by less was set back.
        None => Some(after.bytes.wrapping_sub(before.bytes)).filter(|&bytes| bytes < 1 << 63),
    }
}

impl Meter {
    /// Watches interfaces of these names, also when they are renamed; all that are physical, if there are none.
    pub fn new(names: impl IntoIterator<Item = String>) -> Meter {
        Meter { names: names.into_iter().map(|name| (name, None)).collect(), last: None }
    }

    /// Indices of the interfaces that are watched, and the first name that none has.
    fn watched(&mut self, interfaces: &[Interface]) -> (BTreeSet<u32>, Option<String>) {
        if self.names.is_empty() {
            let physical = interfaces.iter().filter(|one| one.physical);
            return (physical.map(|one| one.index).collect(), None);
        }
        let (mut watched, mut missing) = (BTreeSet::new(), None);
        for (name, known) in &mut self.names {
            // Who has the name now, or who had it last under another one.
            let named = interfaces.iter().find(|one| one.name == *name);
            let found = named.or_else(|| interfaces.iter().find(|one| Some(one.index) == *known));
            *known = found.map(|one| one.index);
            watched.extend(*known);
            if known.is_none() && missing.is_none() {
                missing = Some(name.clone());
            }
        }
        (watched, missing)
    }

    /// Takes a reading; the window that it ends, or why there is none.
    pub fn take(&mut self, reading: &Reading) -> Result<Window, Gap> {
        let (watched, missing) = self.watched(&reading.interfaces);
        let of = |one: &Interface| (one.index, [one.sent, one.received]);
        let counts: BTreeMap<u32, [Count; 2]> =
            reading.interfaces.iter().filter(|one| watched.contains(&one.index)).map(of).collect();
        let now = Last { at: reading.at, wall: reading.wall, counts };
        let window = match (missing, &self.last) {
            (Some(name), _) => Err(Gap::Missing(name)),
            _ if now.counts.is_empty() => Err(Gap::NoInterface),
            (None, None) => Err(Gap::First),
            // Readings of the same moment: the one before stands, so that nothing is lost.
            (None, Some(last)) if now.at <= last.at => return Err(Gap::First),
            (None, Some(last)) => between(last, &now),
        };
        self.last = Some(now);
        window
    }
}

fn between(last: &Last, now: &Last) -> Result<Window, Gap> {
    let (began, wall) = (&last.counts, now.wall.0.checked_sub(last.wall.0));
    let took = now.at.0 - last.at.0;
    let drift = DRIFT.0.max(took / 1_000);
    if !wall.is_some_and(|wall| wall.abs_diff(took) <= drift && wall > 0) {
        return Err(Gap::ClockSet);
    }
    if began.keys().any(|index| !now.counts.contains_key(index)) {
        return Err(Gap::Went);
    }
    let mut bytes = [0_u64; 2];
    for (index, after) in &now.counts {
        let before = began.get(index).ok_or(Gap::Came)?;
        for (way, sum) in bytes.iter_mut().enumerate() {
            *sum = sum.saturating_add(counted(before[way], after[way]).ok_or(Gap::Reset)?);
        }
    }
    Ok(Window { from: last.wall, until: now.wall, egress: bytes[0], ingress: bytes[1] })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interface(index: u32, name: &str, sent: Count, received: Count) -> Interface {
        Interface { index, name: name.to_owned(), physical: true, received, sent }
    }

    fn reading(at_ms: u64, interfaces: Vec<Interface>) -> Reading {
        Reading { at: Nanos(at_ms * 1_000_000), wall: Nanos((at_ms + 1_000_000) * 1_000_000), interfaces }
    }

    fn count(bytes: u64, packets: u64) -> Count {
        Count { bytes, packets }
    }

    proptest! {
        /// Counters of 32 or 64 bits that begin anywhere, read at any times.
        #[test]
        fn what_is_counted_is_the_sum_of_windows_times_rates(
            begins in [0_u64..1 << 32, 0_u64..1 << 32],
            bits in prop_oneof![Just(32_u32), Just(64)],
            steps in prop::collection::vec((1_u64..100_000, 0_u64..1 << 32, 0_u64..1 << 32, any::<bool>()), 1..40),
        ) {
            let shown = |total: u64| if bits == 32 { total % (1 << 32) } else { total };
            let mut meter = Meter::new([]);
            let (mut at, mut totals, mut packets) = (0, begins, 0);
            let first = [0, 1].map(|way: usize| count(shown(totals[way]), packets));
            prop_assert_eq!(meter.take(&reading(at, vec![interface(1, "eth0", first[0], first[1])])), Err(Gap::First));
            let (mut sums, mut whole, mut end) = ([0.0; 2], [0_u64; 2], Nanos(1_000_000_000_000));
            let mut unread = [0_u64; 2];
            for (number, &(ms, sent, received, missed)) in steps.iter().enumerate() {
                at += ms;
                // A counter of 32 bits that goes round more than once between readings cannot be told from one that did not.
                let carried = [sent, received].map(|bytes| bytes / if bits == 32 { steps.len() as u64 } else { 1 });
                for way in 0..2 {
                    totals[way] += carried[way];
                    unread[way] += carried[way];
                    whole[way] += carried[way];
                }
                packets += 1;
                // Some readings do not come about; the last one does.
                if missed && number + 1 < steps.len() {
                    continue;
                }
                let [egress, ingress] = [0, 1].map(|way: usize| count(shown(totals[way]), packets));
                let window = meter.take(&reading(at, vec![interface(1, "eth0", egress, ingress)]));
                let window = window.expect("nothing is in the way");
                prop_assert_eq!(window.from, end, "windows follow each other");
                prop_assert_eq!([window.egress, window.ingress], unread);
                end = window.until;
                unread = [0; 2];
                let seconds = Nanos(window.until.0 - window.from.0).as_secs_f64();
                sums[0] += seconds * window.rate_bps(window.egress) / 8.0;
                sums[1] += seconds * window.rate_bps(window.ingress) / 8.0;
            }
            for way in 0..2 {
                prop_assert!((sums[way] - whole[way] as f64).abs() <= 1e-9 * whole[way] as f64);
            }
        }

        #[test]
        fn any_readings_make_windows_with_rates_or_reasons(
            readings in prop::collection::vec(
                (0_u64..1 << 40, 0_u64..1 << 40, prop::collection::vec((0_u32..3, any::<[u64; 4]>()), 0..4)), 0..20),
        ) {
            let mut meter = Meter::new([]);
            for (at, wall, interfaces) in readings {
                let interfaces = interfaces.into_iter().map(|(index, [a, b, c, d])| {
                    interface(index, "x", count(a, b), count(c, d))
                });
                let reading = Reading { at: Nanos(at), wall: Nanos(wall), interfaces: interfaces.collect() };
                if let Ok(window) = meter.take(&reading) {
                    for rate in [window.rate_bps(window.egress), window.rate_bps(window.ingress)] {
                        prop_assert!(rate.is_finite() && rate >= 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_known_makes_no_window_and_the_next_one_is_right_again() {
        let one = |at, bytes, packets| {
            reading(at, vec![interface(1, "eth0", count(bytes, packets), count(bytes, packets))])
        };
        let mut meter = Meter::new([]);
        let egress = |window: Result<Window, Gap>| window.map(|window| window.egress);
        assert_eq!(egress(meter.take(&one(0, 1_000, 10))), Err(Gap::First));
        assert_eq!(egress(meter.take(&one(1_000, 900, 9))), Err(Gap::Reset));
        assert_eq!(egress(meter.take(&one(2_000, 950, 10))), Ok(50));
        let mut two = one(3_000, 960, 11);
        two.interfaces.push(interface(2, "eth1", count(5_000, 50), count(0, 0)));
        assert_eq!(egress(meter.take(&two)), Err(Gap::Came), "what it carried before is not of this window");
        two.at = Nanos(4_000_000_000);
        two.wall = Nanos(1_004_000_000_000);
        two.interfaces[1].sent = count(5_700, 51);
        assert_eq!(egress(meter.take(&two)), Ok(700));
        assert_eq!(egress(meter.take(&one(5_000, 960, 11))), Err(Gap::Went));
        assert_eq!(egress(meter.take(&one(6_000, 970, 12))), Ok(10));
        assert_eq!(egress(meter.take(&reading(7_000, vec![]))), Err(Gap::NoInterface));
        assert!(egress(meter.take(&one(8_000, 980, 13))).is_err(), "it came again");
        let mut set = one(9_000, 990, 14);
        set.wall = Nanos(set.wall.0 + 3_600_000_000_000);
        assert_eq!(egress(meter.take(&set)), Err(Gap::ClockSet));
    }

    #[test]
    fn an_interface_is_followed_when_it_is_renamed() {
        let mut meter = Meter::new(["eth0".to_owned()]);
        let named = |at, name: &str, bytes| {
            let other = interface(9, "eth9", count(77 * bytes, 1), count(0, 0));
            reading(at, vec![interface(1, name, count(bytes, 1), count(0, 0)), other])
        };
        assert!(meter.take(&named(0, "eth0", 100)).is_err());
        assert_eq!(meter.take(&named(1_000, "lan0", 150)).map(|window| window.egress), Ok(50));
        assert_eq!(meter.take(&named(2_000, "lan0", 160)).map(|window| window.egress), Ok(10));
    }

    #[test]
    fn what_a_name_without_an_interface_would_carry_is_missed_and_the_name_told() {
        let two = |at: u64, second: &str| {
            let sent = count(100 * at, at);
            reading(at, vec![interface(1, "eth0", sent, sent), interface(2, second, sent, sent)])
        };
        let missing = |name: &str| Err(Gap::Missing(name.to_owned()));
        for (names, second, expected) in [
            (vec!["eth0", "eth1"], "eth1", Ok(200_000)),
            (vec!["eth0"], "eth1", Ok(100_000)),
            (vec!["eth0", "eht1"], "eth1", missing("eht1")),
            (vec!["eht1", "eth0"], "eth1", missing("eht1")),
            (vec!["eth1", "eth0"], "eth2", missing("eth1")),
            (vec!["eth7"], "eth1", missing("eth7")),
        ] {
            let mut meter = Meter::new(names.iter().map(|&name| name.to_owned()));
            let _ = meter.take(&two(1_000, second));
            let window = meter.take(&two(2_000, second)).map(|window| window.egress);
            assert_eq!(window, expected, "{names:?}");
        }
        let told = "interface `eht1` is not there; /sys/class/net lists those that are";
        assert_eq!(Gap::Missing("eht1".to_owned()).to_string(), told);
        // When it comes, what it carried before is of no window, and then both are in one.
        let mut meter = Meter::new(["eth0", "eth1"].map(str::to_owned));
        let taken = [(1_000, "eth2"), (2_000, "wan0"), (3_000, "eth1"), (4_000, "wan0")]
            .map(|(at, second)| meter.take(&two(at, second)).map(|window| window.egress));
        assert_eq!(taken, [missing("eth1"), missing("eth1"), Err(Gap::Came), Ok(200_000)]);
    }

    #[test]
    fn a_wall_clock_that_is_slewed_is_not_taken_for_one_that_was_set() {
        let minutes = 60 * Nanos::SECOND.0;
        for (took, drift, right) in [
            (Nanos::SECOND.0, 90_000_000, true),
            (Nanos::SECOND.0, 110_000_000, false),
            (10 * minutes, 10 * minutes / 2_000, true),
            (10 * minutes, 10 * minutes / 500, false),
        ] {
            for wall in [took + drift, took - drift] {
                let mut meter = Meter::new([]);
                let begin = reading(0, vec![interface(1, "eth0", count(0, 0), count(0, 0))]);
                let end = Reading { at: Nanos(took), wall: Nanos(begin.wall.0 + wall), ..begin.clone() };
                assert_eq!(meter.take(&begin), Err(Gap::First));
                let window = meter.take(&end);
                assert!(if right { window.is_ok() } else { window == Err(Gap::ClockSet) }, "{took} {wall}");
            }
        }
    }

    #[test]
    fn a_counter_that_fell_has_wrapped_or_begun_anew() {
        let (short, long) = (1 << 32, u64::MAX);
        for (before, after, expected) in [
            ((500, 5), (700, 6), Some(200)),
            ((short - 10, 5), (20, 6), Some(30)),
            ((long - 9, 5), (20, 6), Some(30)),
            // Of 64 bits, and back by a little: low, in the middle, and high.
            ((short + 10, 5), (short + 9, 6), None),
            ((long / 2, 5), (long / 2 - 1, 6), None),
            ((long, 5), (long - 1, 6), None),
            ((500, 5), (0, 0), None),
        ] {
            let counted = counted(count(before.0, before.1), count(after.0, after.1));
            assert_eq!(counted, expected, "{before:?} {after:?}");
        }
    }
}
