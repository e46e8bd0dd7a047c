//! The one task that owns the desk. Everybody else sends it messages; so all see the network with the placements of
//! those before them in it. What must not be lost is written by a thread of its own ([`keeper`]) while the desk goes on.
//!
//! When something cannot be kept, whoever asked for it is told so, and the desk is made anew from what is: what was
//! decided since stands nowhere.

mod history;
mod keeper;
mod published;

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::input::{InputError, read_yaml};
use leeward_fabric::{Cluster, Fabric, Nanos};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::history::Slots;
use self::keeper::{Extent, Keeper, Turn};
use self::published::{Press, Published};
use crate::clock::Clock;
use crate::desk::{Desk, Message, Refused, Replies, Reply, Seen, World};
use crate::store::{Change, Origin, Store, StoreError, Version};

/// Messages that may be on their way; who sends one more waits.
const ON_THEIR_WAY: usize = 1024;
/// How long after a failure the store is asked again.
const AGAIN: Duration = Duration::from_millis(500);

type Answer = Result<Reply, Refused>;
type Asker = oneshot::Sender<Answer>;

/// What is handed in.
#[expect(clippy::large_enum_variant, reason = "nearly all are messages")]
enum Envelope {
    /// A message for the desk, and the fabric that its numbers are of.
    Message(Message, Arc<Fabric>, Asker),
    /// The cluster is to be another one.
    Cluster(NewCluster, oneshot::Sender<Result<(), Refused>>),
    /// Somebody wants to see the network as it is now.
    World(oneshot::Sender<Arc<World>>),
}

/// Where messages for the desk are handed in, and what readers see.
#[derive(Clone)]
pub struct Office {
    inbox: mpsc::Sender<Envelope>,
    published: Arc<Published>,
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

/// What makes a desk for a cluster that knows nothing yet; after a failure of the store, or a change of the cluster,
/// another one is made.
pub type Maker = Box<dyn Fn(&Cluster) -> Desk<Asker> + Send>;

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
    /// The cluster is that of `file`, unless the last one that came from a file is the same and was changed since.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(
        make: Maker,
        file: NewCluster,
        store: Box<dyn Store>,
        clock: Clock,
    ) -> Result<(Office, impl Future<Output = ()> + Send), OpenError> {
        let (sender, messages) = mpsc::channel(ON_THEIR_WAY);
        let (failed, failures) = mpsc::channel(1);
        let mut desk = fresh(&make, &file.cluster);
        let limits = desk.limits();
        let extent = Extent { decisions: limits.decisions, callers: limits.keys };
        let keeper = Keeper::start(store, extent, failed)?;
        let before = Version { number: 0, at: clock.now(), origin: Origin::File, text: file.text.clone() };
        let (press, published) = Press::new(desk.world(), before);
        let mut work = Work { desk, cluster: file.cluster.clone(), make, keeper, clock, press };
        let state = work.keeper.load().await?;
        let stored = state.cluster.filter(|_| state.file.is_some_and(|last| last.text == file.text));
        match stored {
            Some(stored) => {
                work.cluster = Cluster::from_text("the store's cluster", &stored.text)?;
                work.press.cluster(stored);
            }
            None => work.note_cluster(&file).await.map_err(StoreError::Database)?,
        }
        work.resume(None).await?;
        work.press.make_now(|| work.desk.world());
        Ok((Office { inbox: sender, published }, work.run(messages, failures)))
    }

    /// Asks, and waits for the reply.
    ///
    /// Numbers in the message are of `fabric`; [`Refused::Moved`] if the cluster is another one now.
    pub async fn ask(&self, message: Message, fabric: Arc<Fabric>) -> Result<Answer, Closed> {
        let (sender, reply) = oneshot::channel();
        self.inbox.send(Envelope::Message(message, fabric, sender)).await.map_err(|_| Closed)?;
        reply.await.map_err(|_| Closed)
    }

    /// The version of the cluster that counts.
    pub fn cluster(&self) -> Arc<Version> {
        self.published.cluster.load_full()
    }

    /// Makes another cluster the one that counts. What was decided stays as far as its hosts are there, and what was seen
    /// is seen as far as its links are.
    pub async fn change(&self, cluster: NewCluster) -> Result<Result<(), Refused>, Closed> {
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

    /// Changes whenever a world was made.
    pub fn made(&self) -> watch::Receiver<u64> {
        self.published.epochs.subscribe()
    }

    /// Waits for a state of the ledger after `epoch`.
    pub async fn newer(&self, epoch: u64) -> Result<Arc<World>, Closed> {
        let mut epochs = self.published.epochs.subscribe();
        epochs.wait_for(|&now| now > epoch).await.map_err(|_| Closed)?;
        Ok(self.last_world())
    }

    /// Seconds of a step of the history.
    pub fn step(&self) -> u64 {
        history::STEP
    }

    /// The steps that end after `since`, `join` of them to one.
    pub fn history(&self, since: Nanos, join: u64) -> Slots {
        self.published.history.since(since, join)
    }
}

