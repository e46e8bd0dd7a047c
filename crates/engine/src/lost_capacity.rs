//! Capacity of links that was lost without an announcement, learned from their own loads (Hotspots section 3.4, the
//! first incident: a rollout halved the uplinks of racks).
//!
//! The load of a link below its capacity changes from window to window, because many tasks share it. A full link
//! carries its capacity, whatever the tasks want: its top is flat. So a link that is flat for several windows, at a level
//! below its believed capacity, has this level as its capacity. This is the windowed maximum by which BBR measures a
//! bottleneck (Cardwell et al. 2016), used only where the maximum is reached in every window. A link whose load
//! hardly ever changes gives no evidence.
//!
//! A transfer that limits itself is flat too. A full link has a standing queue, so where queues are reported, a flat load
//! counts only with a queue in each window. Elsewhere it counts only near the recent maximum of the load: links seldom lose
//! more than a part of their capacity, and a level far below the usual load is that of a quiet time.
//!
//! The level counts until the link carries more, or for a while after it was last full: a link that other work avoids
//! never shows that its capacity is back. A lower level replaces it only with a queue.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_ledger::Sample;

/// Number of windows in which the load of a full link is flat.
const FLAT_WINDOWS: usize = 6;
/// Largest spread of a flat load, as a share of the usual change between two windows, and of the load.
const FLAT_OF_USUAL: f64 = 1.0 / 6.0;
const FLAT_OF_LOAD: f64 = 0.01;
/// Least usual change of a link for which a flat load means anything.
const LEAST_USUAL: f64 = 0.005;
/// Number of changes that must be known before a flat load means anything, and weight of the latest change.
const KNOWN_CHANGES: u32 = 20;
const WEIGHT: f64 = 1.0 / 32.0;
/// Levels that are learned, as shares of the believed capacity. A link at its believed capacity has lost none, and a link
/// with little load is seldom full.
const LEVELS: std::ops::Range<f64> = 0.1..0.95;
/// Least level of a link without reported queues, as a share of the recent maximum of its load.
const NEAR: f64 = 0.9;
/// Time in which the maximum of a link's load fades by 63 %.
const RECENT: Nanos = Nanos(2 * 3_600 * Nanos::SECOND.0);
/// Excess over the learned level that shows that the link has more capacity.
const EXCESS: f64 = 0.02;
/// Number of intervals for which a level counts after the link was last full.
const INTERVALS: u64 = 240;

/// Links of racks with their last loads.
#[derive(Default)]
pub(crate) struct LostCapacity {
    links: BTreeMap<ResourceId, Link>,
    /// Queues at the ends of the windows that come next.
    queues: BTreeMap<ResourceId, f64>,
}

/// Knowledge about the capacity of a link from its loads, for another engine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KnownCapacity {
    /// End of the last window.
    pub until: Nanos,
    /// Usual change between two windows, as a share of the load.
    pub usual: f64,
    /// Number of changes behind the usual one.
    pub changes: u32,
    /// Recent maximum of the load, in bit/s.
    pub most_bps: f64,
    /// Learned capacity, and the time until which it counts.
    pub learned: Option<(Load, Nanos)>,
}

struct Link {
    /// Believed capacity.
    full: i64,
    /// Loads of the last windows, the latest last.
    loads: VecDeque<i64>,
    /// End of the last window.
    until: Nanos,
    /// Usual change between two windows, as a share of the load, while the load is not flat.
    usual: f64,
    changes: u32,
    /// Recent maximum of the load.
    most: f64,
    /// Number of the last windows in a row with a queue; `None` if the last queue was not reported.
    queued: Option<usize>,
    /// Learned capacity, and the time until which it counts.
    learned: Option<(i64, Nanos)>,
}

impl LostCapacity {
    /// Believed capacity of a link, if a lower one was learned.
    pub fn full(&self, resource: ResourceId) -> Option<Load> {
        let link = self.links.get(&resource)?;
        link.learned.map(|_| Load(link.full))
    }

    /// Takes a new believed capacity. Returns the capacity that counts: the learned one if it is lower.
    pub fn believe(&mut self, resource: ResourceId, capacity: Load) -> Load {
        let Some(link) = self.links.get_mut(&resource) else { return capacity };
        link.full = capacity.0;
        link.learned = link.learned.filter(|&(learned, _)| learned < capacity.0);
        Load(link.learned.map_or(capacity.0, |(learned, _)| learned))
    }

