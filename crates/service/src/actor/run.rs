//! The loop of the actor, and its relation to the store: leader, follower, or unavailable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, Nanos};
use leeward_records::{Change, Clock, ClusterVersion, State, Version};
use leeward_store::{Leadership, StoreError, Updates};
use tokio::sync::mpsc;

use super::job_threads::JobThreads;
use super::operation::{Access, Call, Channels, Turn};
use super::replies::{Pending, Persisted};
use super::snapshots::{LeaderState, SnapshotPublisher};
use super::writer::{Batch, GroupCommitWriter, StoreEvent, THREAD_ENDED};
use super::{Changed, Command, Maker, NewCluster, OpenError, VersionConflict, new_coordinator};
use crate::core::{Answer, CallError, Coordinator, KeptTelemetry, TelemetryState, Unavailable};

/// Largest number of commands that are received at once. An iteration of the loop handles them, and its changes form one
/// batch for the store.
const MAX_COMMANDS: usize = 16;
/// Number of operations after which an iteration ends, even if more commands wait: a command may have many operations.
const MAX_OPERATIONS: usize = 16;

/// The coordinator's owner.
pub(super) struct Actor {
    pub coordinator: Coordinator<Channels>,
    /// Number of earlier coordinators, which identifies the present coordinator. Job results of earlier coordinators
    /// are dropped.
    pub coordinators: u64,
    pub jobs: JobThreads,
    pub cluster: Cluster,
    pub make: Maker,
    pub writer: GroupCommitWriter,
    pub clock: Clock,
    pub publisher: SnapshotPublisher,
    /// Term in which the coordinator was created as leader; `None` for a follower.
    pub term: Option<u64>,
    /// True if all of the coordinator's decisions are persisted or in `owed`.
    pub exact: bool,
    /// Ends of decisions that are not persisted yet. This coordinator persists them when it leads again.
    pub owed: Vec<Change>,
    /// Replies of this iteration that wait until its changes are durable.
    pub pending: Vec<Box<dyn Pending>>,
}

