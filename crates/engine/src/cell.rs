//! The tasks that run, and what their jobs can still bear: what a policy for moves is told.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use leeward_fabric::{DomainId, Fabric, HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::moves::{Budget, MoveRequest, Running};
use leeward_placement::tasks::{AppRequest, Task, TaskId};

use crate::message::{Availability, Rates};

const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A task that runs, or is being moved.
pub(crate) struct Placed {
    pub host: HostId,
    pub job: u64,
    pub demand: Task,
    pub entries: Vec<EntryId>,
    /// Tags that its host must have.
    pub tags: u64,
    /// Whether it may be moved at all: transfers of its app bind it to where it is, and so do constraints that name hosts.
    pub movable: bool,
    moved: Option<Nanos>,
}

impl Placed {
    /// A task of a request, that was placed just now.
    pub fn new(request: &AppRequest, demand: Task, host: HostId, entries: Vec<EntryId>) -> Placed {
        let AppRequest { job, transfers, constraints, .. } = request;
        let (job, tags) = (*job, constraints.tags);
        let movable = transfers.is_empty() && constraints.only_tags();
        Placed { host, job, demand, entries, tags, movable, moved: None }
    }
}

/// What is known of a task besides what was placed.
#[derive(Clone, Copy)]
struct Seen {
    rack: DomainId,
    rates: Option<Rates>,
}

/// What is known of a job.
#[derive(Default)]
struct Job {
    availability: Availability,
    /// Tasks that were moved and are not up again.
    down: BTreeSet<TaskId>,
    /// When tasks were evicted in the last hour.
    evictions: VecDeque<Nanos>,
}

/// All tasks, and all jobs of which something was told or moved.
#[derive(Default)]
pub(crate) struct Cell {
    /// In which rack each task is, and what it sends and receives, where that was told. Only looked up, never walked
    /// through.
    seen: HashMap<TaskId, Seen>,
    /// The tasks, by rack: those of a hot rack are gone through after each report.
    tasks: BTreeMap<(DomainId, TaskId), Placed>,
    jobs: BTreeMap<u64, Job>,
    /// Rounds of moves so far.
    rounds: u64,
}

impl Cell {
    pub fn insert(&mut self, fabric: &Fabric, id: TaskId, placed: Placed) {
        let rack = fabric.rack_of(placed.host);
        self.seen.insert(id, Seen { rack, rates: None });
        self.tasks.insert((rack, id), placed);
    }

    pub fn remove(&mut self, id: TaskId) -> Option<Placed> {
        let Seen { rack, .. } = self.seen.remove(&id)?;
        let placed = self.tasks.remove(&(rack, id))?;
        if let Some(job) = self.jobs.get_mut(&placed.job) {
            job.down.remove(&id);
        }
        Some(placed)
    }

    pub fn get(&self, id: TaskId) -> Option<&Placed> {
        self.tasks.get(&(self.seen.get(&id)?.rack, id))
    }

    /// The tasks of an app.
    pub fn of_app(&self, app: u64) -> Vec<TaskId> {
        // They are placed together and end together.
        let tasks = (0..).map(|index| TaskId { app, index });
        tasks.take_while(|task| self.seen.contains_key(task)).collect()
    }

    pub fn set_availability(&mut self, job: u64, availability: Availability) {
        self.jobs.entry(job).or_default().availability = availability;
    }

    pub fn set_rates(&mut self, id: TaskId, rates: Rates) {
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.rates = Some(rates);
        }
    }

    /// A task that was moved runs again.
    pub fn is_up(&mut self, id: TaskId) {
        let job = self.get(id).map(|placed| placed.job);
        let job = job.and_then(|job| self.jobs.get_mut(&job));
        job.into_iter().for_each(|job| {
            job.down.remove(&id);
        });
    }

    /// Moves a task; its entries are `entries` from now on. Returns those it had.
    pub fn move_to(
        &mut self,
        fabric: &Fabric,
        id: TaskId,
        to: HostId,
        entries: Vec<EntryId>,
        now: Nanos,
    ) -> Vec<EntryId> {
        let rack = fabric.rack_of(to);
        let seen = self.seen.get_mut(&id).expect("only tasks that run are moved");
        let before = std::mem::replace(&mut seen.rack, rack);
        let placed = self.tasks.remove(&(before, id)).expect("it is where it was put");
        let placed = self.tasks.entry((rack, id)).or_insert(placed);
        (placed.host, placed.moved) = (to, Some(now));
        let job = self.jobs.entry(placed.job).or_default();
        job.down.insert(id);
        job.evictions.push_back(now);
        std::mem::replace(&mut placed.entries, entries)
    }

    /// What a policy for moves is told of the tasks in these racks, in the order of racks and tasks. Those that may not be
    /// moved at all are left out.
    pub fn request(&mut self, racks: &[DomainId], cooldown: Nanos, now: Nanos) -> MoveRequest {
        let mut request = MoveRequest { id: self.rounds, ..MoveRequest::default() };
        self.rounds += 1;
        let mut positions = BTreeMap::new();
        let least = TaskId { app: 0, index: 0 };
        let most = TaskId { app: u64::MAX, index: u32::MAX };
        for &rack in racks {
            let movable = |(_, placed): &(_, &Placed)| placed.demand.tolerant && placed.movable;
            let range = self.tasks.range((rack, least)..=(rack, most));
            for (&(_, task), placed) in range.filter(movable) {
                let job = *positions.entry(placed.job).or_insert_with(|| {
                    let moves = self.jobs.get_mut(&placed.job).map_or(u32::MAX, |job| job.left(now));
                    request.budgets.push(Budget { job: placed.job, moves });
                    request.budgets.len() as u32 - 1
                });
                let cooling = placed.moved.is_some_and(|at| now < at.plus(cooldown));
                let demand = placed.demand;
                let rates = self.seen.get(&task).and_then(|seen| seen.rates).unwrap_or(Rates {
                    egress_bps: demand.egress_in_all().mean_bps,
                    ingress_bps: demand.ingress_in_all().mean_bps,
                });
                let Rates { egress_bps, ingress_bps } = rates;
                let host = placed.host;
                let tags = placed.tags;
                let running = Running { task, host, job, demand, egress_bps, ingress_bps, tags, cooling };
                request.running.push(running);
            }
        }
        request
    }
}

impl Job {
    /// How many of its tasks may be moved now.
    fn left(&mut self, now: Nanos) -> u32 {
        while self.evictions.front().is_some_and(|at| at.plus(HOUR) <= now) {
            self.evictions.pop_front();
        }
        let Availability { down, evictions_per_hour } = self.availability;
        let down = down.map(|most| most.saturating_sub(self.down.len() as u32));
        let evictions = evictions_per_hour.map(|most| most.saturating_sub(self.evictions.len() as u32));
        down.unwrap_or(u32::MAX).min(evictions.unwrap_or(u32::MAX))
    }
}