    /// Forgets all links. Returns those with a learned capacity, with the believed one.
    pub fn clear(&mut self) -> Vec<(ResourceId, Load)> {
        let links = std::mem::take(self).links.into_iter();
        links.filter(|(_, link)| link.learned.is_some()).map(|(id, link)| (id, Load(link.full))).collect()
    }

    /// Takes the queue of a link at the end of its next window.
    pub fn set_queue(&mut self, resource: ResourceId, queue: f64) {
        self.queues.insert(resource, queue);
    }

    /// Takes a window of a link whose capacity counts as `capacity` now. Returns another capacity if that changes.
    pub fn observe(&mut self, sample: &Sample, capacity: Load, interval: Nanos) -> Option<Load> {
        let Sample { resource, window: (_, until), load: Load(load), .. } = *sample;
        let queue = self.queues.remove(&resource);
        let link = self.links.entry(resource).or_insert_with(|| Link::new(capacity));
        if until <= link.until {
            return None;
        }
        link.queued = queue.map(|queue| if queue > 0.0 { link.queued.unwrap_or(0) + 1 } else { 0 });
        if link.learned.is_none() {
            link.full = capacity.0;
        }
        let flat = link.add(load, until);
        let learned = match (link.learned, flat) {
            (Some((learned, _)), _) if load as f64 > learned as f64 * (1.0 + EXCESS) => None,
            (_, Some(level)) if link.is_full_at(level) => Some((level, until.plus(lifetime(interval)))),
            (Some((_, expired)), _) if expired <= until => None,
            (learned, _) => learned,
        };
        link.learned = learned;
        let new = learned.map_or(link.full, |(learned, _)| learned);
        (new != capacity.0).then_some(Load(new))
    }

    /// The knowledge about links from `first` on and before `end`, for another engine.
    pub fn known(
        &self,
        first: ResourceId,
        end: ResourceId,
    ) -> impl Iterator<Item = (ResourceId, KnownCapacity)> {
        self.links.range(first..end).map(|(&resource, link)| {
            let &Link { until, usual, changes, most, learned, .. } = link;
            let learned = learned.map(|(level, expires)| (Load(level), expires));
            (resource, KnownCapacity { until, usual, changes, most_bps: most, learned })
        })
    }

    /// Continues with the knowledge of another engine about a link whose capacity counts as `capacity`. Returns the learned
    /// capacity if it counts at the time `now`. Ignores values that no loads can give.
    pub fn restore(
        &mut self,
        resource: ResourceId,
        known: KnownCapacity,
        capacity: Load,
        (now, interval): (Nanos, Nanos),
    ) -> Option<Load> {
        let KnownCapacity { until, usual, changes, most_bps: most, learned } = known;
        if !(0.0..=1.0).contains(&usual)
            || !most.is_finite()
            || most < 0.0
            || self.links.contains_key(&resource)
        {
            return None;
        }
        let mut link = Link { until, usual, changes, most, ..Link::new(capacity) };
        let expires = |at: Nanos| at.min(until.plus(lifetime(interval)));
        let learned = learned.map(|(Load(level), at)| (level, expires(at)));
        link.learned = learned.filter(|&(level, at)| link.may_be_full_at(level) && now < at);
        let counts = link.learned.map(|(level, _)| Load(level));
        self.links.insert(resource, link);
        counts
    }
}

/// Time for which a level counts after the link was last full.
fn lifetime(interval: Nanos) -> Nanos {
    Nanos(interval.0.saturating_mul(INTERVALS))
}

impl Link {
    /// A link without loads.
    fn new(Load(full): Load) -> Link {
        Link {
            full,
            loads: VecDeque::new(),
            until: Nanos(0),
            usual: 0.0,
            changes: 0,
            most: 0.0,
            queued: None,
            learned: None,
        }
    }

    /// True if a link with this capacity may have lost the rest.
    fn may_be_full_at(&self, level: i64) -> bool {
        LEVELS.contains(&(level as f64 / self.full.max(1) as f64))
    }

    /// True if a flat load at this level shows that the link has no more capacity.
    fn is_full_at(&self, level: i64) -> bool {
        let is_evident = match self.queued {
            Some(windows) => windows >= FLAT_WINDOWS,
            None => {
                let least = self.learned.map_or(0.0, |(learned, _)| learned as f64 * (1.0 - EXCESS));
                level as f64 >= least.max(self.most * NEAR)
            }
        };
        is_evident && self.may_be_full_at(level)
    }

