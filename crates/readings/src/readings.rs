//! Reported state of links and devices beside their loads: link speeds, queues, and the reads and writes of disks.
//! Decisions use only the speed. A link that reports a lower speed than the cluster's capacity is limited at once. The
//! limit rises again, at most to the cluster's capacity, only after the link has reported a higher speed for a while. A
//! report can therefore make a link appear fuller than it is, but never emptier. A flapping link counts with its
//! slowest speed.

use std::collections::BTreeMap;

use leeward_fabric::{Load, Nanos, ResourceId};

/// Number of intervals for which a link must report a higher speed before the higher speed counts.
const STEADY_INTERVALS: u64 = 10;

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
pub struct Readings {
    /// States by id, in blocks that exist only if one of their resources was reported. Once a second, the service reads
    /// all states in order of ids; in any other order, each read would be a cache miss.
    blocks: Vec<Option<Box<Block>>>,
    /// Links with a lower speed than in the cluster.
    slow: BTreeMap<ResourceId, Slow>,
}

/// States of resources with consecutive ids.
type Block = [Option<LastReading>; BLOCK];

/// Resources per block. In a mesh, only few of very many links report anything.
const BLOCK: usize = 64;

/// State of a resource with at least one report.
#[derive(Clone, Copy, Debug)]
pub struct LastReading {
    until: Nanos,
    reading: Reading,
}

/// Last state of a resource, for another coordinator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KnownReading {
    /// End of its window.
    pub until: Nanos,
    /// The state.
    pub reading: Reading,
    /// Capacity used for decisions if it is lower than the cluster's, with the start of the reports with a higher speed
    /// and the lowest speed since then.
    pub slow: Option<(Load, Option<(Nanos, Load)>)>,
}

#[derive(Clone, Copy, Debug)]
struct Slow {
    /// Capacity in the cluster.
    full: Load,
    /// Capacity used for decisions.
    capacity: Load,
    /// Start of the reports with a higher speed, and the lowest speed since then.
    faster: Option<(Nanos, Load)>,
}

impl LastReading {
    /// The state, unless it is older than `max_age`.
    pub fn recent(&self, now: Nanos, max_age: Nanos) -> Option<Reading> {
        (now <= self.until.plus(max_age)).then_some(self.reading)
    }
}

impl Readings {
    /// Records a state as of `until`. Returns the link's new capacity if it differs from `capacity`, the current one.
    pub fn record(
        &mut self,
        resource: ResourceId,
        until: Nanos,
        reading: Reading,
        capacity: Load,
        interval: Nanos,
    ) -> Option<Load> {
        let last = self.get(resource).map(|last| last.until);
        // Most links never report any state and need no memory.
        if last.is_some_and(|last| until <= last) || (last.is_none() && reading == Reading::default()) {
            return None;
        }
        let slow = self.slow.get(&resource).copied();
        let full = slow.map_or(capacity, |slow| slow.full);
        let speed = reading.speed.map_or(full, |speed| speed.min(full));
        let mut new = slow.unwrap_or(Slow { full, capacity: full, faster: None });
        if speed <= new.capacity {
            new = Slow { capacity: speed, faster: None, ..new };
        } else {
            let (since, lowest) = new.faster.unwrap_or((until, speed));
            let lowest = lowest.min(speed);
            let is_steady = until.since(since).0 >= interval.0.saturating_mul(STEADY_INTERVALS);
            new.faster = (!is_steady).then_some((since, lowest));
            new.capacity = if is_steady { lowest } else { new.capacity };
        }
        if new.capacity < full {
            self.slow.insert(resource, new);
        } else if slow.is_some() {
            self.slow.remove(&resource);
        }
        self.set(resource, LastReading { until, reading });
        Some(new.capacity).filter(|&new| new != capacity && (slow.is_some() || new < full))
    }

    /// State of a resource; `None` without a report.
    pub fn get(&self, resource: ResourceId) -> Option<&LastReading> {
        self.blocks.get(resource.index() / BLOCK)?.as_ref()?[resource.index() % BLOCK].as_ref()
    }

    /// The cluster's capacity of a link with a lower speed.
    pub fn full(&self, link: ResourceId) -> Option<Load> {
        self.slow.get(&link).map(|slow| slow.full)
    }

    /// The last state of a resource, for another coordinator.
    pub fn known(&self, resource: ResourceId) -> Option<KnownReading> {
        let LastReading { until, reading } = *self.get(resource)?;
        let slow = self.slow.get(&resource).map(|slow| (slow.capacity, slow.faster));
        Some(KnownReading { until, reading, slow })
    }

    /// Continues with a state of another coordinator for a resource with the capacity `full`, unless a newer state is
    /// known. Returns the capacity used for decisions if it is lower.
    pub fn restore(&mut self, resource: ResourceId, known: &KnownReading, full: Load) -> Option<Load> {
        let &KnownReading { until, reading, slow } = known;
        if self.get(resource).is_some_and(|last| until <= last.until) {
            return None;
        }
        self.set(resource, LastReading { until, reading });
        // The cluster may have a higher capacity now.
        let slow = slow.or(reading.speed.map(|speed| (speed, None)));
        let (capacity, faster) = slow.filter(|&(capacity, _)| capacity >= Load(0) && capacity < full)?;
        let faster = faster.map(|(since, speed)| (since.min(until), speed.max(capacity).min(full)));
        self.slow.insert(resource, Slow { full, capacity, faster });
        Some(capacity)
    }

