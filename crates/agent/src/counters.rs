//! Meter: turns interface counters into loads between two readings. No input or output, no clock.
//!
//! Every byte counted while an interface was watched is in exactly one window, regardless of long gaps between readings
//! and of counters that wrap. Unknown traffic makes no window: missing data stays missing and is never reported as an
//! idle link.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::Nanos;

use crate::count::{Count, increase};
use crate::disks::{self, Disk};
use crate::reading::{Interface, Reading};
use crate::window::{Gap, Window};

/// Minimum tolerance for drift between wall clock and monotonic clock between two readings. For readings far apart, the
/// tolerance is a thousandth of the time between them. NTP slews the wall clock by at most 500 ppm. More drift means
/// that the wall clock was set, and that the window's times are unknown.
const DRIFT: Nanos = Nanos(100_000_000);

/// Converts readings into windows.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Names of interfaces to watch, each with its last known index; empty for all physical ones.
    names: BTreeMap<String, Option<u32>>,
    last: Option<Last>,
}

#[derive(Clone, Debug)]
struct Last {
    at: Nanos,
    wall: Nanos,
    counts: BTreeMap<u32, [Count; 2]>,
    disks: Vec<Disk>,
}

impl Meter {
    /// Watches interfaces with these names, even after they are renamed. Without names, watches all physical
    /// interfaces.
    pub fn new(names: impl IntoIterator<Item = String>) -> Meter {
        Meter { names: names.into_iter().map(|name| (name, None)).collect(), last: None }
    }