    /// Adds the load of a window. Returns the level of the last windows if it is flat.
    fn add(&mut self, load: i64, until: Nanos) -> Option<i64> {
        let passed = until.since(self.until).as_secs_f64() / RECENT.as_secs_f64();
        self.most = (self.most * (-passed).exp()).max(load as f64);
        self.until = until;
        if let Some(&before) = self.loads.back() {
            let change = load.abs_diff(before) as f64 / load.max(before).max(1) as f64;
            let tolerance = self.tolerance();
            // The change at the beginning of a flat top is as large as any, and those within it say nothing.
            if change > tolerance || self.changes < KNOWN_CHANGES {
                self.changes = self.changes.saturating_add(1);
                self.usual += WEIGHT.max(1.0 / f64::from(self.changes)) * (change - self.usual);
            }
        }
        self.loads.push_back(load);
        if self.loads.len() > FLAT_WINDOWS {
            self.loads.pop_front();
        }
        let (least, most) = (*self.loads.iter().min()?, *self.loads.iter().max()?);
        let is_flat = (most - least) as f64 <= self.tolerance() * most as f64;
        let is_known = self.changes >= KNOWN_CHANGES && self.usual >= LEAST_USUAL;
        (is_known && self.loads.len() == FLAT_WINDOWS && is_flat && most > 0).then_some(most)
    }

