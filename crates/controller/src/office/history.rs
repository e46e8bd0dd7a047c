//! The last hour of every link: what it carried as a share of its capacity, in steps of ten seconds. Steps are shared and
//! never change, so readers wait for nobody.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_fabric::{Fabric, Nanos};

use crate::desk::World;

/// Seconds of a step.
pub(super) const STEP: u64 = 10;
/// Steps that are kept: an hour.
const STEPS: usize = 360;

/// A step: where it ends, and the mean of each link in order of ids; not a number where it was not seen.
struct Step {
    ends: Nanos,
    fabric: Arc<Fabric>,
    links: Box<[f32]>,
}

/// The last hour.
#[derive(Default)]
pub(super) struct History {
    steps: ArcSwap<VecDeque<Arc<Step>>>,
}

/// What the step under way has seen so far; the writer's alone.
#[derive(Default)]
pub(super) struct Sums {
    ends: Nanos,
    sums: Vec<(f64, u32)>,
}

impl History {
    /// Takes a world in. A step ends when the first one after it comes.
    pub fn note(&self, under_way: &mut Sums, world: &World) {
        let length = STEP * Nanos::SECOND.0;
        let ends = Nanos((world.at.0 / length + 1) * length);
        if under_way.ends != ends || under_way.sums.len() != world.links.len() {
            if under_way.sums.len() == world.links.len() {
                self.push(under_way, world.fabric.clone());
            }
            *under_way = Sums { ends, sums: vec![(0.0, 0); world.links.len()] };
        }
        for ((sum, count), state) in under_way.sums.iter_mut().zip(&world.links) {
            if let Some(utilization) = state.utilization() {
                (*sum, *count) = (*sum + utilization, *count + 1);
            }
        }
    }

    fn push(&self, done: &Sums, fabric: Arc<Fabric>) {
        let mean =
            |&(sum, count): &(f64, u32)| if count == 0 { f32::NAN } else { (sum / f64::from(count)) as f32 };
        let step = Arc::new(Step { ends: done.ends, fabric, links: done.sums.iter().map(mean).collect() });
        let mut steps = VecDeque::clone(&self.steps.load());
        steps.push_back(step);
        // The first world of a service may be of years ago: nobody had told its desk the time yet.
        let hour_ago = done.ends.since(Nanos(STEPS as u64 * STEP * Nanos::SECOND.0));
        while steps.len() > STEPS || steps.front().is_some_and(|step| step.ends <= hour_ago) {
            steps.pop_front();
        }
        self.steps.store(Arc::new(steps));
    }

    /// Steps that end after `since`, `join` of them to one.
    pub fn since(&self, since: Nanos, join: u64) -> Slots {
        let steps = self.steps.load();
        let wanted = steps.iter().filter(|step| step.ends > since).cloned().collect();
        Slots { steps: wanted, join }
    }
}

/// Steps that somebody asked for.
pub struct Slots {
    steps: Vec<Arc<Step>>,
    /// How many are one.
    join: u64,
}

impl Slots {
    /// Seconds of one.
    pub fn step(&self) -> u64 {
        STEP * self.join
    }

    /// Where the first begins.
    pub fn from(&self) -> Option<Nanos> {
        let first = self.steps.first()?;
        let length = self.step() * Nanos::SECOND.0;
        Some(Nanos(first.ends.0.saturating_sub(1) / length * length))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let length = self.step() * Nanos::SECOND.0;
        let (Some(from), Some(last)) = (self.from(), self.steps.last()) else { return 0 };
        ((last.ends.0 - 1 - from.0) / length + 1) as usize
    }

    /// Mean utilization of the link at a position of a fabric, of each; `None` where it was not seen, or nothing was
    /// known of the network.
    pub fn of(&self, fabric: &Arc<Fabric>, link: usize) -> Vec<Option<f32>> {
        let length = self.step() * Nanos::SECOND.0;
        let Some(from) = self.from() else { return Vec::new() };
        let mut sums = vec![(0.0_f32, 0_u32); self.count()];
        for step in self.steps.iter().filter(|step| Arc::ptr_eq(&step.fabric, fabric)) {
            let value = step.links.get(link).copied().unwrap_or(f32::NAN);
            let (sum, count) = &mut sums[((step.ends.0 - 1 - from.0) / length) as usize];
            if !value.is_nan() {
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f32)).collect()
    }
}
