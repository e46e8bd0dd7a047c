//! Reported state of links and devices beside their loads: link speeds, queues, and the reads and writes of disks.
//! Decisions use only the speed. A link that reports a lower speed than the cluster's capacity is limited at once. The
//! limit rises again, at most to the cluster's capacity, only after the link has reported a higher speed for a while.
//! So a report can make a link appear fuller than it is, but never emptier. A flapping link counts with its slowest
//! speed.

use std::collections::BTreeMap;

use leeward_fabric::{Load, Nanos, ResourceId};

/// Number of intervals for which a link must report a higher speed before the higher speed counts.
const STEADY: u64 = 10;

/// Reported state of a resource at the end of a window.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reading {
    /// Total speed of a link's interfaces, if reported.
    pub speed: Option<Load>,
    /// Queue: bytes waiting at a link, or average requests at a device.
    pub queue: Option<f64>,
    /// Activity of a device; `None` for links.
    pub requests: Option<Requests>,
}

/// Activity of a device besides its utilization, as far as reported.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Requests {
    /// Bits read per second.
    pub read_bps: Option<f64>,
    /// Bits written per second.
    pub write_bps: Option<f64>,
    /// Requests in progress.
    pub in_flight: Option<u64>,
}

/// Last reported state of each resource.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// By id, in blocks that exist only if one of their resources was reported. Once a second, the service reads all
    /// states in order; in any other order, each read would be a cache miss.
    known: Vec<Option<Box<Block>>>,
    /// Links with a lower speed than in the cluster.
    slow: BTreeMap<ResourceId, Slow>,
}

/// States of resources with consecutive ids.
type Block = [Option<Known>; BLOCK];

/// Resources per block. In a mesh, only few of very many links report anything.
const BLOCK: usize = 64;

/// State of a resource with at least one report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    until: Nanos,
    reading: Reading,
}

#[derive(Clone, Copy, Debug)]
struct Slow {
    /// Capacity in the cluster.
    full: Load,
    believed: Load,
    /// Start of the reports with a higher speed, and the lowest speed since then.
    faster: Option<(Nanos, Load)>,
}

impl Known {
    /// The last state, if it is at least as recent as `seen`.
    pub fn last(&self, now: Nanos, seen: Nanos) -> Option<Reading> {
        (now <= self.until.plus(seen)).then_some(self.reading)
    }
}

impl Readings {
    /// Records a state as of `until`. Returns the link's new capacity if it differs from `capacity`, the current one.
    pub fn take(
        &mut self,
        resource: ResourceId,
        until: Nanos,
        reading: Reading,
        capacity: Load,
        interval: Nanos,
    ) -> Option<Load> {
        let known = self.of(resource).map(|known| known.until);
        // Most links never report any state and need no memory.
        if known.is_some_and(|known| until <= known) || (known.is_none() && reading == Reading::default()) {
            return None;
        }
        let slow = self.slow.get(&resource).copied();
        let full = slow.map_or(capacity, |slow| slow.full);
        let said = reading.speed.map_or(full, |speed| speed.min(full));
        let mut now = slow.unwrap_or(Slow { full, believed: full, faster: None });
        if said <= now.believed {
            now = Slow { believed: said, faster: None, ..now };
        } else {
            let (since, least) = now.faster.unwrap_or((until, said));
            let least = least.min(said);
            let steady = until.since(since).0 >= interval.0.saturating_mul(STEADY);
            now.faster = (!steady).then_some((since, least));
            now.believed = if steady { least } else { now.believed };
        }
        if now.believed < full {
            self.slow.insert(resource, now);
        } else if slow.is_some() {
            self.slow.remove(&resource);
        }
        let (block, at) = (resource.index() / BLOCK, resource.index() % BLOCK);
        if self.known.len() <= block {
            self.known.resize(block + 1, None);
        }
        self.known[block].get_or_insert_with(|| Box::new([None; BLOCK]))[at] = Some(Known { until, reading });
        Some(now.believed).filter(|&believed| believed != capacity && (slow.is_some() || believed < full))
    }

    /// State of a resource; `None` without a report.
    pub fn of(&self, resource: ResourceId) -> Option<&Known> {
        self.known.get(resource.index() / BLOCK)?.as_ref()?[resource.index() % BLOCK].as_ref()
    }

    /// The cluster's capacity of a link with a lower speed.
    pub fn full(&self, link: ResourceId) -> Option<Load> {
        self.slow.get(&link).map(|slow| slow.full)
    }