impl Actor {
    /// Resumes from the store as leader or follower, with the telemetry of an earlier run. Returns the part that counts.
    pub async fn begin(
        &mut self,
        file: NewCluster,
        telemetry: TelemetryState,
    ) -> Result<KeptTelemetry, OpenError> {
        let leadership = loop {
            match self.writer.event().await {
                Some(StoreEvent::Lease(leadership)) => break leadership?,
                Some(_) => {}
                None => return Err(StoreError::Database(THREAD_ENDED.to_owned()).into()),
            }
        };
        let mut state = self.writer.load().await?;
        match leadership {
            Leadership::Leader { term } => {
                let is_unchanged = state.file.as_ref().is_some_and(|last| last.text == file.text);
                if state.cluster.is_none() || !is_unchanged {
                    let current =
                        state.cluster.map_or_else(ClusterVersion::default, |cluster| cluster.number);
                    let version = self.version(current.next(), &file);
                    self.writer
                        .confirm(Change::Cluster(version.clone()))
                        .await
                        .map_err(cluster_not_persisted)?;
                    state.cluster = Some(version);
                }
                self.term = Some(term);
                self.resume_from(state, LeaderState::Leader, telemetry).await
            }
            Leadership::Follower { leader, .. } => {
                self.resume_from(state, LeaderState::Follower { leader }, telemetry).await
            }
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let (mut received, mut commands) = (Vec::with_capacity(MAX_COMMANDS), VecDeque::new());
        loop {
            tokio::select! {
                biased;
                event = self.writer.event() => match event {
                    Some(event) => self.handle_event(event).await,
                    None => break,
                },
                // The rest of the last commands comes before further ones.
                () = tokio::task::yield_now(), if !commands.is_empty() => {}
                count = inbox.recv_many(&mut received, MAX_COMMANDS), if commands.is_empty() => {
                    if count == 0 {
                        break;
                    }
                    commands.extend(received.drain(..));
                }
                () = until(&self.clock, self.coordinator.wakes_at()) => self.coordinator.wake(self.clock.now()),
                // Other tasks of this thread run between two pieces of a snapshot.
                () = tokio::task::yield_now(), if self.publisher.is_building() => {}
                () = tokio::time::sleep_until(self.publisher.due().into()), if !self.publisher.is_building() => {
                    self.coordinator.wake(self.clock.now());
                }
            }
            self.handle_commands(&mut commands).await;
            self.finish_turn().await;
            self.publisher.set_promises(self.coordinator.recent_promises());
            self.publisher.make(&mut self.coordinator);
        }
    }

    /// Handles commands, up to the limit of an iteration.
    async fn handle_commands(&mut self, commands: &mut VecDeque<Command>) {
        let (now, mut operations) = (self.clock.now(), 0);
        while operations < MAX_OPERATIONS
            && let Some(command) = commands.pop_front()
        {
            operations += command.operations();
            self.handle_command(command, now).await;
        }
    }

    /// Handles a command.
    async fn handle_command(&mut self, command: Command, now: Nanos) {
        match command {
            Command::Call(call) => self.run_call(call, now),
            Command::Calls(calls) => calls.into_iter().for_each(|call| self.run_call(call, now)),
            Command::ChangeCluster(new, to) => {
                // Earlier decisions of this iteration belong to this coordinator; the next coordinator begins with the
                // stored state.
                self.finish_turn().await;
                let result = self.change_cluster(new).await;
                let _ = to.send(result);
            }
            Command::EndPeriods(to) => {
                self.publisher.end_periods();
                self.pending.push(Box::new(Persisted { to, reply: () }));
            }
            Command::Snapshot(to) => {
                self.publisher.add_reader(to);
                // Frequent requests for snapshots advance time too.
                if self.publisher.is_due() {
                    self.coordinator.wake(now);
                }
            }
            Command::JobDone(coordinator, result) if coordinator == self.coordinators => {
                self.coordinator.finish_job(now, *result);
            }
            Command::JobDone(..) => {}
        }
    }

    fn run_call(&mut self, call: Call, now: Nanos) {
        match self.rejection(&call) {
            Some(reason) => (call.run)(Err(reason)),
            None => (call.run)(Ok(&mut self.turn(now))),
        }
    }

    fn turn(&mut self, now: Nanos) -> Turn<'_> {
        let is_leader = self.publisher.leader_state() == LeaderState::Leader;
        Turn { now, coordinator: &mut self.coordinator, pending: &mut self.pending, is_leader }
    }

    /// Returns the reason why an operation cannot run, by the relation of this service to the store.
    fn rejection(&self, call: &Call) -> Option<Unavailable> {
        if !Arc::ptr_eq(&call.fabric, self.coordinator.fabric()) {
            return Some(Unavailable::ClusterChanged);
        }
        let reason = self.publisher.leader_state().unavailable()?;
        match call.access {
            Access::Telemetry => None,
            Access::Compute | Access::Read if self.exact => None,
            Access::Compute | Access::Read | Access::Write => Some(reason),
        }
    }

    /// Handles an event of the store: this service may become leader, follower or unavailable.
    async fn handle_event(&mut self, event: StoreEvent) {
        let result = match event {
            StoreEvent::Lease(Ok(Leadership::Leader { term })) => self.lead(term).await,
            StoreEvent::Lease(Ok(Leadership::Follower { leader, updates })) => {
                self.follow(leader, updates).await
            }
            StoreEvent::Lease(Err(error)) => Err(error.into()),
            StoreEvent::Lost(error) => {
                (self.exact, self.term) = (false, None);
                self.stall(&error.clone().into());
                let (leader_state, telemetry) =
                    (self.publisher.leader_state(), self.coordinator.telemetry_state());
                self.resume(leader_state, telemetry).await
            }
            // The caller of this load no longer waits.
            StoreEvent::Loaded(_) => Ok(()),
            StoreEvent::Silent(error) => Err(error.into()),
        };
        if let Err(error) = result {
            self.stall(&error);
        }
    }

