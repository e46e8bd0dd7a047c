//! Records of a cell: its tasks, their moves, and totals of the links of its racks.

use std::collections::BTreeSet;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, ResourceId, ResourceKind};

use super::Link;
use crate::quantile::quantile;

/// A task of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Its job, by position in [`leeward_workloads::Workload::cell_jobs`].
    pub job: u32,
    /// Arrival time.
    pub arrived: f64,
    /// Run time without any delay.
    pub duration: f64,
    /// Time at which it first had a host.
    pub placed: Option<f64>,
    /// Time at which its work was finished.
    pub finished: Option<f64>,
    /// Current or last host.
    pub host: Option<HostId>,
    /// Number of moves.
    pub moves: u32,
    /// Number of intervals in which no host accepted it.
    pub refused: u32,
    /// Time for which moves or failures of its host stopped it.
    pub down: f64,
    /// True if it may be moved.
    pub tolerant: bool,
    /// True if it is network-intensive: among the tenth of all tasks with the most bandwidth per processor.
    pub intensive: bool,
}

/// Move of a task to another host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Time of the move.
    pub at: f64,
    /// The task, by position in [`super::Record::tasks`].
    pub task: u32,
    /// Previous host.
    pub from: HostId,
    /// New host.
    pub to: HostId,
    /// Hot link that the task leaves.
    pub link: ResourceId,
}

/// A cell over an interval, with totals of the links of its racks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellInterval {
    /// Start of the interval.
    pub start: f64,
    /// Its length, in seconds.
    pub length: f64,
    /// Number of racks.
    pub tors: u32,
    /// Number of racks with a hot link, in either direction.
    pub hot_tors: u32,
    /// Number of racks with a hot uplink.
    pub hot_uplinks: u32,
    /// 98th percentile over racks of the utilization of their uplinks (Hotspots table 2).
    pub tor_p98: f64,
    /// Load of all racks' uplinks over their capacity (Hotspots table 2).
    pub utilization: f64,
    /// Activity of tasks in the interval.
    pub tasks: CellTasks,
}

/// Activity of a cell's tasks in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct CellTasks {
    /// Tasks placed on a host, moves included.
    pub scheduled: u32,
    /// Number of placed tasks that are network-intensive.
    pub intensive: u32,
    /// Number of network-intensive tasks placed on a rack that had a hot link in the previous telemetry interval.
    pub intensive_on_hot: u32,
    /// Tasks moved.
    pub moved: u32,
    /// Tasks on hosts at the end of the interval.
    pub running: u32,
    /// Tasks that no host accepted at the end of the interval.
    pub waiting: u32,
    /// Share of the cell's processors in use at the end of the interval.
    pub processors: f64,
}

impl CellInterval {
    /// Summarizes the links of one interval that ends at `end`, together with the activity of tasks.
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
    /// Time from arrival to the first host, in seconds.
    pub fn wait_time(&self) -> Option<f64> {
        self.placed.map(|placed| placed - self.arrived)
    }

    /// Time from the first host to the end, relative to the undisturbed run time.
    pub fn stretch(&self) -> Option<f64> {
        let (placed, finished) = self.placed.zip(self.finished)?;
        (self.duration > 0.0).then(|| (finished - placed) / self.duration)
    }
}
