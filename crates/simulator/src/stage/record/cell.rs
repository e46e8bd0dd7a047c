//! What is recorded of a cell: its tasks, the moves among them, and its racks' links taken together.

use std::collections::BTreeSet;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, ResourceId, ResourceKind};

use super::Link;
use crate::stage::summary::quantile;

/// A task of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Its job, by position in [`crate::stage::workload::Workload::cell_jobs`].
    pub job: u32,
    /// When it arrived.
    pub arrived: f64,
    /// How long it runs where nothing holds it up.
    pub duration: f64,
    /// When it first had a host.
    pub placed: Option<f64>,
    /// When it had done its work.
    pub finished: Option<f64>,
    /// Where it is, or was last.
    pub host: Option<HostId>,
    /// How often it was moved.
    pub moves: u32,
    /// At how many intervals no host would take it.
    pub refused: u32,
    /// How long it was stopped: while it moved, or because its host failed.
    pub down: f64,
    /// Whether it may be moved.
    pub tolerant: bool,
    /// Whether it is network-intensive: among the tenth of all tasks with the most bandwidth per processor.
    pub intensive: bool,
}

/// A task goes to another host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// When.
    pub at: f64,
    /// The task, by position in [`super::Record::tasks`].
    pub task: u32,
    /// Where it was.
    pub from: HostId,
    /// Where it goes.
    pub to: HostId,
    /// The hot link that it leaves.
    pub link: ResourceId,
}

/// A cell over an interval, by the links of its racks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellInterval {
    /// Start of the interval.
    pub start: f64,
    /// Its length, in seconds.
    pub length: f64,
    /// How many racks there are.
    pub tors: u32,
    /// Racks of which a link was hot, in either direction.
    pub hot_tors: u32,
    /// Racks of which the uplink was hot.
    pub hot_uplinks: u32,
    /// 98th percentile over racks of the utilization of their uplinks (Hotspots table 2).
    pub tor_p98: f64,
    /// What all racks' uplinks carry over what they can (Hotspots table 2).
    pub utilization: f64,
    /// What tasks and moves came to in the meantime.
    pub tasks: CellTasks,
}

/// What happened to the tasks of a cell in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct CellTasks {
    /// Tasks that were put on a host, moves among them.
    pub scheduled: u32,
    /// Those among them that are network-intensive.
    pub intensive: u32,
    /// Those of these that were put on a rack of which a link was hot in the telemetry interval before.
    pub intensive_on_hot: u32,
    /// Tasks moved.
    pub moved: u32,
    /// Tasks on hosts at the end of the interval.
    pub running: u32,
    /// Tasks that no host would take then.
    pub waiting: u32,
    /// Share of the cell's processors that tasks had then.
    pub processors: f64,
}

impl CellInterval {
    /// What the links of one interval come to, which ends at `end`, and beside them what happened to tasks.
    pub(crate) fn of(
        links: &[Link],
        end: f64,
        fabric: &Fabric,
        hot: f64,
        truth: &Capacities,
        tasks: CellTasks,
    ) -> CellInterval {
        let is_hot = |link: &&Link| link.utilization > hot;
        let of_kind = |kind| links.iter().filter(move |link| fabric.kind(link.resource) == kind);
        let (up, down) = (ResourceKind::RackUplink, ResourceKind::RackDownlink);
        let hot_links = of_kind(up).chain(of_kind(down)).filter(is_hot);
        let hot_tors: BTreeSet<DomainId> =
            hot_links.filter_map(|link| fabric.domain_of_link(link.resource)).collect();
        let carried: f64 = of_kind(up).map(|link| link.load).sum();
        let capacity: f64 = of_kind(up).map(|link| truth.get(link.resource).0 as f64).sum();
        let mut uplinks: Vec<f64> = of_kind(up).map(|link| link.utilization).collect();
        uplinks.sort_unstable_by(f64::total_cmp);
        let start = links.first().map_or(end, |link| link.start);
        CellInterval {
            start,
            length: end - start,
            tors: uplinks.len() as u32,
            hot_tors: hot_tors.len() as u32,
            hot_uplinks: of_kind(up).filter(is_hot).count() as u32,
            tor_p98: if uplinks.is_empty() { 0.0 } else { quantile(&uplinks, 0.98) },
            utilization: if capacity > 0.0 { carried / capacity } else { 0.0 },
            tasks,
        }
    }
}

impl Task {
    /// From its arrival to its first host, in seconds.
    pub fn waited(&self) -> Option<f64> {
        self.placed.map(|placed| placed - self.arrived)
    }

    /// How much longer it took from its first host than its work alone would, as a factor.
    pub fn stretch(&self) -> Option<f64> {
        let (placed, finished) = self.placed.zip(self.finished)?;
        (self.duration > 0.0).then(|| (finished - placed) / self.duration)
    }
}
