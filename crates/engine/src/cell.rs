//! The tasks that run, and what their jobs can still bear: what a policy for moves is told.

use std::collections::{BTreeSet, VecDeque};

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{DomainId, Fabric, HostId, Nanos};
use leeward_ledger::{Entry, EntryId};
use leeward_placement::moves::{Budget, MoveRequest, Running};
use leeward_placement::tasks::{AppRequest, Task, TaskId};

use crate::history::History;
use crate::message::{Availability, Rates};

const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A task that runs, or is being moved.
pub(crate) struct Placed {
    pub id: TaskId,
    pub host: HostId,
    pub job: u64,
    /// What it was stated to demand.
    pub demand: Task,
    pub entries: Vec<EntryId>,
    /// Tags that its host must have.
    tags: u64,
    /// Whether it may be moved at all: it is tolerant, and neither transfers of its app nor constraints that name hosts
    /// bind it to where it is.
    movable: bool,
    moved: Option<Nanos>,
    /// What it held where it was before that.
    before: Vec<Entry>,
    /// What it sends and receives, where that was told.
    rates: Option<Rates>,
    /// When that last counted towards the history of its job.
    counted: Option<Nanos>,
}

impl Placed {
    /// A task of a request, that was placed just now.
    pub fn new(
        request: &AppRequest,
        index: u32,
        demand: Task,
        host: HostId,
        entries: Vec<EntryId>,
    ) -> Placed {
        let AppRequest { id: app, job, transfers, constraints, .. } = request;
        let (id, job, tags) = (TaskId { app: *app, index }, *job, constraints.tags);
        let movable = demand.tolerant && transfers.is_empty() && constraints.only_tags();
        Placed {
            id,
            host,
            job,
            demand,
            entries,
            tags,
            movable,
            moved: None,
            before: Vec::new(),
            rates: None,
            counted: None,
        }
    }

    /// What it held where it was before its last move, to be held again from `now` on.
    pub fn before(&self, now: Nanos) -> Vec<Entry> {
        self.before.iter().map(|entry| Entry { starts: Some(now), ..entry.clone() }).collect()
    }

    /// What a policy for moves is told of it; `job` is the position of its job's budget.
    fn running(&self, job: u32) -> Running {
        let Placed { id: task, host, demand, tags, .. } = *self;
        let Rates { egress_bps, ingress_bps } = self.rates.unwrap_or_else(|| Rates {
            egress_bps: demand.egress_in_all().mean_bps,
            ingress_bps: demand.ingress_in_all().mean_bps,
        });
        Running { task, host, job, demand, egress_bps, ingress_bps, tags, cooling: false }
    }
}

/// Where a task stands among those of its rack.
#[derive(Clone, Copy)]
struct Place {
    rack: DomainId,
    at: u32,
}

/// What is known of a job.
#[derive(Default)]
struct Job {
    availability: Availability,
    /// How many tasks of it there are.
    tasks: u32,
    /// Tasks that were moved and are not up again.
    down: BTreeSet<TaskId>,
    /// When tasks were evicted in the last hour.
    evictions: VecDeque<Nanos>,
    /// The last round of moves in which it was asked about.
    round: u64,
    /// Its position among the budgets of that round, if it could bear moves then.
    position: Option<u32>,
}

/// All tasks and their jobs. The maps are only looked up, never walked through.
pub(crate) struct Cell {
    places: HashMap<TaskId, Place>,
    /// The tasks of each rack, side by side: those of a hot rack are gone through after each report.
    racks: Vec<Vec<Placed>>,
    /// How many there are on each host.
    on: Vec<u32>,
    /// Jobs with tasks, and those of which something was told.
    jobs: HashMap<u64, Job>,
    /// Rounds of moves so far.
    rounds: u64,
}

impl Cell {
    /// No task runs.
    pub fn new(fabric: &Fabric) -> Cell {
        let racks = (0..fabric.rack_count()).map(|_| Vec::new()).collect();
        let on = vec![0; fabric.host_count()];
        Cell { places: HashMap::new(), racks, on, jobs: HashMap::new(), rounds: 0 }
    }

    /// A task runs, of whose id none does.
    pub fn insert(&mut self, fabric: &Fabric, placed: Placed) {
        debug_assert!(!self.places.contains_key(&placed.id), "{:?} runs already", placed.id);
        self.jobs.entry(placed.job).or_default().tasks += 1;
        self.put(fabric, placed);
    }

    pub fn remove(&mut self, id: TaskId) -> Option<Placed> {
        let placed = self.take(id)?;
        if let Some(job) = self.jobs.get_mut(&placed.job) {
            job.down.remove(&id);
            job.tasks -= 1;
            if job.is_over() {
                self.jobs.remove(&placed.job);
            }
        }
        Some(placed)
    }

    fn put(&mut self, fabric: &Fabric, placed: Placed) {
        let rack = fabric.rack_of(placed.host);
        let tasks = &mut self.racks[rack.index()];
        self.places.insert(placed.id, Place { rack, at: tasks.len() as u32 });
        self.on[placed.host.index()] += 1;
        tasks.push(placed);
    }

