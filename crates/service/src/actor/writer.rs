//! The thread that owns the store. Changes of several batches go into one transaction (group commit), and replies are
//! sent when their changes are durable. The thread also reads evicted decisions for these replies. Between writes it
//! renews the lease twice per second, even if the actor is busy: a service that does not renew its lease loses the
//! leadership.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use leeward_records::{Change, State};
use leeward_store::{Leadership, Store, StoreError};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::heartbeat::{Heartbeat, SILENCE};
use super::replies::{Confirmation, Decisions, Pending};
use crate::core::Unavailable;

/// Largest number of batches in the queue. The actor waits while the queue is full.
const BATCHES: usize = 1024;
/// Largest number of changes in a transaction, so that the first of them does not wait long for the last.
const MAX_CHANGES: usize = 4096;
/// Time between two renewals of the lease.
const RENEWAL: Duration = Duration::from_millis(500);

/// Changes of one iteration of the actor, and the replies that wait for them.
#[derive(Default)]
pub(super) struct Batch {
    pub changes: Vec<Change>,
    pub replies: Vec<Box<dyn Pending>>,
}

/// Replies of a batch. The thread sends the replies, or the actor sends errors instead after a timeout. The earlier of
/// the two takes the replies out of the list.
type Replies = Arc<Mutex<Vec<Box<dyn Pending>>>>;

/// Error message for a thread that has ended.
pub(super) const THREAD_ENDED: &str = "the store's thread has ended";

/// Order to the thread.
enum Order {
    Persist(Vec<Change>, Replies),
    Load,
}

/// Event of the store's thread. Events arrive in the order in which they happen.
pub(super) enum StoreEvent {
    /// Result of a renewal of the lease.
    Lease(Result<Leadership, StoreError>),
    /// Changes were not persisted. Until the next load, the thread persists nothing, because later changes depend on
    /// the lost ones.
    Lost(StoreError),
    /// State of the store.
    Loaded(Box<Result<State, StoreError>>),
    /// The thread has been silent for long: the store hangs. The waiting clients got an error.
    Silent(StoreError),
}

/// Owner of the thread. On drop, the thread writes all batches and ends.
pub(super) struct GroupCommitWriter {
    orders: Option<Sender<Order>>,
    /// Permits for batches that wait.
    permits: Arc<Semaphore>,
    events: mpsc::Receiver<StoreEvent>,
    heartbeat: Arc<Heartbeat>,
    /// True if the thread's silence was reported.
    is_silent: bool,
    /// Replies that wait, by batch.
    waiting: VecDeque<Replies>,
    thread: Option<JoinHandle<()>>,
}

/// Amount of data to load at a start.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub decisions: usize,
    pub callers: usize,
}

impl GroupCommitWriter {
    /// Starts the thread; other services learn that this one is at `address`.
    pub fn start(
        store: Box<dyn Store>,
        extent: Extent,
        address: Arc<str>,
    ) -> std::io::Result<GroupCommitWriter> {
        let (orders, inbox) = std::sync::mpsc::channel();
        let (outbox, events) = mpsc::channel(1);
        let permits = Arc::new(Semaphore::new(BATCHES));
        let heartbeat = Arc::new(Heartbeat::new());
        let work = WriterThread {
            store,
            extent,
            address,
            outbox,
            permits: permits.clone(),
            heartbeat: heartbeat.clone(),
            broken: None,
            lost: None,
            unreported: None,
            lead_term: None,
            loaded_term: None,
        };
        let thread = std::thread::Builder::new().name("leeward-store".to_owned());
        let thread = Some(thread.spawn(move || work.run(&inbox))?);
        let (orders, waiting, is_silent) = (Some(orders), VecDeque::new(), false);
        Ok(GroupCommitWriter { orders, permits, events, heartbeat, is_silent, waiting, thread })
    }

    /// Waits for the next event, or for a long silence.
    pub async fn event(&mut self) -> Option<StoreEvent> {
        let event = tokio::select! {
            biased;
            event = self.events.recv() => event,
            () = self.heartbeat.wait_for_silence(), if !self.is_silent => Some(StoreEvent::Silent(self.give_up())),
        };
        self.is_silent = matches!(event, Some(StoreEvent::Silent(_)));
        event
    }

