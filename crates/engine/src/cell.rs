//! Running tasks, and the remaining budgets of their jobs, as input of move policies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{DomainId, Fabric, HostId, Nanos};
use leeward_ledger::{Entry, EntryId};
use leeward_moves::{Budget, MoveRequest, Running, Stays};
use leeward_placement::tasks::{AppRequest, Task, TaskId, Transfer};
use leeward_placement::{Constraints, JobId};

use crate::history::History;
use crate::message::{Availability, Rates};

const HOUR: Nanos = Nanos(3_600_000_000_000);

/// A task that runs or is being moved.
pub(crate) struct RunningTask {
    pub id: TaskId,
    pub host: HostId,
    pub job: JobId,
    /// Stated demand.
    pub demand: Task,
    pub entries: Vec<EntryId>,
    /// Tags that its host must have.
    tags: u64,
    /// Its constraints, if it has others than tags.
    constraints: Option<Arc<Constraints>>,
    /// Reason for which the task never moves; `None` for a tolerant task whose constraints a move can keep to.
    bound: Option<Stays>,
    moved: Option<Nanos>,
    /// Ledger entries on its host before the last move.
    before: Vec<Entry>,
    /// Reported send and receive rates, if any.
    rates: Option<Rates>,
    /// Time at which its rates last counted in the history of its job.
    counted: Option<Nanos>,
}

impl RunningTask {
    /// Creates a newly placed task of a request, whose constraints beside tags are `constraints`.
    pub fn new(
        request: &AppRequest,
        constraints: Option<&Arc<Constraints>>,
        index: u32,
        demand: Task,
        host: HostId,
        entries: Vec<EntryId>,
    ) -> RunningTask {
        let AppRequest { id: app, job, .. } = request;
        let (id, job, tags) = (TaskId { app: *app, index }, *job, request.constraints.tags);
        let bound = match (demand.tolerant, constraints) {
            (false, _) => Some(Stays::Sensitive),
            (true, constraints) => constraints.and_then(|constraints| Stays::bound(constraints)),
        };
        let constraints = constraints.filter(|_| bound.is_none()).cloned();
        RunningTask {
            id,
            host,
            job,
            demand,
            entries,
            tags,
            constraints,
            bound,
            moved: None,
            before: Vec::new(),
            rates: None,
            counted: None,
        }
    }

    /// True if a move policy may ever move the task.
    pub fn may_ever_move(&self) -> bool {
        self.bound.is_none()
    }

    /// Returns the entries from before the last move, to be committed again from `now` on.
    pub fn before(&self, now: Nanos) -> Vec<Entry> {
        self.before.iter().map(|entry| Entry { starts: Some(now), ..entry.clone() }).collect()
    }

    /// True if the last move of the task is long enough ago for another.
    fn is_settled(&self, cooldown: Nanos, now: Nanos) -> bool {
        self.moved.is_none_or(|at| now >= at.plus(cooldown))
    }

    /// Returns the task as input of a move policy; `job` is the position of its job's budget.
    fn running(&self, job: u32) -> Running {
        let RunningTask { id: task, host, demand, tags, .. } = *self;
        let Rates { egress_bps, ingress_bps } = self.rates.unwrap_or_else(|| Rates {
            egress_bps: demand.total_egress().mean_bps,
            ingress_bps: demand.total_ingress().mean_bps,
        });
        let (constraints, cooling) = (None, false);
        Running { task, host, job, demand, egress_bps, ingress_bps, tags, constraints, cooling }
    }
}

/// Position of a task in the list of its rack.
#[derive(Clone, Copy)]
struct Place {
    rack: DomainId,
    at: u32,
}

/// State of a job.
#[derive(Default)]
struct Job {
    availability: Availability,
    /// Number of its tasks.
    tasks: u32,
    /// Tasks that were moved and have not restarted.
    down: BTreeSet<TaskId>,
    /// Times of evictions in the last hour.
    evictions: VecDeque<Nanos>,
    /// Last round of moves in which its budget was computed.
    round: u64,
    /// Position among the budgets of that round, if the job allowed moves then.
    position: Option<u32>,
}

