//! The actor: the task that owns the coordinator, and the handle to it. All clients send it commands, one after
//! another, so each placement sees the earlier ones. A writer thread persists the changes (`writer`), and the
//! coordinator does not wait for it.
//!
//! If changes cannot be persisted, the clients that wait for them get an error. The actor creates the coordinator again
//! from the store, because later decisions depend on the lost changes. Until the store is available again, the service
//! decides nothing and shows its last state.
//!
//! Several services may share a store: one is the leader and decides ([`LeaderState`]). The followers apply the changes
//! that the leader persists, and each can become the leader. Every service takes in telemetry itself.

#[cfg(test)]
#[path = "../../tests/unit/access.rs"]
mod access;
mod heartbeat;
mod history;
mod job_threads;
mod operation;
mod operations;
mod periods;
mod reading;
mod replies;
mod run;
mod snapshots;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::input::{InputError, read_yaml};
use leeward_fabric::{Cluster, Fabric, Nanos};
use leeward_ledger::Epoch;
use leeward_promises::RecentChanges;
use leeward_records::{Clock, ClusterVersion, Origin, Period, Version};
use leeward_store::{Kind, Reader, Store, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::history::{HistoryBuckets, STEP};
use self::job_threads::JobThreads;
use self::operation::Call;
pub use self::operation::{Access, Channels, Method, Operation, ReplyTo, StoreLookup};
pub use self::operations::{
    Acknowledge, AnswerDryRun, AnswerMigration, ChangeDryRun, CommitmentDryRun, Confirm, ConfirmDryRun,
    DryRun, GetDecision, GetEnforcer, GetHolding, GetHotLinks, GetModes, GetPromises, GetRack, GetWorkload,
    ListEnforcers, ListWorkloads, PreviewPromises, ReevaluateDryRun, Release, RemoveEnforcer, SetFileModes,
    SetJob, SetOffSwitch, WhatIf,
};
pub use self::reading::ReadError;
use self::reading::ReaderThread;
use self::run::Actor;
pub use self::snapshots::LeaderState;
use self::snapshots::{PublishedState, SnapshotPublisher};
use self::writer::{Extent, GroupCommitWriter};
use crate::core::{
    Answer, CallError, Coordinator, JobResult, KeptTelemetry, NetworkSnapshot, TelemetryState, Unavailable,
};

/// Largest number of commands in the channel; a client that sends one more waits.
const MAX_COMMANDS: usize = 1024;

/// Command to the actor.
enum Command {
    /// Operation on the coordinator.
    Call(Call),
    /// Operations on the coordinator, with no other between them.
    Calls(Vec<Call>),
    /// Change of the cluster.
    ChangeCluster(NewCluster, oneshot::Sender<Answer<Changed, VersionConflict>>),
    /// Stores the running periods.
    EndPeriods(oneshot::Sender<Answer<(), std::convert::Infallible>>),
    /// Request for a snapshot taken after this command.
    Snapshot(oneshot::Sender<Arc<NetworkSnapshot>>),
    /// Result of a job of the coordinator with this number.
    JobDone(u64, Box<JobResult>),
}

impl Command {
    /// Number of operations.
    fn operations(&self) -> usize {
        if let Command::Calls(calls) = self { calls.len() } else { 1 }
    }
}

/// Version conflict: the cluster has this version, not the expected version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionConflict(pub ClusterVersion);

/// Handle to the actor: sends it commands, and reads the data that it publishes.
#[derive(Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Command>,
    published: Arc<PublishedState>,
    reader: ReaderThread,
    store_kind: Kind,
    kept_telemetry: KeptTelemetry,
}

