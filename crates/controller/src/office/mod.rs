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

use leeward_fabric::Nanos;
use tokio::sync::{mpsc, oneshot};

pub use self::history::Slots;
use self::keeper::{Extent, Keeper, Turn};
use self::published::{Press, Published};
use crate::clock::Clock;
use crate::desk::{Desk, Message, Refused, Replies, Reply, World};
use crate::store::{Store, StoreError};

/// Messages that may be on their way; who sends one more waits.
const ON_THEIR_WAY: usize = 1024;
/// How long after a failure the store is asked again.
const AGAIN: Duration = Duration::from_millis(500);

type Answer = Result<Reply, Refused>;
type Asker = oneshot::Sender<Answer>;

/// What is handed in.
enum Envelope {
    /// A message for the desk.
    Message(Message, Asker),
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
    /// There is no thread to be had.
    #[error("the store's thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// What makes a desk that knows nothing yet; after a failure of the store another one is made.
pub type Maker = Box<dyn Fn() -> Desk<Asker> + Send>;

impl Office {
    /// An office with a desk that goes on where the store says, and the desk's work, to be run as a task. The work ends
    /// when every copy of the office is gone, and everything is written then.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(
        make: Maker,
        store: Box<dyn Store>,
        clock: Clock,
    ) -> Result<(Office, impl Future<Output = ()> + Send), OpenError> {
        let (sender, messages) = mpsc::channel(ON_THEIR_WAY);
        let (failed, failures) = mpsc::channel(1);
        let limits = make().limits();
        let extent = Extent { decisions: limits.decisions, callers: limits.keys };
        let keeper = Keeper::start(store, extent, failed)?;
        let mut desk = fresh(&make);
        let (press, published) = Press::new(desk.world());
        let mut work = Work { desk, make, keeper, clock, press };
        work.resume().await?;
        Ok((Office { inbox: sender, published }, work.run(messages, failures)))
    }

    /// Asks, and waits for the reply.
    pub async fn ask(&self, message: Message) -> Result<Answer, Closed> {
        let (sender, reply) = oneshot::channel();
        self.inbox.send(Envelope::Message(message, sender)).await.map_err(|_| Closed)?;
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

fn fresh(make: &Maker) -> Desk<Asker> {
    make().with_listening(|asker| !asker.is_closed())
}

struct Work {
    desk: Desk<Asker>,
    make: Maker,
    keeper: Keeper,
    clock: Clock,
    press: Press,
}

impl Work {
    /// A new desk that goes on where the store says.
    async fn resume(&mut self) -> Result<(), OpenError> {
        let state = self.keeper.load().await?;
        self.desk = fresh(&self.make);
        self.desk.resume(state)?;
        self.finish(Replies::new()).await;
        Ok(())
    }

    async fn run(mut self, mut messages: mpsc::Receiver<Envelope>, mut failures: mpsc::Receiver<StoreError>) {
        let mut replies = Replies::new();
        loop {
            tokio::select! {
                biased;
                Some(_) = failures.recv() => {
                    while self.resume().await.is_err() {
                        tokio::time::sleep(AGAIN).await;
                        refuse(&mut messages);
                    }
                    continue;
                }
                message = messages.recv() => match message {
                    Some(Envelope::Message(message, asker)) => {
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
        if let Envelope::Message(_, asker) = envelope {
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
