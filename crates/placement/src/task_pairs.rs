//! Constraints on pairs of tasks of a request: tasks that stay apart, and tasks that stay near.

use leeward_fabric::{Fabric, HostId, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Constraint, Constraints};

/// Most tasks in all groups of a request that stay apart; the checks of each host take time in proportion.
pub const MOST_GROUPED: usize = 1_000;
/// Most bounds on round-trip times of a request, for the same reason.
pub const MOST_BOUNDS: usize = 1_000;

/// Level at which tasks are apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Apart {
    /// No two tasks are on one host.
    Host,
    /// No two tasks are in one rack.
    Rack,
}

impl Apart {
    /// True if two hosts are in one place of this level.
    fn is_same(self, fabric: &Fabric, one: HostId, other: HostId) -> bool {
        match self {
            Apart::Host => one == other,
            Apart::Rack => fabric.rack_of(one) == fabric.rack_of(other),
        }
    }
}

/// Tasks of a request of which no two share a host, or a rack.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApartGroup {
    /// Positions of the tasks in the request, in ascending order.
    pub tasks: Vec<u32>,
    /// Level at which they are apart.
    pub level: Apart,
}

impl ApartGroup {
    /// True if the group has this task.
    fn has(&self, task: u32) -> bool {
        self.tasks.binary_search(&task).is_ok()
    }
}

/// Bound on the round-trip time between two tasks of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBound {
    /// Positions of the two tasks in the request, the lower one first.
    pub tasks: (u32, u32),
    /// Longest round-trip time between their hosts.
    pub max: Nanos,
}

impl LatencyBound {
    /// The other task of the bound; `None` if `task` is none of the two.
    pub fn other(&self, task: u32) -> Option<u32> {
        match self.tasks {
            (one, other) if one == task => Some(other),
            (other, one) if one == task => Some(other),
            _ => None,
        }
    }

    /// True if the bound does not allow tasks on these two hosts.
    pub fn excludes(&self, fabric: &Fabric, one: HostId, other: HostId) -> bool {
        fabric.round_trip(one, other).is_none_or(|time| time > self.max)
    }
}

impl Constraints {
    /// True if hosts of other tasks of the request restrict the host of this task.
    pub(crate) fn relates(&self, task: u32) -> bool {
        self.apart.is_some()
            || self.apart_groups.iter().any(|group| group.has(task))
            || self.latency.iter().any(|bound| bound.other(task).is_some())
    }

    /// Constraint for which two tasks of the request must not be on these two hosts; `None` if they may.
    pub(crate) fn conflict(
        &self,
        fabric: &Fabric,
        (task, host): (u32, HostId),
        (other, other_host): (u32, HostId),
    ) -> Option<Constraint> {
        let groups = self.apart_groups.iter().filter(|group| group.has(task) && group.has(other));
        let mut levels = groups.map(|group| group.level).chain(self.apart);
        if levels.any(|level| level.is_same(fabric, host, other_host)) {
            return Some(Constraint::Apart);
        }
        let pair = (task.min(other), task.max(other));
        let bound = self.latency.binary_search_by_key(&pair, |bound| bound.tasks).ok();
        let bound = bound.map(|at| self.latency[at]);
        bound.filter(|bound| bound.excludes(fabric, host, other_host)).map(|_| Constraint::Latency)
    }

    /// Tasks that restrict the host of this task: those of its groups, and those within a bound of it. Some may occur
    /// twice.
    pub(crate) fn related(&self, task: u32) -> impl Iterator<Item = u32> + '_ {
        let groups = self.apart_groups.iter().filter(move |group| group.has(task));
        let grouped = groups.flat_map(|group| group.tasks.iter().copied());
        let near = self.latency.iter().filter_map(move |bound| bound.other(task));
        grouped.chain(near).filter(move |&other| other != task)
    }
}