    fn take(&mut self, id: TaskId) -> Option<Placed> {
        let Place { rack, at } = self.places.remove(&id)?;
        let tasks = &mut self.racks[rack.index()];
        let placed = tasks.swap_remove(at as usize);
        self.on[placed.host.index()] -= 1;
        if let Some(other) = tasks.get(at as usize) {
            self.places.insert(other.id, Place { rack, at });
        }
        Some(placed)
    }

    pub fn get(&self, id: TaskId) -> Option<&Placed> {
        let Place { rack, at } = self.places.get(&id)?;
        self.racks[rack.index()].get(*at as usize)
    }

    /// How many tasks there are on a host.
    pub fn on(&self, host: HostId) -> u32 {
        self.on.get(host.index()).copied().unwrap_or(0)
    }

    /// What a task holds in the ledger.
    pub fn entries(&self, id: TaskId) -> &[EntryId] {
        self.get(id).map_or(&[], |placed| &placed.entries)
    }

    /// The tasks in a rack, with the budgets of their jobs left out.
    pub fn in_rack(&self, rack: DomainId) -> impl Iterator<Item = Running> {
        self.racks.get(rack.index()).into_iter().flatten().map(|placed| placed.running(0))
    }

    /// The tasks of an app.
    pub fn of_app(&self, app: u64) -> Vec<TaskId> {
        // They are placed together and end together.
        let tasks = (0..).map(|index| TaskId { app, index });
        tasks.take_while(|task| self.places.contains_key(task)).collect()
    }

    pub fn set_availability(&mut self, job: u64, availability: Availability) {
        let known = self.jobs.entry(job).or_default();
        known.availability = availability;
        if known.is_over() {
            self.jobs.remove(&job);
        }
    }

    /// What a task sends and receives from now on. Returns its job if that counts towards the job's history.
    pub fn set_rates(&mut self, id: TaskId, rates: Rates, now: Nanos) -> Option<u64> {
        let &Place { rack, at } = self.places.get(&id)?;
        let placed = &mut self.racks[rack.index()][at as usize];
        placed.rates = Some(rates);
        let counts = History::counts(placed.counted, now);
        counts.then(|| {
            placed.counted = Some(now);
            placed.job
        })
    }

    /// A task that was moved runs again.
    pub fn is_up(&mut self, id: TaskId) {
        let job = self.get(id).map(|placed| placed.job);
        let job = job.and_then(|job| self.jobs.get_mut(&job));
        job.into_iter().for_each(|job| {
            job.down.remove(&id);
        });
    }

    /// Moves a task; its entries are `entries` from now on. Returns those it had, of which `before` tells what they were.
    pub fn move_to(
        &mut self,
        fabric: &Fabric,
        id: TaskId,
        to: HostId,
        (entries, before): (Vec<EntryId>, Vec<Entry>),
        now: Nanos,
    ) -> Vec<EntryId> {
        let mut placed = self.take(id).expect("only tasks that run are moved");
        (placed.host, placed.moved, placed.before) = (to, Some(now), before);
        let job = self.jobs.entry(placed.job).or_default();
        job.down.insert(id);
        job.evictions.push_back(now);
        let left = std::mem::replace(&mut placed.entries, entries);
        self.put(fabric, placed);
        left
    }

    /// Takes the last move of a task back: it is on `host`, with these entries, and was not evicted. Returns the entries it
    /// had where it was to go.
    pub fn take_back(
        &mut self,
        fabric: &Fabric,
        id: TaskId,
        host: HostId,
        entries: Vec<EntryId>,
    ) -> Vec<EntryId> {
        let mut placed = self.take(id).expect("only tasks that run are moved");
        placed.host = host;
        if let Some(job) = self.jobs.get_mut(&placed.job) {
            job.down.remove(&id);
            let moved = placed.moved;
            if let Some(at) = job.evictions.iter().rposition(|&at| Some(at) == moved) {
                job.evictions.remove(at);
            }
        }
        let left = std::mem::replace(&mut placed.entries, entries);
        self.put(fabric, placed);
        left
    }

    /// What a policy for moves is told of the tasks in these racks: of those that may be moved now. Tasks that stay in
    /// any case come by the thousand where racks stay hot.
    pub fn request(&mut self, racks: &[DomainId], cooldown: Nanos, now: Nanos) -> MoveRequest {
        let mut request = MoveRequest { id: self.rounds, ..MoveRequest::default() };
        self.rounds += 1;
        let cool = |moved: Option<Nanos>| moved.is_none_or(|at| now >= at.plus(cooldown));
        let tasks = racks.iter().flat_map(|rack| &self.racks[rack.index()]);
        for placed in tasks.filter(|placed| placed.movable && cool(placed.moved)) {
            let job = self.jobs.get_mut(&placed.job).expect("every task's job is known");
            if job.round < self.rounds {
                job.round = self.rounds;
                let moves = job.left(now);
                job.position = (moves > 0).then_some(request.budgets.len() as u32);
                request.budgets.extend(job.position.map(|_| Budget { job: placed.job, moves }));
            }
            request.running.extend(job.position.map(|position| placed.running(position)));
        }
        request
    }
}

impl Job {
    /// Whether nothing of it needs to be known: what was evicted of it counts against a limit, and it has none.
    fn is_over(&self) -> bool {
        self.tasks == 0 && self.availability == Availability::default()
    }

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