    /// Indices of the watched interfaces, and the first name without an interface.
    fn watched(&mut self, interfaces: &[Interface]) -> (BTreeSet<u32>, Option<String>) {
        if self.names.is_empty() {
            let physical = interfaces.iter().filter(|one| one.physical);
            return (physical.map(|one| one.index).collect(), None);
        }
        let (mut watched, mut missing) = (BTreeSet::new(), None);
        for (name, known) in &mut self.names {
            // Interface with this name now, or the interface that last had this name.
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

    /// Takes a reading and returns the window that it ends.
    ///
    /// # Errors
    /// Returns the reason why the reading ends no window.
    pub fn take(&mut self, reading: &Reading) -> Result<Window, Gap> {
        let (watched, missing) = self.watched(&reading.interfaces);
        let counts = |one: &Interface| (one.index, [one.sent, one.received]);
        let counts: BTreeMap<u32, [Count; 2]> =
            reading.interfaces.iter().filter(|one| watched.contains(&one.index)).map(counts).collect();
        let disks = reading.disks.clone();
        let now = Last { at: reading.at, wall: reading.wall, counts, disks };
        let window = match (missing, &self.last) {
            (Some(name), _) => Err(Gap::Missing(name)),
            _ if now.counts.is_empty() => Err(Gap::NoInterface),
            (None, None) => Err(Gap::First),
            // Of two readings at the same time, the earlier one is kept, so that no bytes are lost.
            (None, Some(last)) if now.at <= last.at => return Err(Gap::First),
            (None, Some(last)) => between(last, &now),
        };
        self.last = Some(now);
        let all = reading.interfaces.iter();
        let interfaces = all.clone().filter(|one| watched.contains(&one.index));
        let queues = all.filter(|one| is_queue_of(&watched, one, &reading.interfaces));
        let sum = |total: Option<u64>, one: Option<u64>| Some(total?.saturating_add(one?));
        window.map(|window| Window {
            speed_bps: interfaces.map(|one| one.speed_bps).fold(Some(0), sum),
            queued: queues.map(|one| one.queued).fold(Some(0), sum),
            ..window
        })
    }
}

/// Returns true if a watched interface sends this interface's queue: the interface is watched itself, or it is a card
/// below a watched interface. Packets queued at virtual interfaces below a bridge do not leave the machine.
fn is_queue_of(watched: &BTreeSet<u32>, one: &Interface, all: &[Interface]) -> bool {
    let master = |one: &Interface| all.iter().find(|other| Some(other.index) == one.master);
    // A bond may be part of a bridge. No chain is longer than the number of interfaces.
    let mut above = std::iter::successors(Some(one), |one| master(one)).take(all.len());
    watched.contains(&one.index) || (one.physical && above.any(|one| watched.contains(&one.index)))
}

fn between(last: &Last, now: &Last) -> Result<Window, Gap> {
    let (last_counts, wall) = (&last.counts, now.wall.0.checked_sub(last.wall.0));
    let took = now.at.0 - last.at.0;
    let drift = DRIFT.0.max(took / 1_000);
    if !wall.is_some_and(|wall| wall.abs_diff(took) <= drift && wall > 0) {
        return Err(Gap::ClockSet);
    }
    if last_counts.keys().any(|index| !now.counts.contains_key(index)) {
        return Err(Gap::Disappeared);
    }
    let mut bytes = [0_u64; 2];
    for (index, after) in &now.counts {
        let before = last_counts.get(index).ok_or(Gap::Appeared)?;
        for (way, sum) in bytes.iter_mut().enumerate() {
            *sum = sum.saturating_add(increase(before[way], after[way]).ok_or(Gap::Reset)?);
        }
    }
    let work = |after: &Disk| {
        let before = last.disks.iter().find(|before| before.name == after.name)?;
        disks::between(before, after, Nanos(took))
    };
    Ok(Window {
        from: last.wall,
        until: now.wall,
        egress: bytes[0],
        ingress: bytes[1],
        speed_bps: None,
        queued: None,
        disks: now.disks.iter().filter_map(work).collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interface(index: u32, name: &str, sent: Count, received: Count) -> Interface {
        let (master, speed_bps, queued) = (None, None, None);
        Interface { index, name: name.to_owned(), master, physical: true, received, sent, speed_bps, queued }
    }

    fn reading(at_ms: u64, interfaces: Vec<Interface>) -> Reading {
        let (at, wall) = (Nanos(at_ms * 1_000_000), Nanos((at_ms + 1_000_000) * 1_000_000));
        Reading { at, wall, interfaces, disks: Vec::new(), storage: None, pods: None, unread: Vec::new() }
    }

    fn count(bytes: u64, packets: u64) -> Count {
        Count { bytes, packets }
    }

    proptest! {
        /// Counters of 32 or 64 bits with any start value, read at any times.
        #[test]
        fn counted_bytes_are_the_sum_of_windows_times_rates(
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
                // A 32-bit counter that wraps more than once between readings looks like a counter that wraps once or
                // never.
                let carried = [sent, received].map(|bytes| bytes / if bits == 32 { steps.len() as u64 } else { 1 });
                for way in 0..2 {
                    totals[way] += carried[way];
                    unread[way] += carried[way];
                    whole[way] += carried[way];
                }
                packets += 1;
                // Some readings fail; the last one succeeds.
                if missed && number + 1 < steps.len() {
                    continue;
                }
                let [egress, ingress] = [0, 1].map(|way: usize| count(shown(totals[way]), packets));
                let window = meter.take(&reading(at, vec![interface(1, "eth0", egress, ingress)]));
                let window = window.expect("a valid window");
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
                let reading = Reading { at: Nanos(at), wall: Nanos(wall), ..reading(0, interfaces.collect()) };
                if let Ok(window) = meter.take(&reading) {
                    for rate in [window.rate_bps(window.egress), window.rate_bps(window.ingress)] {
                        prop_assert!(rate.is_finite() && rate >= 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_traffic_makes_no_window_and_the_next_one_is_right() {
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
        assert_eq!(
            egress(meter.take(&two)),
            Err(Gap::Appeared),
            "its earlier traffic is not part of this window"
        );
        two.at = Nanos(4_000_000_000);
        two.wall = Nanos(1_004_000_000_000);
        two.interfaces[1].sent = count(5_700, 51);
        assert_eq!(egress(meter.take(&two)), Ok(700));
        assert_eq!(egress(meter.take(&one(5_000, 960, 11))), Err(Gap::Disappeared));
        assert_eq!(egress(meter.take(&one(6_000, 970, 12))), Ok(10));
        assert_eq!(egress(meter.take(&reading(7_000, vec![]))), Err(Gap::NoInterface));
        assert!(egress(meter.take(&one(8_000, 980, 13))).is_err(), "a repeated reading");
        let mut set = one(9_000, 990, 14);
        set.wall = Nanos(set.wall.0 + 3_600_000_000_000);
        assert_eq!(egress(meter.take(&set)), Err(Gap::ClockSet));
    }

    #[test]
    fn speeds_and_queues_are_sums_of_watched_interfaces_or_unknown() {
        let two = |at: u64, speeds: [Option<u64>; 2]| {
            let one = |number: usize| Interface {
                speed_bps: speeds[number],
                queued: speeds[number].map(|speed| speed / 10),
                ..interface(number as u32, "eth", count(at, at), count(at, at))
            };
            reading(at, vec![one(0), one(1)])
        };
        for (speeds, expected) in
            [([Some(40), Some(0)], Some(40)), ([Some(40), None], None), ([Some(40), Some(20)], Some(60))]
        {
            let mut meter = Meter::new([]);
            let _ = meter.take(&two(0, [None, None]));
            let window = meter.take(&two(1_000, speeds)).expect("a window");
            assert_eq!((window.speed_bps, window.queued), (expected, expected.map(|speed| speed / 10)));
        }
    }

    #[test]
    fn queues_of_bonds_and_bridges_are_those_of_their_cards() {
        // Two cards in a bond in a bridge, a virtual machine's port beside the bond, and a third card without a bridge.
        let all = |at: u64| {
            let one = |index, name: &str, master, physical, queued| Interface {
                master,
                physical,
                queued,
                ..interface(index, name, count(at, at), count(at, at))
            };
            let interfaces = vec![
                one(1, "eth0", Some(4), true, Some(1_000)),
                one(2, "eth1", Some(4), true, Some(200)),
                one(3, "eth2", None, true, Some(30_000)),
                one(4, "bond0", Some(5), false, Some(0)),
                one(5, "br0", None, false, Some(0)),
                one(6, "tap0", Some(5), false, Some(4)),
                one(7, "lo", None, false, Some(50)),
                one(8, "own", Some(8), true, None),
            ];
            reading(at, interfaces)
        };
        for (names, expected) in [
            (vec!["bond0"], Some(1_200)),
            (vec!["br0"], Some(1_200)),
            (vec!["br0", "eth0", "eth2"], Some(31_200)),
            (vec!["eth1"], Some(200)),
            (vec!["tap0"], Some(4)),
            (vec!["lo"], Some(50)),
            (vec!["own", "lo"], None),
        ] {
            let mut meter = Meter::new(names.iter().map(|&name| name.to_owned()));
            let _ = meter.take(&all(0));
            let window = meter.take(&all(1_000)).expect("a window");
            assert_eq!(window.queued, expected, "{names:?}");
        }
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
    fn a_missing_interface_makes_no_window_and_is_named() {
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
        let message = "interface `eht1` does not exist; /sys/class/net lists the existing ones";
        assert_eq!(Gap::Missing("eht1".to_owned()).to_string(), message);
        // The interface appears later. Its earlier traffic is in no window; each later window has the traffic of both
        // interfaces.
        let mut meter = Meter::new(["eth0", "eth1"].map(str::to_owned));
        let taken = [(1_000, "eth2"), (2_000, "wan0"), (3_000, "eth1"), (4_000, "wan0")]
            .map(|(at, second)| meter.take(&two(at, second)).map(|window| window.egress));
        assert_eq!(taken, [missing("eth1"), missing("eth1"), Err(Gap::Appeared), Ok(200_000)]);
    }

    #[test]
    fn a_slewed_wall_clock_is_not_a_set_one() {
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
    fn a_counter_that_fell_has_wrapped_or_was_reset() {
        let (short, long) = (1 << 32, u64::MAX);
        for (before, after, expected) in [
            ((500, 5), (700, 6), Some(200)),
            ((short - 10, 5), (20, 6), Some(30)),
            ((long - 9, 5), (20, 6), Some(30)),
            // 64-bit counters that fall slightly, from a low, a middle and a high value.
            ((short + 10, 5), (short + 9, 6), None),
            ((long / 2, 5), (long / 2 - 1, 6), None),
            ((long, 5), (long - 1, 6), None),
            ((500, 5), (0, 0), None),
        ] {
            let counted = increase(count(before.0, before.1), count(after.0, after.1));
            assert_eq!(counted, expected, "{before:?} {after:?}");
        }
    }
}