/// Transfers between the tasks of an app.
pub(crate) struct AppTransfers {
    /// The transfers; empty if no task of the app moves.
    pub transfers: Arc<[Transfer]>,
    /// Their ledger entries.
    pub entries: Vec<EntryId>,
}

/// All tasks and their jobs. Maps are used only for lookups, never iterated.
pub(crate) struct Cell {
    places: HashMap<TaskId, Place>,
    /// Tasks by rack, in adjacent memory: each report scans the tasks of hot racks.
    racks: Vec<Vec<RunningTask>>,
    /// Apps with transfers.
    apps: HashMap<u64, AppTransfers>,
    /// Number of tasks on each host.
    task_counts: Vec<u32>,
    /// Jobs with tasks, and jobs with a stated availability.
    jobs: HashMap<JobId, Job>,
    /// Number of rounds of moves so far.
    rounds: u64,
}

impl Cell {
    /// Creates a cell without tasks.
    pub fn new(fabric: &Fabric) -> Cell {
        let racks = (0..fabric.rack_count()).map(|_| Vec::new()).collect();
        let task_counts = vec![0; fabric.host_count()];
        let (places, apps, jobs) = (HashMap::new(), HashMap::new(), HashMap::new());
        Cell { places, racks, apps, task_counts, jobs, rounds: 0 }
    }

    /// Adds the transfers of an app, with their entries.
    pub fn add_transfers(&mut self, app: u64, transfers: AppTransfers) {
        self.apps.insert(app, transfers);
    }

    /// The transfers of an app, if it has any.
    pub fn transfers_mut(&mut self, app: u64) -> Option<&mut AppTransfers> {
        self.apps.get_mut(&app)
    }

    /// Removes the transfers of an app. Returns their entries.
    pub fn remove_transfers(&mut self, app: u64) -> Vec<EntryId> {
        self.apps.remove(&app).map_or_else(Vec::new, |transfers| transfers.entries)
    }

    /// Ledger entries of an app in the order of their commit: of its transfers, and of each task.
    pub fn app_entries(&self, app: u64) -> Vec<EntryId> {
        let transfers = self.apps.get(&app).into_iter().flat_map(|transfers| &transfers.entries);
        let tasks = self.of_app(app).into_iter().flat_map(|task| self.entries(task));
        transfers.chain(tasks).copied().collect()
    }

    /// Adds a running task. No running task may have this id.
    pub fn insert(&mut self, fabric: &Fabric, placed: RunningTask) {
        debug_assert!(!self.places.contains_key(&placed.id), "{:?} runs already", placed.id);
        self.jobs.entry(placed.job).or_default().tasks += 1;
        self.put(fabric, placed);
    }

