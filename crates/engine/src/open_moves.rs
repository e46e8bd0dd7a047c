//! Moves that the windows of telemetry do not show wholly yet. The ledger counts a move from its decision on, and the
//! estimates fade from the old load to the new one, which bridges the time until the task has really moved. The last
//! window alone has no such memory: it shows a task at its old host until the move is carried out. So the test for hot
//! links by windows counts these moves beside the ledger.

use std::collections::BTreeMap;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Sign, View};
use leeward_placement::moves::{Running, traffic};
use leeward_placement::tasks::{TaskId, Traffic};

/// The moves, by task.
#[derive(Default)]
pub(crate) struct OpenMoves(BTreeMap<TaskId, OpenMove>);

/// A move.
struct OpenMove {
    /// The task on its old host.
    task: Running,
    to: HostId,
    /// Time of the decision.
    at: Nanos,
    /// Time at which the task ran on its new host; `None` before.
    done: Option<Nanos>,
}

impl OpenMoves {
    /// Adds a move that is decided now.
    pub fn add(&mut self, task: Running, to: HostId, now: Nanos) {
        self.0.insert(task.task, OpenMove { task, to, at: now, done: None });
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
            let links = [open.task.host, open.to].into_iter().flat_map(|host| rack_links(fabric, host));
            links.filter_map(|link| view.last_window(link)).any(|(from, _)| from < done)
        });
    }

    /// Adds to a view what the last windows and the ledger lack.
    pub fn add_to(&self, fabric: &Fabric, view: &mut View<'_>) {
        for open in self.0.values() {
            let OpenMove { task, to, at, done } = open;
            let measured = task.measured();
            let leaves = if covers(fabric, view, task.host, *at) {
                measured
            } else {
                // The ledger relieves the window by the demand at which the task was placed.
                let stated = [task.demand.total_egress(), task.demand.total_ingress()];
                [0, 1].map(|side| {
                    Traffic::steady(measured[side].peak_bps.saturating_sub(stated[side].peak_bps))
                })
            };
            let shows = |host: HostId| done.is_some_and(|done| covers(fabric, view, host, done));
            let (left, came) = (shows(task.host), shows(*to));
            let comes = covers(fabric, view, *to, *at) && !came;
            let now = view.now();
            if !left {
                traffic(fabric, task.task, leaves, task.host, Sign::Relieves, now)
                    .for_each(|entry| view.add(&entry));
            }
            if comes {
                traffic(fabric, task.task, task.assumed_traffic(), *to, Sign::Adds, now)
                    .for_each(|entry| view.add(&entry));
            }
        }
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
