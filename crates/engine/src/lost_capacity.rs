//! Capacity of links that was lost without an announcement, learned from their own loads (Hotspots section 3.4, the
//! first incident: a rollout halved the uplinks of racks).
//!
//! The load of a link below its capacity changes from window to window, because many tasks share it. A full link
//! carries its capacity, whatever the tasks want: its top is flat. So a link that is flat for several windows, at a level
//! below its believed capacity, has this level as its capacity. This is the windowed maximum by which BBR measures a
//! bottleneck (Cardwell et al. 2016), used only where the maximum is reached in every window. A link whose load
//! hardly ever changes gives no such evidence.
//!
//! The level counts until the link carries more, or for a while after it was last full: a link that other work avoids
//! never shows that its capacity is back.

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
/// Excess over the learned level that shows that the link has more capacity.
const EXCESS: f64 = 0.02;
/// Number of intervals for which a level counts after the link was last full.
const INTERVALS: u64 = 240;

/// Links of racks with their last loads.
#[derive(Default)]
pub(crate) struct LostCapacity(BTreeMap<ResourceId, Link>);

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
    /// Learned capacity, and the time until which it counts.
    learned: Option<(i64, Nanos)>,
}

impl LostCapacity {
    /// Believed capacity of a link, if a lower one was learned.
    pub fn full(&self, resource: ResourceId) -> Option<Load> {
        let link = self.0.get(&resource)?;
        link.learned.map(|_| Load(link.full))
    }

    /// Takes a new believed capacity. Returns the capacity that counts: the learned one if it is lower.
    pub fn believe(&mut self, resource: ResourceId, capacity: Load) -> Load {
        let Some(link) = self.0.get_mut(&resource) else { return capacity };
        link.full = capacity.0;
        link.learned = link.learned.filter(|&(learned, _)| learned < capacity.0);
        Load(link.learned.map_or(capacity.0, |(learned, _)| learned))
    }

    /// Forgets all links. Returns those with a learned capacity, with the believed one.
    pub fn clear(&mut self) -> Vec<(ResourceId, Load)> {
        let links = std::mem::take(&mut self.0).into_iter();
        links.filter(|(_, link)| link.learned.is_some()).map(|(id, link)| (id, Load(link.full))).collect()
    }

    /// Takes a window of a link whose capacity counts as `capacity` now. Returns another capacity if that changes.
    pub fn observe(&mut self, sample: &Sample, capacity: Load, interval: Nanos) -> Option<Load> {
        let Sample { resource, window: (_, until), load: Load(load), .. } = *sample;
        let link = self.0.entry(resource).or_insert_with(|| Link {
            full: capacity.0,
            loads: VecDeque::new(),
            until: Nanos(0),
            usual: 0.0,
            changes: 0,
            learned: None,
        });
        if until <= link.until {
            return None;
        }
        link.until = until;
        if link.learned.is_none() {
            link.full = capacity.0;
        }
        let flat = link.add(load);
        let expires = until.plus(Nanos(interval.0.saturating_mul(INTERVALS)));
        let is_level = |level: f64| LEVELS.contains(&(level / link.full.max(1) as f64));
        let learned = match (link.learned, flat) {
            (Some((learned, _)), _) if load as f64 > learned as f64 * (1.0 + EXCESS) => None,
            (_, Some(level)) if is_level(level as f64) => Some((level, expires)),
            (Some((_, expired)), _) if expired <= until => None,
            (learned, _) => learned,
        };
        link.learned = learned;
        let new = learned.map_or(link.full, |(learned, _)| learned);
        (new != capacity.0).then_some(Load(new))
    }
}

impl Link {
    /// Adds the load of a window. Returns the level of the last windows if it is flat.
    fn add(&mut self, load: i64) -> Option<i64> {
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
        let mut counted = lost.0.get(&LINK).and_then(|link| link.learned).map_or(FULL.0, |(level, _)| level);
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
}