    fn set(&mut self, resource: ResourceId, last: LastReading) {
        let (block, at) = (resource.index() / BLOCK, resource.index() % BLOCK);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, None);
        }
        self.blocks[block].get_or_insert_with(|| Box::new([None; BLOCK]))[at] = Some(last);
    }

    /// States of resources from `first` on, in order of ids.
    pub fn from(&self, first: ResourceId) -> impl Iterator<Item = (ResourceId, &LastReading)> {
        let blocks = self.blocks.iter().enumerate().skip(first.index() / BLOCK);
        let blocks = blocks.filter_map(|(number, block)| Some((number * BLOCK, block.as_ref()?)));
        let all = blocks.flat_map(|(begin, block)| (begin as u32..).zip(block.iter()));
        let reported = all.filter_map(|(id, last)| Some((ResourceId(id), last.as_ref()?)));
        reported.filter(move |(resource, _)| *resource >= first)
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
            reports in prop::collection::vec((1_u64..5, prop::option::of(0_i64..20_000)), 1..200),
        ) {
            let (mut readings, mut capacity, mut at) = (Readings::default(), FULL, Nanos(0));
            let mut history: Vec<(Nanos, Load)> = Vec::new();
            for (seconds, speed) in reports {
                at = at.plus(Nanos(seconds * Nanos::SECOND.0));
                let reading = Reading { speed: speed.map(Load), ..Reading::default() };
                let new = readings.record(ResourceId(0), at, reading, capacity, Nanos::SECOND);
                prop_assert!(new.is_none_or(|new| new != capacity), "an update equals the current capacity");
                capacity = new.unwrap_or(capacity);
                history.push((at, reading.speed.unwrap_or(FULL).min(FULL)));
                // The capacity is at most every speed reported in the last ten intervals, and equals one of the
                // reported speeds.
                let long_ago = at.since(Nanos(STEADY_INTERVALS * Nanos::SECOND.0));
                let recent = history.iter().filter(|&&(at, _)| at > long_ago).map(|&(_, speed)| speed);
                prop_assert!(capacity <= recent.min().unwrap_or(FULL));
                prop_assert!(history.iter().any(|&(_, speed)| speed == capacity) || capacity == FULL);
                prop_assert_eq!(readings.full(ResourceId(0)), (capacity < FULL).then_some(FULL));
            }
        }
    }

    proptest! {
        /// Arbitrary resources and orders of reports.
        #[test]
        fn the_last_reading_of_each_resource_is_available_until_it_is_stale(
            reports in prop::collection::vec((0_u32..40, 1_u64..100, 0_i64..20_000), 1..100),
            first in 0_u32..50,
            now in 1_u64..200,
        ) {
            let (mut readings, mut last) = (Readings::default(), std::collections::BTreeMap::new());
            for (resource, until, queue) in reports {
                let reading = Reading { queue: Some(queue as f64), ..Reading::default() };
                readings.record(ResourceId(resource), Nanos(until), reading, FULL, Nanos::SECOND);
                let newest = last.entry(resource).or_insert((until, queue));
                *newest = if until > newest.0 { (until, queue) } else { *newest };
            }
            let queue = |last: &LastReading| last.recent(Nanos(now), Nanos(20))?.queue;
            for resource in 0..50 {
                let expected = last.get(&resource).filter(|(until, _)| now <= until + 20).map(|&(_, queue)| queue as f64);
                prop_assert_eq!(readings.get(ResourceId(resource)).and_then(queue), expected);
            }
            let found: Vec<u32> = readings.from(ResourceId(first)).map(|(resource, _)| resource.0).collect();
            let expected: Vec<u32> = last.range(first..).map(|(&resource, _)| resource).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(readings.from(ResourceId(0)).count(), last.len());
        }
    }

    #[test]
    fn a_recovered_speed_counts_after_a_delay_and_old_windows_do_not() {
        let mut readings = Readings::default();
        let mut record = |second: u64, speed: i64, capacity: Load| {
            let reading = Reading { speed: Some(Load(speed)), ..Reading::default() };
            let until = Nanos(second * Nanos::SECOND.0);
            readings.record(ResourceId(3), until, reading, capacity, Nanos::SECOND)
        };
        assert_eq!(record(100, 40_000, FULL), None, "the cluster's capacity is lower");
        assert_eq!(record(101, 1_000, FULL), Some(Load(1_000)));
        assert_eq!(record(100, 10, Load(1_000)), None, "the window is older");
        for second in 102..112 {
            assert_eq!(record(second, 10_000, Load(1_000)), None);
        }
        assert_eq!(record(112, 10_000, Load(1_000)), Some(FULL));
    }
}