    /// Persists a batch; the thread then sends its replies.
    ///
    /// # Errors
    /// The thread has been silent for long: nothing of the batch is persisted, and its replies have failed.
    pub async fn persist(&mut self, batch: Batch) -> Result<(), StoreError> {
        let waiting: Replies = Arc::new(Mutex::new(batch.replies));
        // The thread drops the replies that it has sent.
        while self.waiting.front().is_some_and(|sent| Arc::strong_count(sent) == 1) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting.clone());
        let is_accepted = self.order(Order::Persist(batch.changes, waiting)).await;
        if is_accepted { Ok(()) } else { Err(self.give_up()) }
    }

    /// Persists a change and waits until it is durable.
    ///
    /// # Errors
    /// The change is not durable, or its state is unknown.
    pub async fn confirm(&mut self, change: Change) -> Result<(), Unavailable> {
        let (sender, mut confirmed) = oneshot::channel();
        let batch = Batch { changes: vec![change], replies: vec![Box::new(Confirmation(sender))] };
        // The thread may have ended after it stored the change.
        let unknown = Err(Unavailable::OutcomeUnknown(THREAD_ENDED.to_owned()));
        if self.persist(batch).await.is_ok() {
            tokio::select! {
                biased;
                confirmed = &mut confirmed => return confirmed.unwrap_or(unknown),
                () = self.heartbeat.wait_for_silence() => drop(self.give_up()),
            }
        }
        confirmed.await.unwrap_or(unknown)
    }

    /// Loads the state of the store. Earlier events of the thread have no effect any more.
    ///
    /// # Errors
    /// The store cannot be read, or the thread has been silent for long.
    pub async fn load(&mut self) -> Result<State, StoreError> {
        let mut is_accepted = self.order(Order::Load).await;
        while is_accepted {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(StoreEvent::Loaded(loaded)) => return *loaded,
                    Some(StoreEvent::Lease(_) | StoreEvent::Lost(_) | StoreEvent::Silent(_)) => {}
                    None => return Err(StoreError::Database(THREAD_ENDED.to_owned())),
                },
                () = self.heartbeat.wait_for_silence() => is_accepted = false,
            }
        }
        Err(self.give_up())
    }

    /// Gives the thread an order. Returns false if the thread has been silent for long.
    async fn order(&self, order: Order) -> bool {
        let permit = tokio::select! {
            biased;
            permit = self.permits.acquire() => permit,
            () = self.heartbeat.wait_for_silence() => return false,
        };
        if let (Some(orders), Ok(permit)) = (&self.orders, permit) {
            // The thread gives the permit back.
            permit.forget();
            // The thread runs as long as this value exists.
            let _ = orders.send(order);
        }
        true
    }

    /// Fails all replies that wait.
    fn give_up(&mut self) -> StoreError {
        let error = StoreError::Silent(SILENCE);
        let unknown = StoreError::Unknown(error.to_string());
        for waiting in self.waiting.drain(..) {
            take_replies(&waiting).into_iter().for_each(|reply| reply.failed(&unknown));
        }
        error
    }
}

