//! Order of placements: by the goal that comes first, and among equals by the other one.

use leeward_fabric::Cost;

use super::Goal;

/// A path or placement, seen by both goals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rank {
    /// Quality for the goal of time; more is better.
    pub speed: f64,
    /// Cost of the hosts.
    pub cost: Cost,
}

impl Rank {
    /// True if this rank is better than another one.
    pub fn beats(self, other: Rank, goal: Goal) -> bool {
        match goal {
            Goal::Time => self.speed > other.speed || (self.speed == other.speed && self.cost < other.cost),
            Goal::Cost => self.cost < other.cost || (self.cost == other.cost && self.speed > other.speed),
        }
    }
}