    /// Last reported state of every resource, with its time.
    pub fn all(&self) -> impl Iterator<Item = (ResourceId, Nanos, Reading)> {
        self.from(ResourceId(0)).map(|(resource, known)| (resource, known.until, known.reading))
    }

    /// States of resources from `first` on, in order of ids.
    pub fn from(&self, first: ResourceId) -> impl Iterator<Item = (ResourceId, &Known)> {
        let blocks = self.known.iter().enumerate().skip(first.index() / BLOCK);
        let blocks = blocks.filter_map(|(number, block)| Some((number * BLOCK, block.as_ref()?)));
        let all = blocks.flat_map(|(begin, block)| (begin as u32..).zip(block.iter()));
        let known = all.filter_map(|(id, known)| Some((ResourceId(id), known.as_ref()?)));
        known.filter(move |(resource, _)| *resource >= first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL: Load = Load(10_000);

    proptest! {
        /// Arbitrary reports at arbitrary times.
        #[test]
        fn a_reported_speed_only_lowers_a_capacity_and_does_so_at_once(
            said in prop::collection::vec((1_u64..5, prop::option::of(0_i64..20_000)), 1..200),
        ) {
            let (mut readings, mut believed, mut at) = (Readings::default(), FULL, Nanos(0));
            let mut history: Vec<(Nanos, Load)> = Vec::new();
            for (passed, speed) in said {
                at = at.plus(Nanos(passed * Nanos::SECOND.0));
                let reading = Reading { speed: speed.map(Load), ..Reading::default() };
                let news = readings.take(ResourceId(0), at, reading, believed, Nanos::SECOND);
                prop_assert!(news.is_none_or(|news| news != believed), "an update equals the believed capacity");
                believed = news.unwrap_or(believed);
                history.push((at, reading.speed.unwrap_or(FULL).min(FULL)));
                // The capacity is at most every speed reported in the last ten intervals, and equals one of the
                // reported speeds.
                let long_ago = at.since(Nanos(STEADY * Nanos::SECOND.0));
                let lately = history.iter().filter(|&&(then, _)| then > long_ago).map(|&(_, said)| said);
                prop_assert!(believed <= lately.min().unwrap_or(FULL));
                prop_assert!(history.iter().any(|&(_, said)| said == believed) || believed == FULL);
                prop_assert_eq!(readings.full(ResourceId(0)), (believed < FULL).then_some(FULL));
            }
        }
    }

    proptest! {
        /// Arbitrary resources and orders of reports.
        #[test]
        fn the_last_reading_of_each_resource_is_available_until_it_is_stale(
            said in prop::collection::vec((0_u32..40, 1_u64..100, 0_i64..20_000), 1..100),
            first in 0_u32..50,
            now in 1_u64..200,
        ) {
            let (mut readings, mut last) = (Readings::default(), std::collections::BTreeMap::new());
            for (resource, until, queue) in said {
                let reading = Reading { queue: Some(queue as f64), ..Reading::default() };
                readings.take(ResourceId(resource), Nanos(until), reading, FULL, Nanos::SECOND);
                let newest = last.entry(resource).or_insert((until, queue));
                *newest = if until > newest.0 { (until, queue) } else { *newest };
            }
            let seen = |known: &Known| known.last(Nanos(now), Nanos(20))?.queue;
            for resource in 0..50 {
                let expected = last.get(&resource).filter(|(until, _)| now <= until + 20).map(|&(_, queue)| queue as f64);
                prop_assert_eq!(readings.of(ResourceId(resource)).and_then(seen), expected);
            }
            let found: Vec<u32> = readings.from(ResourceId(first)).map(|(resource, _)| resource.0).collect();
            let expected: Vec<u32> = last.range(first..).map(|(&resource, _)| resource).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(readings.all().count(), last.len());
        }
    }

    #[test]
    fn a_recovered_speed_counts_after_a_delay_and_old_windows_do_not() {
        let mut readings = Readings::default();
        let mut take = |second: u64, speed: i64, believed: Load| {
            let reading = Reading { speed: Some(Load(speed)), ..Reading::default() };
            let until = Nanos(second * Nanos::SECOND.0);
            readings.take(ResourceId(3), until, reading, believed, Nanos::SECOND)
        };
        assert_eq!(take(100, 40_000, FULL), None, "the cluster says that less is to be used");
        assert_eq!(take(101, 1_000, FULL), Some(Load(1_000)));
        assert_eq!(take(100, 10, Load(1_000)), None, "the window is older");
        for second in 102..112 {
            assert_eq!(take(second, 10_000, Load(1_000)), None);
        }
        assert_eq!(take(112, 10_000, Load(1_000)), Some(FULL));
    }
}