impl Drop for GroupCommitWriter {
    fn drop(&mut self) {
        self.orders.take();
        self.events.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take_replies(waiting: &Replies) -> Vec<Box<dyn Pending>> {
    std::mem::take(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner))
}

/// State of the thread.
struct WriterThread {
    store: Box<dyn Store>,
    extent: Extent,
    address: Arc<str>,
    outbox: mpsc::Sender<StoreEvent>,
    permits: Arc<Semaphore>,
    heartbeat: Arc<Heartbeat>,
    /// Error of the first batch that was not persisted, until the next load.
    broken: Option<StoreError>,
    /// The same error, until the actor receives it.
    lost: Option<StoreError>,
    /// Result of renewals since the last event that the actor received.
    unreported: Option<Leadership>,
    /// Term in which this service leads, according to the last renewal.
    lead_term: Option<u64>,
    /// Term in which the store was last loaded; decisions depend on that state.
    loaded_term: Option<u64>,
}

impl WriterThread {
    #[expect(
        clippy::disallowed_methods,
        reason = "schedules renewals of the lease; no decision depends on it"
    )]
    fn run(mut self, inbox: &Receiver<Order>) {
        let mut due = Instant::now();
        loop {
            let mut next = match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.heartbeat.beat();
            let (mut batches, mut changes) = (Vec::new(), Vec::new());
            while let Some(Order::Persist(more, waiting)) =
                next.take_if(|order| matches!(order, Order::Persist(..)))
            {
                self.permits.add_permits(1);
                changes.extend(more);
                batches.push(waiting);
                if changes.len() < MAX_CHANGES {
                    next = inbox.try_recv().ok();
                }
            }
            let persisted = self.persist(&changes, &batches);
            if let Some(Order::Load) = next {
                self.permits.add_permits(1);
                self.load();
            }
            if Instant::now() >= due || !persisted {
                self.renew();
                // The thread soon tries again to report a loss.
                due = Instant::now() + if self.lost.is_none() { RENEWAL } else { RENEWAL / 10 };
            }
        }
    }

    /// Persists changes and sends the replies of their batches. Returns false if they are not persisted.
    fn persist(&mut self, changes: &[Change], batches: &[Replies]) -> bool {
        let is_leader = self.lead_term.is_some() && self.lead_term == self.loaded_term;
        let mut failure = self.broken.clone();
        if failure.is_none() && !changes.is_empty() {
            let applied = if is_leader { self.store.apply(changes) } else { Err(StoreError::Deposed) };
            self.heartbeat.beat();
            if let Err(error) = applied {
                (failure, self.lead_term) = (Some(error.clone()), None);
                // Later batches are certainly not persisted.
                self.broken = Some(match error {
                    StoreError::Unknown(problem) => StoreError::Database(problem),
                    error => error,
                });
                self.lost.clone_from(&self.broken);
            }
        }
        if let Some(error) = &failure {
            batches.iter().flat_map(take_replies).for_each(|reply| reply.failed(error));
            return false;
        }
        let decisions = self.read_evicted(batches);
        batches.iter().flat_map(take_replies).for_each(|reply| reply.persisted(&decisions));
        true
    }

    /// Reads the evicted decisions that replies need.
    fn read_evicted(&mut self, batches: &[Replies]) -> Result<Decisions, StoreError> {
        let mut ids = BTreeSet::new();
        for waiting in batches {
            let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            ids.extend(waiting.iter().filter_map(|reply| reply.evicted()));
        }
        if ids.is_empty() {
            return Ok(Decisions::new());
        }
        let records = self.store.decisions(&Vec::from_iter(ids));
        self.heartbeat.beat();
        Ok(records?.into_iter().map(|record| (record.id, Arc::new(record))).collect())
    }

    fn load(&mut self) {
        self.heartbeat.pause();
        let loaded = self.store.load(self.extent.decisions, self.extent.callers);
        self.heartbeat.beat();
        if loaded.is_ok() {
            (self.broken, self.lost, self.unreported, self.loaded_term) = (None, None, None, self.lead_term);
        }
        let _ = self.outbox.blocking_send(StoreEvent::Loaded(Box::new(loaded)));
    }

    /// Renews the lease, and reports the result if the actor has received the last event.
    fn renew(&mut self) {
        let permit = self.outbox.try_reserve();
        if let Some(error) = self.lost.take() {
            match permit {
                Ok(permit) => permit.send(StoreEvent::Lost(error)),
                Err(_) => self.lost = Some(error),
            }
            return;
        }
        let lease = self.store.renew_lease(&self.address);
        self.heartbeat.beat();
        self.lead_term = match lease {
            Ok(Leadership::Leader { term }) => Some(term),
            Ok(Leadership::Follower { .. }) | Err(_) => None,
        };
        let lease = lease.map(|now| now.after(self.unreported.take()));
        match permit {
            Ok(permit) => permit.send(StoreEvent::Lease(lease)),
            Err(_) => self.unreported = lease.ok(),
        }
    }
}