    /// Becomes leader.
    async fn lead(&mut self, term: u64) -> Result<(), OpenError> {
        if self.exact && self.term == Some(term) {
            self.publisher.set_state(LeaderState::Leader);
            return Ok(());
        }
        self.term = Some(term);
        self.publisher.restart_periods();
        let telemetry = self.coordinator.telemetry_state();
        let resumed = self.resume(LeaderState::Leader, telemetry).await;
        self.exact &= resumed.is_ok();
        resumed
    }

    /// Becomes or stays a follower, and applies the leader's changes.
    async fn follow(&mut self, leader: Option<Arc<str>>, updates: Updates) -> Result<(), OpenError> {
        let leader_state = LeaderState::Follower { leader };
        let changes = match updates {
            Updates::Changes(changes) if self.exact && self.term.is_none() => changes,
            _ => {
                (self.exact, self.term) = (false, None);
                let telemetry = self.coordinator.telemetry_state();
                return self.resume(leader_state, telemetry).await;
            }
        };
        for change in changes {
            if let Err(error) = self.coordinator.follow(self.clock.now(), change) {
                self.exact = false;
                return Err(error.into());
            }
        }
        self.publisher.set_state(leader_state);
        Ok(())
    }

    /// Stops deciding, because nothing can be persisted. Rejects waiting requests; clients may repeat them.
    fn stall(&mut self, error: &OpenError) {
        self.exact &= !self.reject_waiting();
        self.publisher.set_state(LeaderState::Unavailable { problem: error.to_string().into() });
    }

    /// Creates a coordinator from the store, with the telemetry of the current one.
    async fn resume(
        &mut self,
        leader_state: LeaderState,
        telemetry: TelemetryState,
    ) -> Result<(), OpenError> {
        self.reject_waiting();
        let state = self.writer.load().await?;
        self.resume_from(state, leader_state, telemetry).await.map(|_| ())
    }

    /// Creates a coordinator from loaded state, with telemetry and with the observed traffic of the current coordinator's
    /// jobs. Returns the telemetry that counts.
    async fn resume_from(
        &mut self,
        state: State,
        leader_state: LeaderState,
        telemetry: TelemetryState,
    ) -> Result<KeptTelemetry, OpenError> {
        if let Some(stored) = state.cluster.clone().filter(|stored| stored.number != self.publisher.version())
        {
            self.cluster = read_cluster(&stored.text)?;
            self.publisher.set_cluster(stored);
        }
        self.publisher.carry(&self.coordinator.take_counts());
        let observed = self.coordinator.take_observed_jobs();
        self.coordinator = new_coordinator(&self.make, &self.cluster, leader_state == LeaderState::Leader);
        self.coordinators += 1;
        self.owed.clear();
        let now = self.clock.now();
        self.coordinator.set_observed_jobs(observed);
        self.coordinator.resume(state, now)?;
        self.coordinator.wake(now);
        let kept = self.coordinator.set_telemetry_state(telemetry);
        self.exact = true;
        self.publisher.set_state(leader_state);
        self.finish_turn().await;
        self.publisher.make_now(&mut self.coordinator);
        Ok(kept)
    }

    fn version(&self, number: ClusterVersion, cluster: &NewCluster) -> Version {
        Version { number, at: self.clock.now(), origin: cluster.origin, text: cluster.text.clone() }
    }