    fn tolerance(&self) -> f64 {
        (self.usual * FLAT_OF_USUAL).min(FLAT_OF_LOAD)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL: Load = Load(20_000_000);
    const LINK: ResourceId = ResourceId(3);

    /// Loads of consecutive seconds, each at most `capacity`. Returns the capacity that counts after each.
    fn run(lost: &mut LostCapacity, from: u64, loads: &[i64], capacity: i64) -> Vec<i64> {
        let mut counted =
            lost.links.get(&LINK).and_then(|link| link.learned).map_or(FULL.0, |(level, _)| level);
        let seconds = (from..).zip(loads);
        let step = |(second, &load): (u64, &i64)| {
            let at = |second: u64| Nanos(second * Nanos::SECOND.0);
            let window = (at(second), at(second + 1));
            let load = Load(load.min(capacity));
            let sample = Sample { resource: LINK, window, load, guaranteed: None };
            counted = lost.observe(&sample, Load(counted), Nanos::SECOND).map_or(counted, |new| new.0);
            counted
        };
        seconds.map(step).collect()
    }

    /// A load around `mean` that changes by up to a tenth of it.
    fn varied(mean: i64, count: usize) -> Vec<i64> {
        (0..count as i64).map(|at| mean + mean / 1000 * ((at * 7919) % 200 - 100)).collect()
    }

    proptest! {
        #[test]
        fn a_varying_load_below_capacity_loses_nothing(
            means in prop::collection::vec(1_000_000_i64..18_000_000, 1..4),
        ) {
            let loads: Vec<i64> = means.iter().flat_map(|&mean| varied(mean, 200)).collect();
            let mut lost = LostCapacity::default();
            prop_assert!(run(&mut lost, 0, &loads, FULL.0).iter().all(|&counted| counted == FULL.0));
        }

        #[test]
        fn a_learned_capacity_is_one_that_the_link_carried(
            loads in prop::collection::vec(0_i64..20_000_000, 1..300), capacity in 1_i64..20_000_000,
        ) {
            let mut lost = LostCapacity::default();
            for counted in run(&mut lost, 0, &loads, capacity) {
                prop_assert!(counted == FULL.0 || (counted <= capacity && counted >= FULL.0 / 10));
            }
        }
    }

    #[test]
    fn half_a_link_is_learned_within_six_full_windows_and_forgotten_once_it_carries_more() {
        let mut lost = LostCapacity::default();
        let half = FULL.0 / 2;
        assert!(run(&mut lost, 0, &varied(9_000_000, 60), FULL.0).iter().all(|&counted| counted == FULL.0));
        // 12 Mb/s are wanted, and 10 Mb/s carried.
        let counted = run(&mut lost, 60, &varied(12_000_000, 10), half);
        assert_eq!(counted.iter().position(|&counted| counted == half), Some(FLAT_WINDOWS - 1));
        assert_eq!(lost.full(LINK), Some(FULL));
        // Work avoids the link, and the level stays.
        assert_eq!(run(&mut lost, 70, &varied(6_000_000, 100), half).last(), Some(&half));
        // An announcement of the believed capacity does not say that the link carries it.
        assert_eq!(lost.believe(LINK, FULL), Load(half));
        // The uplinks are back.
        assert_eq!(run(&mut lost, 170, &varied(12_000_000, 3), FULL.0).last(), Some(&FULL.0));
        assert_eq!(lost.full(LINK), None);
    }

    #[test]
    fn a_level_that_the_link_does_not_reach_again_is_forgotten_after_a_while() {
        let mut lost = LostCapacity::default();
        run(&mut lost, 0, &varied(9_000_000, 60), FULL.0);
        let counted = run(&mut lost, 60, &varied(12_000_000, 10), FULL.0 / 2);
        assert_eq!(counted.last(), Some(&(FULL.0 / 2)));
        let counted = run(&mut lost, 70, &varied(6_000_000, INTERVALS as usize + 10), FULL.0);
        assert_eq!(counted.iter().position(|&counted| counted == FULL.0), Some(INTERVALS as usize - 1));
        assert_eq!(lost.clear(), []);
    }

    #[test]
    fn a_steady_load_is_no_evidence() {
        let mut lost = LostCapacity::default();
        assert!(run(&mut lost, 0, &[7_000_000; 300], FULL.0).iter().all(|&counted| counted == FULL.0));
    }

    #[test]
    fn a_constant_flow_after_a_busier_time_is_no_lost_capacity() {
        let mut lost = LostCapacity::default();
        run(&mut lost, 0, &varied(12_000_000, 60), FULL.0);
        let counted = run(&mut lost, 60, &[4_000_000; 3_600], FULL.0);
        assert!(counted.iter().all(|&counted| counted == FULL.0), "for an hour");
    }

    #[test]
    fn without_queues_no_lower_level_replaces_a_learned_one() {
        let mut lost = LostCapacity::default();
        run(&mut lost, 0, &varied(9_000_000, 60), FULL.0);
        let half = FULL.0 / 2;
        assert_eq!(run(&mut lost, 60, &varied(12_000_000, 10), half).last(), Some(&half));
        let counted = run(&mut lost, 70, &[half * 95 / 100; 100], half);
        assert!(counted.iter().all(|&counted| counted == half), "{counted:?}");
    }

    #[test]
    fn where_queues_are_reported_a_flat_load_counts_with_a_standing_queue_alone() {
        for (queue, expected) in [(0.0, FULL.0), (30_000.0, FULL.0 / 2)] {
            let mut lost = LostCapacity::default();
            // Far above the level that follows.
            run(&mut lost, 0, &varied(16_000_000, 60), FULL.0);
            let mut counted = Vec::new();
            for second in 60..80 {
                lost.set_queue(LINK, queue);
                counted.extend(run(&mut lost, second, &[15_000_000], FULL.0 / 2));
            }
            assert_eq!(counted.last(), Some(&expected), "{counted:?}");
            assert!(counted[..FLAT_WINDOWS - 1].iter().all(|&counted| counted == FULL.0), "{counted:?}");
        }
    }

    #[test]
    fn another_engine_continues_with_a_learned_capacity_and_ignores_impossible_values() {
        let mut lost = LostCapacity::default();
        run(&mut lost, 0, &varied(9_000_000, 60), FULL.0);
        run(&mut lost, 60, &varied(12_000_000, 10), FULL.0 / 2);
        let (_, known) = lost.known(LINK, ResourceId(9)).next().expect("the link has loads");
        let restored = |known: KnownCapacity, second: u64| {
            let mut after = LostCapacity::default();
            let at = (Nanos(second * Nanos::SECOND.0), Nanos::SECOND);
            (after.restore(LINK, known, FULL, at), after)
        };
        let (counts, mut after) = restored(known, 70);
        assert_eq!((counts, after.full(LINK)), (Some(Load(FULL.0 / 2)), Some(FULL)));
        assert_eq!(run(&mut after, 70, &varied(12_000_000, 10), FULL.0 / 2).last(), Some(&(FULL.0 / 2)));
        assert_eq!(run(&mut after, 80, &varied(12_000_000, 3), FULL.0).last(), Some(&FULL.0));
        assert_eq!(restored(known, 70 + INTERVALS).0, None, "it was last full too long ago");
        let too_high = KnownCapacity { learned: Some((FULL, Nanos(u64::MAX))), ..known };
        assert_eq!(restored(too_high, 70).0, None);
        for wrong in [
            KnownCapacity { usual: f64::NAN, ..known },
            KnownCapacity { usual: -1.0, ..known },
            KnownCapacity { most_bps: f64::INFINITY, ..known },
            KnownCapacity { most_bps: -1.0, ..known },
        ] {
            let (counts, after) = restored(wrong, 70);
            assert!(counts.is_none() && after.full(LINK).is_none(), "{wrong:?}");
        }
    }
}