/// The actor has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// Failure to open a handle.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store could not be read, or contains invalid data.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored state does not fit the cluster.
    #[error("the stored state does not fit the cluster: {0}")]
    Resume(#[from] leeward_ledger::CommitError),
    /// The stored cluster is invalid.
    #[error(transparent)]
    Cluster(#[from] InputError),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Creates a coordinator without state for a cluster. The flag is true for a leader; a follower's coordinator advises
/// no moves. A new coordinator is created after a failure of the store, and after a change of the cluster or of the
/// leader.
pub type Maker = Box<dyn Fn(&Cluster, bool) -> Coordinator<Channels> + Send>;

/// A new cluster.
#[derive(Clone, Debug)]
pub struct NewCluster {
    /// The parsed cluster.
    pub cluster: Cluster,
    /// Cluster file, as JSON.
    pub text: Arc<str>,
    /// Origin of the cluster.
    pub origin: Origin,
    /// Required current version, if the client named one.
    pub after: Option<ClusterVersion>,
}

/// Result of a change of the cluster.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The current version.
    pub version: Version,
    /// True if this cluster was already the current one.
    pub again: bool,
}

impl NewCluster {
    /// Reads a cluster file, in YAML or JSON; `file` names it in errors.
    ///
    /// # Errors
    /// An [`InputError`] with line and field.
    pub fn read(file: &str, text: &str) -> Result<NewCluster, InputError> {
        let cluster = Cluster::from_text(file, text)?;
        let json: serde_json::Value = read_yaml(file, text)?;
        Ok(NewCluster { cluster, text: json.to_string().into(), origin: Origin::File, after: None })
    }
}

impl Handle {
    /// Creates a handle with a coordinator resumed from the store, and the actor's loop, to be run as a task. The loop
    /// ends after the last handle is dropped and all changes are written.
    ///
    /// The cluster comes from `file`, with two exceptions. If `file` is unchanged since the last start and a client
    /// changed the cluster, the changed cluster stays. If another service leads, the leader's cluster counts. Other
    /// services learn that this service is at `address`. The loads continue with `telemetry`, the fresh part of the
    /// state of an earlier run.
    ///
    /// # Errors
    /// An [`OpenError`] if the store, the stored state or a thread fails.
    pub async fn open(
        make: Maker,
        file: NewCluster,
        store: Box<dyn Store>,
        clock: Clock,
        address: Arc<str>,
        telemetry: TelemetryState,
    ) -> Result<(Handle, impl Future<Output = ()> + Send), OpenError> {
        let (sender, messages) = mpsc::channel(MAX_COMMANDS);
        let mut coordinator = new_coordinator(&make, &file.cluster, false);
        coordinator.wake(clock.now());
        let limits = coordinator.limits();
        let extent = Extent { decisions: limits.decisions, callers: limits.keys };
        let store_kind = store.kind();
        let reader = ReaderThread::start(store.reader()?)?;
        let writer = GroupCommitWriter::start(store, extent, address)?;
        let unversioned = Version {
            number: ClusterVersion::default(),
            at: clock.now(),
            origin: Origin::File,
            text: file.text.clone(),
        };
        let (publisher, published) = SnapshotPublisher::new(coordinator.snapshot(), unversioned);
        let cluster = file.cluster.clone();
        let (jobs, coordinators) = (JobThreads::start(&sender)?, 0);
        let mut actor = Actor {
            coordinator,
            coordinators,
            jobs,
            cluster,
            make,
            writer,
            clock,
            publisher,
            term: None,
            exact: false,
            owed: Vec::new(),
            pending: Vec::new(),
        };
        let kept_telemetry = actor.begin(file, telemetry).await?;
        let handle = Handle { inbox: sender, published, reader, store_kind, kept_telemetry };
        Ok((handle, actor.run(messages)))
    }

    /// Runs an operation on the coordinator, and waits for its reply. The ids in the operation refer to `fabric`.
    ///
    /// # Errors
    /// The operation's own error, or [`Unavailable`]. [`Unavailable::ClusterChanged`] if `fabric` is not the current
    /// one, or if the operation waited when the coordinator was created again.
    pub async fn call<O: Operation>(&self, operation: O, fabric: Arc<Fabric>) -> Answer<O::Reply, O::Error> {
        let stopped = || CallError::Unavailable(Unavailable::Stopped);
        let (to, reply) = oneshot::channel();
        let call = Call::new(operation, fabric, to);
        self.inbox.send(Command::Call(call)).await.map_err(|_| stopped())?;
        reply.await.map_err(|_| stopped())?
    }

    /// Runs a read of the store beside its writes, and waits for its result. It sees all changes whose replies were
    /// sent before the call.
    ///
    /// # Errors
    /// [`ReadError`] if too many reads wait, or the store cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ReadError> {
        self.reader.read(read).await
    }

    /// Ends the running periods and waits until they are stored, before the service ends.
    ///
    /// # Errors
    /// [`Unavailable`] if they could not be stored.
    pub async fn end_periods(&self) -> Answer<(), std::convert::Infallible> {
        let stopped = || CallError::Unavailable(Unavailable::Stopped);
        let (to, stored) = oneshot::channel();
        self.inbox.send(Command::EndPeriods(to)).await.map_err(|_| stopped())?;
        stored.await.map_err(|_| stopped())?
    }

    /// Sums of the running ten minutes, up to the last step of the history, without the loads of links. `None` before the
    /// first step.
    pub fn running_period(&self) -> Option<Arc<Period>> {
        self.published.running.load_full()
    }

    /// Runs operations one after another, with no other between them. Their changes are in one commit, except those of
    /// operations that complete later. Returns their answers in the order of the operations.
    pub async fn call_all<O: Operation>(
        &self,
        operations: Vec<O>,
        fabric: Arc<Fabric>,
    ) -> Vec<Answer<O::Reply, O::Error>> {
        let stopped = || CallError::Unavailable(Unavailable::Stopped);
        let (calls, replies): (Vec<Call>, Vec<_>) = operations
            .into_iter()
            .map(|operation| {
                let (to, reply) = oneshot::channel();
                (Call::new(operation, fabric.clone(), to), reply)
            })
            .unzip();
        // If the actor has stopped, the replies are dropped with the calls.
        let _ = self.inbox.send(Command::Calls(calls)).await;
        let mut answers = Vec::with_capacity(replies.len());
        for reply in replies {
            answers.push(reply.await.unwrap_or_else(|_| Err(stopped())));
        }
        answers
    }

    /// Kind of the store.
    pub fn store_kind(&self) -> Kind {
        self.store_kind
    }

    /// Telemetry of an earlier run that counted at the start.
    pub fn kept_telemetry(&self) -> KeptTelemetry {
        self.kept_telemetry
    }

    /// Subscribes to the relation to the store: leader, follower or unavailable.
    pub fn leader_state(&self) -> watch::Receiver<LeaderState> {
        self.published.leader_state.subscribe()
    }

    /// Current version of the cluster.
    pub fn cluster(&self) -> Arc<Version> {
        self.published.cluster.load_full()
    }

    /// Changes the cluster. Decisions stay if the new cluster has their hosts, and telemetry stays if it has its links.
    ///
    /// # Errors
    /// [`VersionConflict`] if the current version is not the expected one, or [`Unavailable`].
    pub async fn change_cluster(&self, cluster: NewCluster) -> Answer<Changed, VersionConflict> {
        let stopped = || CallError::Unavailable(Unavailable::Stopped);
        let (to, reply) = oneshot::channel();
        self.inbox.send(Command::ChangeCluster(cluster, to)).await.map_err(|_| stopped())?;
        reply.await.map_err(|_| stopped())?
    }

    /// A snapshot that includes everything acknowledged before this call.
    ///
    /// # Errors
    /// [`Closed`] if the actor has stopped.
    pub async fn snapshot(&self) -> Result<Arc<NetworkSnapshot>, Closed> {
        let (sender, snapshot) = oneshot::channel();
        self.inbox.send(Command::Snapshot(sender)).await.map_err(|_| Closed)?;
        snapshot.await.map_err(|_| Closed)
    }

    /// The last snapshot, at most a second old, without waiting.
    pub fn last_snapshot(&self) -> Arc<NetworkSnapshot> {
        self.published.snapshot.load_full()
    }

    /// Age of the last snapshot, by a monotonic clock.
    pub fn age(&self) -> Duration {
        self.published.age()
    }

    /// Subscribes to the epochs of new snapshots.
    pub fn epochs(&self) -> watch::Receiver<Epoch> {
        self.published.epochs.subscribe()
    }

    /// Subscribes to versions of the set of promises, with the hosts of the last changes. A version may be announced before it
    /// is durable; operations that read promises wait for that.
    pub fn promises(&self) -> watch::Receiver<RecentChanges> {
        self.published.promises.subscribe()
    }

    /// Waits for a ledger epoch other than `epoch`: a later one, or an epoch of another ledger, which starts from zero.
    ///
    /// # Errors
    /// [`Closed`] if the actor has stopped.
    pub async fn newer(&self, epoch: Epoch) -> Result<Arc<NetworkSnapshot>, Closed> {
        let mut epochs = self.published.epochs.subscribe();
        epochs.wait_for(|&now| now != epoch).await.map_err(|_| Closed)?;
        Ok(self.last_snapshot())
    }

    /// History steps that end after `since`; every `join` steps are merged into one.
    pub fn history(&self, since: Nanos, join: u64) -> HistoryBuckets {
        self.published.history.since(since, join)
    }
}

/// Creates a coordinator without state.
fn new_coordinator(make: &Maker, cluster: &Cluster, is_leader: bool) -> Coordinator<Channels> {
    let coordinator = make(cluster, is_leader);
    if is_leader { coordinator } else { coordinator.into_follower() }
}