    /// Makes the cluster current. Returns its version, or the equal current version.
    async fn change_cluster(&mut self, new: NewCluster) -> Answer<Changed, VersionConflict> {
        if let Some(reason) = self.publisher.leader_state().unavailable() {
            return Err(CallError::Unavailable(reason));
        }
        // A repeated request: this cluster is current and gets no new version.
        if let Some(version) = self.publisher.current_with_text(&new.text) {
            return Ok(Changed { version, again: true });
        }
        let current = self.publisher.version();
        if new.after.is_some_and(|after| after != current) {
            return Err(CallError::Failed(VersionConflict(current)));
        }
        let version = self.version(current.next(), &new);
        let persisted = self.writer.confirm(Change::Cluster(version.clone())).await;
        let leader_state = match &persisted {
            Ok(()) => {
                self.cluster = new.cluster;
                self.publisher.set_cluster(version.clone());
                LeaderState::Leader
            }
            // Decisions just before the change may be lost too, and the lease must be renewed.
            Err(_) => {
                self.term = None;
                LeaderState::Unavailable { problem: "a change of the cluster was not persisted".into() }
            }
        };
        let telemetry = self.coordinator.telemetry_state();
        let resumed = self.resume(leader_state, telemetry).await;
        if let Err(error) = &resumed {
            self.exact = false;
            self.stall(error);
        }
        match persisted {
            // The loaded state shows if the cluster is durable.
            Err(Unavailable::OutcomeUnknown(_)) if resumed.is_ok() && self.publisher.is_current(&version) => {
                Ok(Changed { version, again: false })
            }
            Err(Unavailable::OutcomeUnknown(problem)) if resumed.is_ok() => {
                Err(CallError::Unavailable(Unavailable::StoreFailed(problem)))
            }
            persisted => {
                persisted.map(|()| Changed { version, again: false }).map_err(CallError::Unavailable)
            }
        }
    }

    /// Rejects all waiting requests, because another coordinator takes over. Returns true if any request waited.
    fn reject_waiting(&mut self) -> bool {
        let waited = self.coordinator.reject_waiting();
        self.turn(Nanos(0)).complete();
        waited
    }

    /// Starts the jobs of the iteration, and sends its changes to the writer with the replies that wait for them.
    async fn finish_turn(&mut self) {
        self.turn(Nanos(0)).complete();
        for job in self.coordinator.jobs() {
            self.jobs.run(self.coordinators, job);
        }
        let mut batch = Batch {
            changes: self.coordinator.changes().collect(),
            replies: std::mem::take(&mut self.pending),
        };
        if self.publisher.leader_state() == LeaderState::Leader {
            batch.changes.splice(0..0, self.owed.drain(..));
        } else {
            // Decisions expire on followers and on stalled leaders too, and leases of enforcers on the latter. The next
            // leader repeats these ends. A coordinator that led and may lead again records them in `owed`.
            self.exact &= batch.changes.iter().all(is_repeatable);
            if self.exact && self.term.is_some() {
                self.owed.append(&mut batch.changes);
            }
            batch.changes.clear();
        }
        // Each service has its own periods, and only the leader stores its own.
        if self.publisher.leader_state() == LeaderState::Leader {
            batch.changes.extend(self.publisher.take_changes());
        } else {
            self.publisher.drop_changes();
        }
        if batch.changes.is_empty() && batch.replies.is_empty() {
            return;
        }
        if let Err(error) = self.writer.persist(batch).await {
            self.exact = false;
            self.stall(&error.into());
        }
    }
}

/// True for changes that a coordinator makes on its own, without a caller that waits: another coordinator makes them again.
fn is_repeatable(change: &Change) -> bool {
    matches!(change, Change::Ended { .. } | Change::Promises(_) | Change::Enforcer(_))
}

/// Error of a start whose cluster was not persisted.
fn cluster_not_persisted(reason: Unavailable) -> StoreError {
    match reason {
        Unavailable::StoreFailed(problem) | Unavailable::OutcomeUnknown(problem) => {
            StoreError::Database(problem)
        }
        Unavailable::ClusterChanged | Unavailable::Follower { .. } | Unavailable::Stopped => {
            StoreError::Deposed
        }
    }
}

/// Reads the text of a stored cluster.
fn read_cluster(text: &str) -> Result<Cluster, InputError> {
    const NAME: &str = "the stored cluster";
    let value = serde_json::from_str(text).map_err(|error| InputError::new(NAME, error))?;
    Cluster::from_json(NAME, &value)
}

/// Waits until an engine time; forever without one.
async fn until(clock: &Clock, at: Option<Nanos>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_nanos(at.since(clock.now()).0)).await,
        None => std::future::pending().await,
    }
}
