//! What readers see, and how they come to a newer one. Reading it takes no lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use leeward_records::Version;
use tokio::sync::{oneshot, watch};

use super::history::{History, Sums};
use crate::core::{Unavailable, World};

/// Worlds are made no more often than so many times the time it takes to make one, whoever asks.
const SHARE: u32 = 10;
/// So many worlds are kept for the memory of the next: readers have the last one, those who compare or who still answer one
/// before, and where all are looked at the next takes new memory.
const PAST: usize = 3;
/// A world is made at least so often.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// How the service stands to its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// It decides.
    Leads,
    /// Another one does.
    Follows {
        /// Its address; `None` if that is not known.
        leader: Option<Arc<str>>,
    },
    /// Nothing can be kept now.
    Stalls {
        /// Why.
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

/// The last world that was made, and the hour before.
pub(super) struct Published {
    pub world: ArcSwap<World>,
    /// The version of the cluster.
    pub cluster: ArcSwap<Version>,
    pub history: History,
    /// The epoch of the last world.
    pub epochs: watch::Sender<u64>,
    /// When the last world was made, in milliseconds since this began: by no clock that is set.
    made: AtomicU64,
    began: Instant,
    pub position: watch::Sender<Position>,
}

impl Published {
    /// How long ago the last world was made.
    pub fn age(&self) -> Duration {
        let made = Duration::from_millis(self.made.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(made)
    }
}

/// When the next world is made, and who waits for it; the writer's alone.
pub(super) struct Press {
    published: Arc<Published>,
    sums: Sums,
    wanted: Vec<oneshot::Sender<Arc<World>>>,
    /// The last worlds, which somebody may still look at.
    past: VecDeque<Arc<World>>,
    /// When the last one was made, and how long that took.
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

    /// It stands to its store like this from now on.
    pub fn stand(&mut self, position: Position) {
        self.published.position.send_if_modified(|known| {
            let modified = *known != position;
            *known = position;
            modified
        });
    }

    /// How it stands to its store.
    pub fn position(&self) -> Position {
        self.published.position.borrow().clone()
    }

    /// The cluster is another one.
    pub fn cluster(&mut self, version: Version) {
        self.published.cluster.store(Arc::new(version));
        // Worlds of another size are of no use.
        self.past.clear();
    }

    /// The number of the cluster's version.
    pub fn version(&self) -> u64 {
        self.published.cluster.load().number
    }

    /// Whether that is this one.
    pub fn has(&self, version: &Version) -> bool {
        **self.published.cluster.load() == *version
    }

    /// The version of the cluster, if that is its text.
    pub fn counts(&self, text: &str) -> Option<Version> {
        let version = self.published.cluster.load();
        (*version.text == *text).then(|| Version::clone(&version))
    }

    /// Somebody wants a world that is no older than now.
    pub fn want(&mut self, asker: oneshot::Sender<Arc<World>>) {
        self.wanted.push(asker);
    }

    /// When to make the next one.
    pub fn due(&self) -> Instant {
        self.last + if self.wanted.is_empty() { TICK } else { self.took * SHARE }
    }

    /// Whether it is time to.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long something takes on this machine, and nothing that is decided"
    )]
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    /// Makes one if it is time, in the memory of one before where nobody looks at that any more.
    pub fn make(&mut self, world: impl FnOnce(Option<World>) -> World) {
        if self.is_due() {
            self.make_now(world);
        }
    }

    /// Makes one at once.
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