    pub fn remove(&mut self, id: TaskId) -> Option<RunningTask> {
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

    fn put(&mut self, fabric: &Fabric, placed: RunningTask) {
        let rack = fabric.rack_of(placed.host);
        let tasks = &mut self.racks[rack.index()];
        self.places.insert(placed.id, Place { rack, at: tasks.len() as u32 });
        self.task_counts[placed.host.index()] += 1;
        tasks.push(placed);
    }

    fn take(&mut self, id: TaskId) -> Option<RunningTask> {
        let Place { rack, at } = self.places.remove(&id)?;
        let tasks = &mut self.racks[rack.index()];
        let placed = tasks.swap_remove(at as usize);
        self.task_counts[placed.host.index()] -= 1;
        if let Some(other) = tasks.get(at as usize) {
            self.places.insert(other.id, Place { rack, at });
        }
        Some(placed)
    }

    pub fn get(&self, id: TaskId) -> Option<&RunningTask> {
        let Place { rack, at } = self.places.get(&id)?;
        self.racks[rack.index()].get(*at as usize)
    }

    /// Number of tasks on a host.
    pub fn task_count(&self, host: HostId) -> u32 {
        self.task_counts.get(host.index()).copied().unwrap_or(0)
    }

    /// Ledger entries of a task.
    pub fn entries(&self, id: TaskId) -> &[EntryId] {
        self.get(id).map_or(&[], |placed| &placed.entries)
    }

    /// Tasks in a rack, without the budgets of their jobs.
    pub fn in_rack(&self, rack: DomainId) -> impl Iterator<Item = Running> {
        self.racks.get(rack.index()).into_iter().flatten().map(|placed| placed.running(0))
    }

    /// Tasks in a rack, each with the reason for which it stays; `None` for a task that may be moved now.
    pub fn reasons_in(
        &self,
        rack: DomainId,
        cooldown: Nanos,
        now: Nanos,
    ) -> impl Iterator<Item = (Running, Option<Stays>)> {
        let tasks = self.racks.get(rack.index()).into_iter().flatten();
        tasks.map(move |placed| (placed.running(0), self.reason(placed, cooldown, now)))
    }

    /// Reason for which a task stays; `None` for a task that may be moved now, or does not run.
    pub fn reason_of(&self, id: TaskId, cooldown: Nanos, now: Nanos) -> Option<Stays> {
        self.reason(self.get(id)?, cooldown, now)
    }

    fn reason(&self, placed: &RunningTask, cooldown: Nanos, now: Nanos) -> Option<Stays> {
        let job = self.jobs.get(&placed.job);
        let moves = job.is_some_and(|job| job.down.contains(&placed.id));
        let cools = !placed.is_settled(cooldown, now);
        let is_spent = || job.is_some_and(|job| job.remaining(now) == 0);
        placed
            .bound
            .or_else(|| moves.then_some(Stays::Moving))
            .or_else(|| cools.then_some(Stays::Cooling))
            .or_else(|| is_spent().then_some(Stays::Budget))
    }

    /// Ledger entries of the tasks of an app, with the indices of the tasks.
    pub fn task_entries(&self, app: u64) -> impl Iterator<Item = (EntryId, u32)> {
        let tasks = self.of_app(app).into_iter();
        tasks.flat_map(|task| self.entries(task).iter().map(move |&entry| (entry, task.index)))
    }

    /// Returns the tasks of an app.
    pub fn of_app(&self, app: u64) -> Vec<TaskId> {
        // Tasks of an app are placed together and end together, so their indices are consecutive.
        let tasks = (0..).map(|index| TaskId { app, index });
        tasks.take_while(|task| self.places.contains_key(task)).collect()
    }

    pub fn set_availability(&mut self, job: JobId, availability: Availability) {
        let state = self.jobs.entry(job).or_default();
        state.availability = availability;
        if state.is_over() {
            self.jobs.remove(&job);
        }
    }

    /// Sets the rates of a task. Returns its job if the rates count towards the job's history.
    pub fn set_rates(&mut self, id: TaskId, rates: Rates, now: Nanos) -> Option<JobId> {
        let &Place { rack, at } = self.places.get(&id)?;
        let placed = &mut self.racks[rack.index()][at as usize];
        placed.rates = Some(rates);
        let counts = History::counts(placed.counted, now);
        counts.then(|| {
            placed.counted = Some(now);
            placed.job
        })
    }

    /// Records that a moved task runs again.
    pub fn mark_up(&mut self, id: TaskId) {
        let job = self.get(id).map(|placed| placed.job);
        let job = job.and_then(|job| self.jobs.get_mut(&job));
        job.into_iter().for_each(|job| {
            job.down.remove(&id);
        });
    }

    /// Moves a task and sets its ledger entries. Returns its former entries; `before` has their contents.
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
        let former = std::mem::replace(&mut placed.entries, entries);
        self.put(fabric, placed);
        former
    }

