//! Counters become loads: what a host carried between two readings. No input or output, no clock.
//!
//! Every byte counted while an interface was watched stands in exactly one window, however long the gaps between readings
//! are and however often counters wrap. What cannot be known makes no window: silence is told as what it is, never as an
//! idle link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use leeward_fabric::Nanos;

/// Wall and monotonic clock may drift apart so far between two readings; beyond it somebody has set the wall clock, and
/// nobody knows when the window was.
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// It is the first.
    First,
    /// No interface is to be watched.
    NoInterface,
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

/// Bytes from one count to a later one; `None` if the counter began anew.
fn counted(before: Count, after: Count) -> Option<u64> {
    if after.packets < before.packets {
        return None;
    }
    match after.bytes.checked_sub(before.bytes) {
        Some(bytes) => Some(bytes),
        // A counter of bytes that fell while that of packets did not has wrapped: drivers of 32 bits do, soon.
        None if before.bytes <= u64::from(u32::MAX) => Some((1 << 32) - before.bytes + after.bytes),
        None => Some(after.bytes.wrapping_sub(before.bytes)),
    }
}

impl Meter {
    /// Watches interfaces of these names, also when they are renamed; all that are physical, if there are none.
    pub fn new(names: impl IntoIterator<Item = String>) -> Meter {
        Meter { names: names.into_iter().map(|name| (name, None)).collect(), last: None }
    }

    /// Indices of the interfaces that are watched.
    fn watched(&mut self, interfaces: &[Interface]) -> BTreeSet<u32> {
        if self.names.is_empty() {
            return interfaces.iter().filter(|one| one.physical).map(|one| one.index).collect();
        }
        let mut watched = BTreeSet::new();
        for (name, known) in &mut self.names {
            // Who has the name now, or who had it last under another one.
            let named = interfaces.iter().find(|one| one.name == *name);
            let found = named.or_else(|| interfaces.iter().find(|one| Some(one.index) == *known));
            *known = found.map(|one| one.index);
            watched.extend(*known);
        }
        watched
    }

    /// Takes a reading; the window that it ends, or why there is none.
    pub fn take(&mut self, reading: &Reading) -> Result<Window, Gap> {
        let watched = self.watched(&reading.interfaces);
        let of = |one: &Interface| (one.index, [one.sent, one.received]);
        let counts: BTreeMap<u32, [Count; 2]> =
            reading.interfaces.iter().filter(|one| watched.contains(&one.index)).map(of).collect();
        let now = Last { at: reading.at, wall: reading.wall, counts };
        let window = match &self.last {
            _ if now.counts.is_empty() => Err(Gap::NoInterface),
            None => Err(Gap::First),
            // Readings of the same moment: the one before stands, so that nothing is lost.
            Some(last) if now.at <= last.at => return Err(Gap::First),
            Some(last) => between(last, &now),
        };
        self.last = Some(now);
        window
    }
}

fn between(last: &Last, now: &Last) -> Result<Window, Gap> {
    let (began, wall) = (&last.counts, now.wall.0.checked_sub(last.wall.0));
    let took = now.at.0 - last.at.0;
    if !wall.is_some_and(|wall| wall.abs_diff(took) <= DRIFT.0 && wall > 0) {
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
        assert_eq!(Meter::new(["eth7".to_owned()]).take(&named(0, "eth0", 1)), Err(Gap::NoInterface));
    }
}
