//! Publication of snapshots. Reads take no lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use leeward_fabric::Nanos;
use leeward_ledger::Epoch;
use leeward_promises::RecentChanges;
use leeward_records::{Change, ClusterVersion, Counts, Period, Version};
use tokio::sync::{oneshot, watch};

use super::history::{BucketSums, History};
use super::periods::Periods;
use crate::core::{Addresses, Coordinator, NetworkSnapshot, Unavailable};

/// Snapshots take at most this fraction (1 in N) of the actor's time, for any number of requests.
const SHARE: u32 = 10;
/// Largest number of past snapshots for reuse of their memory. Most readers use the last snapshot; comparisons and slow
/// responses use the snapshot before. If readers use all of them, the next snapshot takes new memory.
const MAX_PAST: usize = 3;
/// Largest number of links, devices or hosts that are copied at once. In a large cluster, commands run between two
/// pieces of a snapshot, so none of them waits for a whole snapshot.
const PIECE: usize = 4_096;
/// Longest time between two snapshots.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Relation of the service to its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaderState {
    /// This service is the leader.
    Leader,
    /// Another service is the leader.
    Follower {
        /// Address of the leader; `None` if unknown.
        leader: Option<Arc<str>>,
    },
    /// Nothing can be persisted at present.
    Unavailable {
        /// Reason of the failure.
        problem: Arc<str>,
    },
}

impl LeaderState {
    /// Returns the reason why this service decides nothing; `None` if it is the leader.
    pub fn unavailable(&self) -> Option<Unavailable> {
        match self {
            LeaderState::Leader => None,
            LeaderState::Follower { leader } => Some(Unavailable::Follower { leader: leader.clone() }),
            LeaderState::Unavailable { problem } => Some(Unavailable::StoreFailed(problem.to_string())),
        }
    }
}

/// State that readers see without asking the actor: the last snapshot, the cluster's version, the history of the last
/// hour, and the relation to the store.
pub(super) struct PublishedState {
    pub snapshot: ArcSwap<NetworkSnapshot>,
    /// Version of the cluster.
    pub cluster: ArcSwap<Version>,
    pub history: History,
    /// Sums of the running ten minutes, without links; `None` before the first step.
    pub running: ArcSwapOption<Period>,
    /// Epoch of the last snapshot.
    pub epochs: watch::Sender<Epoch>,
    /// Version of the set of promises, with the hosts of the last changes. It may not be durable yet.
    pub promises: watch::Sender<RecentChanges>,
    /// Time of the last snapshot, in milliseconds since `began`, by a monotonic clock.
    made: AtomicU64,
    began: Instant,
    pub leader_state: watch::Sender<LeaderState>,
}

impl PublishedState {
    /// Age of the last snapshot.
    pub fn age(&self) -> Duration {
        let made = Duration::from_millis(self.made.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(made)
    }
}

/// Schedule of snapshots and the readers that wait for one; only the actor's task uses it.
pub(super) struct SnapshotPublisher {
    published: Arc<PublishedState>,
    sums: BucketSums,
    periods: Periods,
    /// Changes of periods that are not yet on their way to the store.
    changes: Vec<Change>,
    /// Readers that wait for the next snapshot.
    readers: Vec<Reader>,
    /// Snapshot in progress.
    building: Option<Building>,
    /// Past snapshots, which readers may still use.
    past: VecDeque<Arc<NetworkSnapshot>>,
    /// Number of snapshots so far.
    count: u64,
    /// Time of the last snapshot, and the time it took.
    last: Instant,
    took: Duration,
}

/// A reader that waits for a snapshot.
type Reader = oneshot::Sender<Arc<NetworkSnapshot>>;

/// A snapshot in progress.
struct Building {
    snapshot: NetworkSnapshot,
    /// Readers that asked before it began.
    readers: Vec<Reader>,
    /// Time that it has taken.
    took: Duration,
}

impl SnapshotPublisher {
    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    pub fn new(snapshot: NetworkSnapshot, cluster: Version) -> (SnapshotPublisher, Arc<PublishedState>) {
        let epochs = watch::Sender::new(snapshot.epoch);
        let (snapshot, cluster) = (ArcSwap::from_pointee(snapshot), ArcSwap::from_pointee(cluster));
        let leader_state =
            watch::Sender::new(LeaderState::Unavailable { problem: "the service has just started".into() });
        let (history, made, began) = (History::default(), AtomicU64::new(0), Instant::now());
        let running = ArcSwapOption::empty();
        let promises = watch::Sender::default();
        let published = PublishedState {
            snapshot,
            cluster,
            history,
            running,
            epochs,
            promises,
            made,
            began,
            leader_state,
        };
        let published = Arc::new(published);
        let publisher = SnapshotPublisher {
            published: published.clone(),
            sums: BucketSums::default(),
            periods: Periods::default(),
            changes: Vec::new(),
            readers: Vec::new(),
            building: None,
            count: 0,
            past: VecDeque::new(),
            last: Instant::now(),
            took: Duration::ZERO,
        };
        (publisher, published)
    }

    /// Sets the relation to the store.
    pub fn set_state(&mut self, leader_state: LeaderState) {
        self.published.leader_state.send_if_modified(|current| {
            let modified = *current != leader_state;
            *current = leader_state;
            modified
        });
    }

