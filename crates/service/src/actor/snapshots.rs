//! Publication of snapshots. Reads take no lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use leeward_ledger::Epoch;
use leeward_records::{ClusterVersion, Version};
use tokio::sync::{oneshot, watch};

use super::history::{BucketSums, History};
use crate::core::{NetworkSnapshot, Unavailable};

/// Snapshots take at most this fraction (1 in N) of the actor's time, for any number of requests.
const SHARE: u32 = 10;
/// Largest number of past snapshots for reuse of their memory. Most readers use the last snapshot; comparisons and slow
/// responses use the snapshot before. If readers use all of them, the next snapshot takes new memory.
const MAX_PAST: usize = 3;
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
    /// Epoch of the last snapshot.
    pub epochs: watch::Sender<Epoch>,
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
    /// Readers that wait for the next snapshot.
    readers: Vec<oneshot::Sender<Arc<NetworkSnapshot>>>,
    /// Past snapshots, which readers may still use.
    past: VecDeque<Arc<NetworkSnapshot>>,
    /// Time of the last snapshot, and the time it took.
    last: Instant,
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
        let published = PublishedState { snapshot, cluster, history, epochs, made, began, leader_state };
        let published = Arc::new(published);
        let publisher = SnapshotPublisher {
            published: published.clone(),
            sums: BucketSums::default(),
            readers: Vec::new(),
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
    pub fn add_reader(&mut self, reader: oneshot::Sender<Arc<NetworkSnapshot>>) {
        self.readers.push(reader);
    }

    /// Time of the next snapshot.
    pub fn due(&self) -> Instant {
        self.last + if self.readers.is_empty() { TICK } else { self.took * SHARE }
    }

    /// True if the next snapshot is due.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    /// Takes a snapshot if due, and reuses the memory of an unused past snapshot if possible.
    pub fn make(&mut self, snapshot: impl FnOnce(Option<NetworkSnapshot>) -> NetworkSnapshot) {
        if self.is_due() {
            self.make_now(snapshot);
        }
    }

    /// Takes a snapshot at once.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures durations on this machine; no decision depends on them"
    )]
    pub fn make_now(&mut self, snapshot: impl FnOnce(Option<NetworkSnapshot>) -> NetworkSnapshot) {
        let began = Instant::now();
        let free = self.past.iter().position(|past| Arc::strong_count(past) == 1);
        let past = free.and_then(|free| self.past.remove(free)).and_then(Arc::into_inner);
        let snapshot = Arc::new(snapshot(past));
        self.published.history.record(&mut self.sums, &snapshot);
        self.published.snapshot.store(snapshot.clone());
        self.published.epochs.send_replace(snapshot.epoch);
        for reader in self.readers.drain(..) {
            let _ = reader.send(snapshot.clone());
        }
        self.past.push_back(snapshot);
        if self.past.len() > MAX_PAST {
            self.past.pop_front();
        }
        self.last = Instant::now();
        self.took = self.last - began;
        let made = self.last - self.published.began;
        self.published.made.store(made.as_millis() as u64, Ordering::Relaxed);
    }
}
