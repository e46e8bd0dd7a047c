//! Publication of snapshots. Reads take no lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use leeward_records::Version;
use tokio::sync::{oneshot, watch};

use super::history::{History, Sums};
use crate::core::{Unavailable, World};

/// Snapshots take at most one part in this many of the actor's time, regardless of requests.
const SHARE: u32 = 10;
/// Number of past snapshots kept for reuse of their memory. Readers use the last one, and comparisons or slow
/// responses the one before. If all are in use, the next one takes new memory.
const PAST: usize = 3;
/// Longest time between two snapshots.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Relation of the service to its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// This service is the leader.
    Leads,
    /// Another service is the leader.
    Follows {
        /// Address of the leader; `None` if unknown.
        leader: Option<Arc<str>>,
    },
    /// Nothing can be persisted now.
    Stalls {
        /// Reason of the failure.
        problem: Arc<str>,
    },
}

impl Position {
    /// Returns the reason why this service decides nothing; `None` if it is the leader.
    pub fn unavailable(&self) -> Option<Unavailable> {
        match self {
            Position::Leads => None,
            Position::Follows { leader } => Some(Unavailable::Follower { leader: leader.clone() }),
            Position::Stalls { problem } => Some(Unavailable::StoreFailed(problem.to_string())),
        }
    }
}

/// The last snapshot and the history of the last hour.
pub(super) struct Published {
    pub world: ArcSwap<World>,
    /// Version of the cluster.
    pub cluster: ArcSwap<Version>,
    pub history: History,
    /// Epoch of the last snapshot.
    pub epochs: watch::Sender<u64>,
    /// Time of the last snapshot, in milliseconds since `began`, by a monotonic clock.
    made: AtomicU64,
    began: Instant,
    pub position: watch::Sender<Position>,
}

impl Published {
    /// Age of the last snapshot.
    pub fn age(&self) -> Duration {
        let made = Duration::from_millis(self.made.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(made)
    }
}

/// Schedule of snapshots and the readers that wait for one; only the actor's task uses it.
pub(super) struct Press {
    published: Arc<Published>,
    sums: Sums,
    wanted: Vec<oneshot::Sender<Arc<World>>>,
    /// Past snapshots, which readers may still use.
    past: VecDeque<Arc<World>>,
    /// Time of the last snapshot, and the time it took.
    last: Instant,
    took: Duration,
}

impl Press {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long something takes on this machine, and nothing that is decided"
    )]
    pub fn new(world: World, cluster: Version) -> (Press, Arc<Published>) {
        let epochs = watch::Sender::new(world.epoch);
        let (world, cluster) = (ArcSwap::from_pointee(world), ArcSwap::from_pointee(cluster));
        let position = watch::Sender::new(Position::Stalls { problem: "it has just started".into() });
        let (history, made, began) = (History::default(), AtomicU64::new(0), Instant::now());
        let published = Published { world, cluster, history, epochs, made, began, position };
        let published = Arc::new(published);
        let press = Press {
            published: published.clone(),
            sums: Sums::default(),
            wanted: Vec::new(),
            past: VecDeque::new(),
            last: Instant::now(),
            took: Duration::ZERO,
        };
        (press, published)
    }

    /// Sets the relation to the store.
    pub fn stand(&mut self, position: Position) {
        self.published.position.send_if_modified(|known| {
            let modified = *known != position;
            *known = position;
            modified
        });
    }

    /// Relation to the store.
    pub fn position(&self) -> Position {
        self.published.position.borrow().clone()
    }

    /// Sets the cluster's version.
    pub fn cluster(&mut self, version: Version) {
        self.published.cluster.store(Arc::new(version));
        // Snapshots of another size cannot be reused.
        self.past.clear();
    }

    /// Number of the cluster's version.
    pub fn version(&self) -> u64 {
        self.published.cluster.load().number
    }

    /// True if this version is in force.
    pub fn has(&self, version: &Version) -> bool {
        **self.published.cluster.load() == *version
    }

    /// The version in force if it has this text.
    pub fn counts(&self, text: &str) -> Option<Version> {
        let version = self.published.cluster.load();
        (*version.text == *text).then(|| Version::clone(&version))
    }

    /// Adds a reader that waits for a snapshot no older than now.
    pub fn want(&mut self, asker: oneshot::Sender<Arc<World>>) {
        self.wanted.push(asker);
    }

    /// Time of the next snapshot.
    pub fn due(&self) -> Instant {
        self.last + if self.wanted.is_empty() { TICK } else { self.took * SHARE }
    }

    /// True if the next snapshot is due.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long something takes on this machine, and nothing that is decided"
    )]
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    /// Takes a snapshot if due, in the memory of an unused one if possible.
    pub fn make(&mut self, world: impl FnOnce(Option<World>) -> World) {
        if self.is_due() {
            self.make_now(world);
        }
    }

    /// Takes a snapshot at once.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long something takes on this machine, and nothing that is decided"
    )]
    pub fn make_now(&mut self, world: impl FnOnce(Option<World>) -> World) {
        let began = Instant::now();
        let free = self.past.iter().position(|past| Arc::strong_count(past) == 1);
        let past = free.and_then(|free| self.past.remove(free)).and_then(Arc::into_inner);
        let world = Arc::new(world(past));
        self.published.history.note(&mut self.sums, &world);
        self.published.world.store(world.clone());
        self.published.epochs.send_replace(world.epoch);
        for asker in self.wanted.drain(..) {
            let _ = asker.send(world.clone());
        }
        self.past.push_back(world);
        if self.past.len() > PAST {
            self.past.pop_front();
        }
        self.last = Instant::now();
        self.took = self.last - began;
        let made = self.last - self.published.began;
        self.published.made.store(made.as_millis() as u64, Ordering::Relaxed);
    }
}