    /// Sets the version of the set of promises.
    pub fn set_promises(&mut self, recent: &RecentChanges) {
        self.published.promises.send_if_modified(|current| {
            let modified = current.version != recent.version;
            if modified {
                current.clone_from(recent);
            }
            modified
        });
    }

    /// Relation to the store.
    pub fn leader_state(&self) -> LeaderState {
        self.published.leader_state.borrow().clone()
    }

    /// Sets the cluster's version.
    pub fn set_cluster(&mut self, version: Version) {
        self.published.cluster.store(Arc::new(version));
        // Snapshots of another size cannot be reused.
        self.past.clear();
    }

    /// Number of the cluster's version.
    pub fn version(&self) -> ClusterVersion {
        self.published.cluster.load().number
    }

    /// True if this is the current version.
    pub fn is_current(&self, version: &Version) -> bool {
        **self.published.cluster.load() == *version
    }

    /// The current version, if it has this text.
    pub fn current_with_text(&self, text: &str) -> Option<Version> {
        let version = self.published.cluster.load();
        (*version.text == *text).then(|| Version::clone(&version))
    }

    /// Adds a reader that waits for a snapshot taken after this call.
    pub fn add_reader(&mut self, reader: Reader) {
        self.readers.push(reader);
    }

    /// Changes of periods since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Drops the changes of periods since the last call, because this service does not lead.
    pub fn drop_changes(&mut self) {
        if !std::mem::take(&mut self.changes).is_empty() {
            self.periods.forget_names();
        }
    }

    /// Begins new periods, because this service has become the leader: the earlier leader stored its own.
    pub fn restart_periods(&mut self) {
        self.periods.restart();
        self.changes.clear();
    }

    /// Adds counts of a coordinator that is replaced to the next step.
    pub fn carry(&mut self, counts: &Counts) {
        self.periods.carry(counts);
    }

    /// Ends the running periods. The next call of [`SnapshotPublisher::take_changes`] returns them.
    pub fn end_periods(&mut self) {
        self.changes.extend(self.periods.flush());
    }

    /// Time of the next snapshot.
    pub fn due(&self) -> Instant {
        self.last + if self.readers.is_empty() { TICK } else { self.took * SHARE }
    }

    /// True if a snapshot is in progress.
    pub fn is_building(&self) -> bool {
        self.building.is_some()
    }

    /// True if the next snapshot is due.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    pub fn is_due(&self) -> bool {
        self.building.is_none() && Instant::now() >= self.due()
    }

    /// Copies a piece of a snapshot, if one is due or in progress.
    pub fn make<A: Addresses>(&mut self, coordinator: &mut Coordinator<A>) {
        if self.is_building() || self.is_due() {
            self.advance(coordinator, PIECE);
        }
    }

    /// Takes a snapshot at once. A snapshot in progress, which may be of another coordinator, is dropped.
    pub fn make_now<A: Addresses>(&mut self, coordinator: &mut Coordinator<A>) {
        if let Some(dropped) = self.building.take() {
            self.readers.extend(dropped.readers);
        }
        while {
            self.advance(coordinator, usize::MAX);
            self.is_building()
        } {}
    }

    /// Begins a snapshot in the memory of an unused past snapshot, or copies a further piece of it, and publishes it if
    /// it is complete.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    fn advance<A: Addresses>(&mut self, coordinator: &mut Coordinator<A>, most: usize) {
        let began = Instant::now();
        let mut building = self.building.take().unwrap_or_else(|| {
            let free = self.past.iter().position(|past| Arc::strong_count(past) == 1);
            let past = free.and_then(|free| self.past.remove(free)).and_then(Arc::into_inner);
            let snapshot = coordinator.begin_snapshot(past);
            let (periods, version) = (&mut self.periods, snapshot.version);
            self.published.history.begin(&mut self.sums, &snapshot, |step| {
                let from = Nanos(step.ends.0.saturating_sub(step.length.0));
                let counts = coordinator.take_step(from, step.ends);
                self.changes.extend(periods.add(&step, version, &counts));
                self.published.running.store(periods.running().map(Arc::new));
            });
            Building { snapshot, readers: std::mem::take(&mut self.readers), took: Duration::ZERO }
        });
        let (links, devices) = (building.snapshot.links.len(), building.snapshot.devices.len());
        let is_complete = coordinator.extend_snapshot(&mut building.snapshot, most);
        self.sums.add(&building.snapshot.links[links..], &building.snapshot.devices[devices..]);
        if is_complete {
            self.publish(building, began);
        } else {
            building.took += began.elapsed();
            self.building = Some(building);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    fn publish(&mut self, mut building: Building, began: Instant) {
        self.count += 1;
        building.snapshot.number = self.count;
        let snapshot = Arc::new(building.snapshot);
        self.published.snapshot.store(snapshot.clone());
        self.published.epochs.send_replace(snapshot.epoch);
        for reader in building.readers {
            let _ = reader.send(snapshot.clone());
        }
        self.past.push_back(snapshot);
        if self.past.len() > MAX_PAST {
            self.past.pop_front();
        }
        self.last = Instant::now();
        self.took = building.took + (self.last - began);
        let made = self.last - self.published.began;
        self.published.made.store(made.as_millis() as u64, Ordering::Relaxed);
    }
}