fn fresh(make: &Maker, cluster: &Cluster) -> Desk<Asker> {
    make(cluster).with_listening(|asker| !asker.is_closed())
}

struct Work {
    desk: Desk<Asker>,
    cluster: Cluster,
    make: Maker,
    keeper: Keeper,
    clock: Clock,
    press: Press,
}

impl Work {
    /// A new desk that goes on where the store says, and has seen what another one saw.
    async fn resume(&mut self, seen: Option<Seen>) -> Result<(), OpenError> {
        let state = self.keeper.load().await?;
        self.desk = fresh(&self.make, &self.cluster);
        self.desk.resume(state)?;
        seen.into_iter().for_each(|seen| self.desk.see(seen));
        self.finish(Replies::new()).await;
        Ok(())
    }

    /// Keeps a version of the cluster, which is told when it is kept.
    async fn note_cluster(&mut self, new: &NewCluster) -> Result<(), String> {
        let state = self.keeper.load().await.map_err(|error| error.to_string())?;
        let found = state.cluster.map_or(0, |cluster| cluster.number);
        let NewCluster { text, origin, .. } = new;
        let version =
            Version { number: found + 1, at: self.clock.now(), origin: *origin, text: text.clone() };
        let changes = vec![Change::Cluster(version.clone())];
        self.keeper.keep(Turn { changes, replies: Vec::new() }).await;
        let state = self.keeper.load().await.map_err(|error| error.to_string())?;
        if state.cluster.is_none_or(|cluster| cluster.number != version.number) {
            return Err("it was not written".to_owned());
        }
        self.press.cluster(version);
        Ok(())
    }

    async fn change_cluster(&mut self, new: NewCluster) -> Result<(), Refused> {
        let found = self.press.version();
        if new.after.is_some_and(|after| after != found) {
            return Err(Refused::Version { found });
        }
        self.note_cluster(&new).await.map_err(Refused::Store)?;
        let mut away = Replies::new();
        self.desk.turn_away(&mut away);
        self.finish(away).await;
        let seen = self.desk.seen();
        self.cluster = new.cluster;
        self.resume(Some(seen)).await.map_err(|error| Refused::Store(error.to_string()))?;
        self.press.make_now(|| self.desk.world());
        Ok(())
    }

    async fn run(mut self, mut messages: mpsc::Receiver<Envelope>, mut failures: mpsc::Receiver<StoreError>) {
        let mut replies = Replies::new();
        loop {
            tokio::select! {
                biased;
                Some(_) = failures.recv() => {
                    while self.resume(None).await.is_err() {
                        tokio::time::sleep(AGAIN).await;
                        refuse(&mut messages);
                    }
                    continue;
                }
                message = messages.recv() => match message {
                    Some(Envelope::Message(_, fabric, asker)) if !Arc::ptr_eq(&fabric, self.desk.fabric()) => {
                        replies.push((asker, Err(Refused::Moved)));
                    }
                    Some(Envelope::Cluster(new, asker)) => {
                        let changed = self.change_cluster(new).await;
                        let _ = asker.send(changed);
                    }
                    Some(Envelope::Message(message, _, asker)) => {
                        self.desk.handle(self.clock.now(), message, asker, &mut replies);
                    }
                    Some(Envelope::World(asker)) => self.press.want(asker),
                    None => break,
                },
                () = until(&self.clock, self.desk.wakes_at()) => self.desk.wake(self.clock.now(), &mut replies),
                () = tokio::time::sleep_until(self.press.due().into()) => {
                    self.desk.wake(self.clock.now(), &mut replies);
                }
            }
            self.finish(std::mem::take(&mut replies)).await;
            self.press.make(|| self.desk.world());
        }
    }

    /// Sends replies: at once where they tell of what telemetry shows, and when it is kept where they tell of what was
    /// decided.
    async fn finish(&mut self, replies: Replies<Asker>) {
        let mut turn = Turn { changes: self.desk.changes().collect(), replies: Vec::new() };
        for (asker, answer) in replies {
            match answer {
                Ok(Reply::Placed { .. } | Reply::Decision(_)) => turn.replies.push((asker, answer)),
                answer => drop(asker.send(answer)),
            }
        }
        if !turn.changes.is_empty() || !turn.replies.is_empty() {
            self.keeper.keep(turn).await;
        }
    }
}

/// Tells all who wait that nothing can be kept.
fn refuse(messages: &mut mpsc::Receiver<Envelope>) {
    while let Ok(envelope) = messages.try_recv() {
        if let Envelope::Message(_, _, asker) = envelope {
            let _ = asker.send(Err(Refused::Store("it could not be read again yet".to_owned())));
        }
    }
}

/// Waits for a time of the engine's; for ever if there is none.
async fn until(clock: &Clock, at: Option<Nanos>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_nanos(at.since(clock.now()).0)).await,
        None => std::future::pending().await,
    }
}