    /// Reverts the last move of a task: it is on `host`, with these entries, and the eviction does not count.
    /// Returns the entries at its target.
    pub fn undo_move(
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
            if let Some(index) = job.evictions.iter().rposition(|&time| Some(time) == moved) {
                job.evictions.remove(index);
            }
        }
        let former = std::mem::replace(&mut placed.entries, entries);
        self.put(fabric, placed);
        former
    }

    /// Restores the last move of a task, which was decided at the time `at`: it counts as an eviction unless it was undone.
    /// An open move has the task's ledger entries on its former host.
    pub fn resume_move(&mut self, id: TaskId, at: Nanos, is_undone: bool, open: Option<Vec<Entry>>) {
        let Some(&Place { rack, at: position }) = self.places.get(&id) else { return };
        let placed = &mut self.racks[rack.index()][position as usize];
        placed.moved = Some(at);
        let Some(job) = self.jobs.get_mut(&placed.job).filter(|_| !is_undone) else { return };
        job.evictions.push_back(at);
        if let Some(before) = open {
            placed.before = before;
            job.down.insert(id);
        }
    }

    /// Builds the request for a move policy, with the tasks in these racks that may be moved now. Filtering matters:
    /// racks that stay hot have thousands of immovable tasks.
    pub fn request(&mut self, racks: &[DomainId], cooldown: Nanos, now: Nanos) -> MoveRequest {
        let mut request = MoveRequest { id: self.rounds, ..MoveRequest::default() };
        self.rounds += 1;
        // Tasks of an app share their constraints, and apps often have equal ones. A policy searches hosts once for each.
        let (mut known, mut equal) = (BTreeMap::new(), BTreeMap::<_, Vec<u32>>::new());
        let tasks = racks.iter().flat_map(|rack| &self.racks[rack.index()]);
        for placed in tasks.filter(|placed| placed.bound.is_none() && placed.is_settled(cooldown, now)) {
            let job = self.jobs.get_mut(&placed.job).expect("every task's job is known");
            if job.down.contains(&placed.id) {
                continue;
            }
            if job.round < self.rounds {
                job.round = self.rounds;
                let moves = job.moves_left(now);
                job.position = (moves > 0).then_some(request.budgets.len() as u32);
                request.budgets.extend(job.position.map(|_| Budget { job: placed.job, moves }));
            }
            let Some(position) = job.position else { continue };
            let constraints = placed.constraints.as_ref().map(|constraints| {
                *known.entry(Arc::as_ptr(constraints)).or_insert_with(|| {
                    let Constraints { excluded_hosts, excluded_domains, tags, labels, .. } = &**constraints;
                    let alike = equal.entry((excluded_hosts, excluded_domains, tags, labels)).or_default();
                    let is_equal = |&&at: &&u32| *request.constraints[at as usize] == **constraints;
                    alike.iter().find(is_equal).copied().unwrap_or_else(|| {
                        let at = request.constraints.len() as u32;
                        request.constraints.push(constraints.clone());
                        alike.push(at);
                        at
                    })
                })
            });
            request.running.push(Running { constraints, ..placed.running(position) });
        }
        request
    }
}

impl Job {
    /// Returns true if the cell can drop the job: it has no tasks, and no stated limits.
    fn is_over(&self) -> bool {
        self.tasks == 0 && self.availability == Availability::default()
    }

    /// Number of its tasks that may be moved now.
    fn moves_left(&mut self, now: Nanos) -> u32 {
        while self.evictions.front().is_some_and(|at| at.plus(HOUR) <= now) {
            self.evictions.pop_front();
        }
        self.remaining(now)
    }

    /// As `moves_left`, without a change of the job.
    fn remaining(&self, now: Nanos) -> u32 {
        let Availability { down, evictions_per_hour } = self.availability;
        let evictions = self.evictions.iter().filter(|at| at.plus(HOUR) > now).count();
        let down = down.map(|most| most.saturating_sub(self.down.len() as u32));
        let evictions = evictions_per_hour.map(|most| most.saturating_sub(evictions as u32));
        down.unwrap_or(u32::MAX).min(evictions.unwrap_or(u32::MAX))
    }
}
