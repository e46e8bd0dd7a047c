//! Moves that the windows of telemetry do not show wholly yet. The ledger counts a move from its decision on, and the
//! estimates fade from the old load to the new one, which bridges the time until the task has really moved. The last
//! window alone has no such memory: it shows a task at its old host until the move is carried out. So the test for hot
//! links by windows counts these moves beside the ledger. The estimates do not, since they have them from the ledger.

use std::collections::BTreeMap;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Sign, View};
use leeward_moves::traffic;
use leeward_placement::tasks::{TaskId, Traffic};

use crate::message::Rates;

/// The moves, by task.
#[derive(Default)]
pub(crate) struct OpenMoves(BTreeMap<TaskId, OpenMove>);

/// A move.
#[derive(Clone, Copy)]
pub(crate) struct OpenMove {
    /// Old host.
    pub from: HostId,
    /// New host.
    pub to: HostId,
    /// Time of the decision.
    pub at: Nanos,
    /// Rates of the task on its old host, as last reported.
    pub measured: Rates,
    /// Rates that left the ledger on the old host with the decision.
    pub released: Rates,
    /// Rates that the ledger counts on the new host.
    pub assumed: Rates,
    /// Time at which the task ran on its new host; `None` before.
    pub done: Option<Nanos>,
}

impl OpenMoves {
    /// Adds a move.
    pub fn add(&mut self, task: TaskId, open: OpenMove) {
        self.0.insert(task, open);
    }

    /// Takes the rates of a task that may be about to move.
    pub fn set_rates(&mut self, task: TaskId, rates: Rates) {
        if let Some(open) = self.0.get_mut(&task).filter(|open| open.done.is_none()) {
            open.measured = rates;
        }
    }

    /// Records that a task runs on its new host.
    pub fn finish(&mut self, task: TaskId, now: Nanos) {
        if let Some(open) = self.0.get_mut(&task) {
            open.done = Some(now);
        }
    }

    /// Removes the move of a task that ended, or stayed.
    pub fn remove(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    /// Removes the moves of an app's tasks.
    pub fn remove_app(&mut self, app: u64) {
        let last = TaskId { app, index: u32::MAX };
        let tasks: Vec<TaskId> =
            self.0.range(TaskId { app, index: 0 }..=last).map(|(&task, _)| task).collect();
        tasks.iter().for_each(|&task| self.remove(task));
    }

    /// Drops the moves that all windows show.
    pub fn drop_shown(&mut self, fabric: &Fabric, view: &View<'_>) {
        self.0.retain(|_, open| {
            let Some(done) = open.done else { return true };
            let links = [open.from, open.to].into_iter().flat_map(|host| rack_links(fabric, host));
            links.filter_map(|link| view.last_window(link)).any(|(from, _)| from < done)
        });
    }

    /// Adds to the windows of a view what they and the ledger lack.
    pub fn add_to(&self, fabric: &Fabric, view: &mut View<'_>) {
        for (&task, open) in &self.0 {
            let OpenMove { from, to, at, measured, released, assumed, done } = *open;
            let shows = |host: HostId| done.is_some_and(|done| covers(fabric, view, host, done));
            let (left, came) = (shows(from), shows(to));
            let leaves = if covers(fabric, view, from, at) { measured } else { measured.beyond(released) };
            let comes = covers(fabric, view, to, at) && !came;
            let now = view.now();
            if !left {
                traffic(fabric, task, leaves.traffic(), from, Sign::Relieves, now)
                    .for_each(|entry| view.add_to_windows(&entry));
            }
            if comes {
                traffic(fabric, task, assumed.traffic(), to, Sign::Adds, now)
                    .for_each(|entry| view.add_to_windows(&entry));
            }
        }
    }
}

impl Rates {
    /// The part of these rates beyond others.
    fn beyond(self, others: Rates) -> Rates {
        Rates {
            egress_bps: self.egress_bps.saturating_sub(others.egress_bps),
            ingress_bps: self.ingress_bps.saturating_sub(others.ingress_bps),
        }
    }

    /// Steady traffic of these rates, out of the rack and into it.
    fn traffic(self) -> [Traffic; 2] {
        [Traffic::steady(self.egress_bps), Traffic::steady(self.ingress_bps)]
    }

    /// Rates of the entries of a task on a host, across the links of its rack: the mean, or the peak that placement must
    /// find free.
    pub(crate) fn of_entries<'a>(
        fabric: &Fabric,
        host: HostId,
        entries: impl IntoIterator<Item = &'a Entry>,
        is_peak: bool,
    ) -> Rates {
        let (uplink, mut rates) = (fabric.out_of_domain(fabric.rack_of(host)), Rates::default());
        for Entry { hops, demand, .. } in entries {
            let &Demand::Stream { mean_bps, peak_bps } = demand else { continue };
            let leaves = hops.iter().any(|hop| Some(hop.resource) == uplink);
            let sum = if leaves { &mut rates.egress_bps } else { &mut rates.ingress_bps };
            *sum = sum.saturating_add(if is_peak { peak_bps } else { mean_bps });
        }
        rates
    }
}

/// True if most of the last window of a host's rack was after a time.
fn covers(fabric: &Fabric, view: &View<'_>, host: HostId, at: Nanos) -> bool {
    let half = Nanos(view.interval().0 / 2);
    rack_links(fabric, host).filter_map(|link| view.last_window(link)).any(|(from, _)| from.plus(half) >= at)
}

/// Links of a host's rack; none on a mesh.
fn rack_links(fabric: &Fabric, host: HostId) -> impl Iterator<Item = ResourceId> + use<> {
    let rack = fabric.rack_of(host);
    [fabric.out_of_domain(rack), fabric.into_domain(rack)].into_iter().flatten()
}
