//! The one task that owns the desk. Everybody else sends it messages; so all see the network with the placements of
//! those before them in it. What must not be lost is written by a thread of its own ([`keeper`]) while the desk goes on.
//!
//! When something cannot be kept, whoever asked for it is told so, and the desk is made anew from what is: what was
//! decided since stands nowhere. Until something can be kept again, nothing is decided, and what is known is shown.
//!
//! Where several services share a store, one leads and decides ([`Position`]). The others go along with what it keeps,
//! and each is ready to lead in its place; telemetry is for each of them to hear.

mod history;
mod keeper;
mod published;
mod pulse;
mod studies;
mod work;

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::input::{InputError, read_yaml};
use leeward_fabric::{Cluster, Fabric, Nanos};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::history::{STEP, Slots};
use self::keeper::{Extent, Keeper};
pub use self::published::Position;
use self::published::{Press, Published};
use self::studies::Studies;
use self::work::Work;
use crate::clock::Clock;
use crate::desk::{Desk, Finding, Message, Refused, Reply, World};
use crate::store::{Kind, Origin, Store, StoreError, Version};

/// Messages that may be on their way; who sends one more waits.
const ON_THEIR_WAY: usize = 1024;

type Answer = Result<Reply, Refused>;
type Asker = oneshot::Sender<Answer>;

/// What is handed in.
enum Envelope {
    /// A message for the desk, and the fabric that its numbers are of.
    Message(Message, Arc<Fabric>, Asker),
    /// The cluster is to be another one.
    Cluster(NewCluster, oneshot::Sender<Result<Changed, Refused>>),
    /// Somebody wants to see the network as it is now.
    World(oneshot::Sender<Arc<World>>),
    /// What the desk of this number wanted to know.
    Found(u64, Finding),
}

/// Where messages for the desk are handed in, and what readers see.
#[derive(Clone)]
pub struct Office {
    inbox: mpsc::Sender<Envelope>,
    published: Arc<Published>,
    kept: Kind,
}

/// The task is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// Why an office could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store has something that cannot be read, or cannot be read at all.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored does not fit the cluster.
    #[error("what is stored cannot be taken up: {0}")]
    Resume(#[from] leeward_ledger::CommitError),
    /// The cluster that is stored cannot be read.
    #[error(transparent)]
    Cluster(#[from] InputError),
    /// There is no thread to be had.
    #[error("the store's thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// What makes a desk for a cluster that knows nothing yet, one that leads or one that does not: that advises no moves.
/// After a failure of the store, or a change of the cluster or of who leads, another one is made.
pub type Maker = Box<dyn Fn(&Cluster, bool) -> Desk<Asker> + Send>;

/// A cluster that is to be the one that counts.
#[derive(Clone, Debug)]
pub struct NewCluster {
    /// What it is.
    pub cluster: Cluster,
    /// Its file, as JSON.
    pub text: Arc<str>,
    /// Where it comes from.
    pub origin: Origin,
    /// The version that it is to follow, where that matters.
    pub after: Option<u64>,
}

/// What became of a cluster that was to count.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The version that it is.
    pub version: Version,
    /// Whether it counted already.
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

impl Office {
    /// An office with a desk that goes on where the store says, and the desk's work, to be run as a task. The work ends
    /// when every copy of the office is gone, and everything is written then.
    ///
    /// The cluster is that of `file`, unless the last one that came from a file is the same and was changed since, or
    /// another service leads, which others are told of as being at `address`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(
        make: Maker,
        file: NewCluster,
        store: Box<dyn Store>,
        clock: Clock,
        address: Arc<str>,
    ) -> Result<(Office, impl Future<Output = ()> + Send), OpenError> {
        let (sender, messages) = mpsc::channel(ON_THEIR_WAY);
        let mut desk = fresh(&make, &file.cluster, false);
        desk.wake(clock.now(), &mut Vec::new());
        let limits = desk.limits();
        let extent = Extent { decisions: limits.decisions, callers: limits.keys };
        let kept = store.kind();
        let keeper = Keeper::start(store, extent, address)?;
        let before = Version { number: 0, at: clock.now(), origin: Origin::File, text: file.text.clone() };
        let (press, published) = Press::new(desk.world(), before);
        let cluster = file.cluster.clone();
        let (studies, desks) = (Studies::start(&sender)?, 0);
        let (term, exact, owed) = (None, false, Vec::new());
        let mut work = Work { desk, desks, studies, cluster, make, keeper, clock, press, term, exact, owed };
        work.begin(file).await?;
        Ok((Office { inbox: sender, published, kept }, work.run(messages)))
    }

    /// Asks, and waits for the reply.
    ///
    /// Numbers in the message are of `fabric`; [`Refused::Moved`] if the cluster is another one now.
    pub async fn ask(&self, message: Message, fabric: Arc<Fabric>) -> Result<Answer, Closed> {
        let (sender, reply) = oneshot::channel();
        self.inbox.send(Envelope::Message(message, fabric, sender)).await.map_err(|_| Closed)?;
        reply.await.map_err(|_| Closed)
    }

    /// What decisions are kept in.
    pub fn kept(&self) -> Kind {
        self.kept
    }

    /// Whether placements are answered here.
    pub fn position(&self) -> watch::Receiver<Position> {
        self.published.position.subscribe()
    }

    /// The version of the cluster that counts.
    pub fn cluster(&self) -> Arc<Version> {
        self.published.cluster.load_full()
    }

    /// Makes another cluster the one that counts. What was decided stays as far as its hosts are there, and what was seen
    /// is seen as far as its links are.
    pub async fn change(&self, cluster: NewCluster) -> Result<Result<Changed, Refused>, Closed> {
        let (sender, reply) = oneshot::channel();
        self.inbox.send(Envelope::Cluster(cluster, sender)).await.map_err(|_| Closed)?;
        reply.await.map_err(|_| Closed)
    }

    /// The network with all in it that was acknowledged before this was asked.
    pub async fn world(&self) -> Result<Arc<World>, Closed> {
        let (sender, world) = oneshot::channel();
        self.inbox.send(Envelope::World(sender)).await.map_err(|_| Closed)?;
        world.await.map_err(|_| Closed)
    }

    /// The network as it was at most a second ago; nobody is waited for.
    pub fn last_world(&self) -> Arc<World> {
        self.published.world.load_full()
    }

    /// How long ago the last world was made, by no clock that is set.
    pub fn age(&self) -> Duration {
        self.published.age()
    }

    /// Changes whenever a world was made.
    pub fn made(&self) -> watch::Receiver<u64> {
        self.published.epochs.subscribe()
    }

    /// Waits for another state of the ledger than that of `epoch`: a later one, or one of another ledger, which counts
    /// from the beginning.
    pub async fn newer(&self, epoch: u64) -> Result<Arc<World>, Closed> {
        let mut epochs = self.published.epochs.subscribe();
        epochs.wait_for(|&now| now != epoch).await.map_err(|_| Closed)?;
        Ok(self.last_world())
    }

    /// The steps that end after `since`, `join` of them to one.
    pub fn history(&self, since: Nanos, join: u64) -> Slots {
        self.published.history.since(since, join)
    }
}

fn fresh(make: &Maker, cluster: &Cluster, leads: bool) -> Desk<Asker> {
    let desk = make(cluster, leads).with_listening(|asker| !asker.is_closed());
    if leads { desk } else { desk.led_elsewhere() }
}
