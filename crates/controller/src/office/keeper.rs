//! The thread that owns the store. Changes that come while it writes are written together the next time (group commit),
//! and replies are sent when what they tell of is kept. Between writing, it asks the store over and over how the service
//! stands to it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::Answer;
use crate::desk::Refused;
use crate::store::{Change, Standing, State, Store, StoreError};

/// Turns of the desk that may wait to be written; the desk waits when there are more.
const TURNS: usize = 1024;
/// Changes that are written in one go at most, so that the first of them do not wait long for the last.
const TOGETHER: usize = 4096;
/// How often the store is asked how the service stands to it.
const BEAT: Duration = Duration::from_millis(500);

/// A turn of the desk: what changed, and who is told of it.
#[derive(Default)]
pub(super) struct Turn {
    pub changes: Vec<Change>,
    pub replies: Vec<(oneshot::Sender<Answer>, Answer)>,
}

enum Order {
    Keep(Turn),
    Load,
}

/// What is heard from the thread, in the order in which it happened.
pub(super) enum Heard {
    /// How the service stands to the store.
    Stands(Result<Standing, StoreError>),
    /// Changes were not kept. Until it is told to load, the thread keeps nothing: what came after was decided on them.
    Lost(StoreError),
    /// What is kept.
    Loaded(Result<State, StoreError>),
}

/// The way to the thread. It ends when this is dropped, after it has written what it was given.
pub(super) struct Keeper {
    orders: Option<Sender<Order>>,
    /// Places for orders that wait.
    places: Arc<Semaphore>,
    heard: mpsc::Receiver<Heard>,
    thread: Option<JoinHandle<()>>,
}

/// How much is read when a service begins.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub decisions: usize,
    pub callers: usize,
}

impl Keeper {
    /// Starts the thread; others are told that the service is at `address`.
    pub fn start(store: Box<dyn Store>, extent: Extent, address: Arc<str>) -> std::io::Result<Keeper> {
        let (orders, inbox) = std::sync::mpsc::channel();
        let (told, heard) = mpsc::channel(1);
        let places = Arc::new(Semaphore::new(TURNS));
        let places_again = places.clone();
        let work = Work { store, extent, address, told, broken: None, leads: None, loaded: None };
        let thread = std::thread::Builder::new().name("leeward-store".to_owned());
        let thread = thread.spawn(move || work.run(&inbox, &places_again))?;
        Ok(Keeper { orders: Some(orders), places, heard, thread: Some(thread) })
    }

    /// What the thread says next.
    pub async fn hear(&mut self) -> Option<Heard> {
        self.heard.recv().await
    }

    /// Keeps what changed in a turn, and then tells who waits.
    pub async fn keep(&self, turn: Turn) {
        self.order(Order::Keep(turn)).await;
    }

    /// What is kept. What the thread said before counts no more.
    pub async fn load(&mut self) -> Result<State, StoreError> {
        self.order(Order::Load).await;
        loop {
            match self.hear().await {
                Some(Heard::Loaded(loaded)) => return loaded,
                Some(Heard::Stands(_) | Heard::Lost(_)) => {}
                None => return Err(StoreError::Database("the store's thread is gone".to_owned())),
            }
        }
    }

    async fn order(&self, order: Order) {
        if let (Some(orders), Ok(place)) = (&self.orders, self.places.acquire().await) {
            // The thread gives the place back.
            place.forget();
            // It is there as long as this is.
            let _ = orders.send(order);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders.take();
        self.heard.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own.
struct Work {
    store: Box<dyn Store>,
    extent: Extent,
    address: Arc<str>,
    told: mpsc::Sender<Heard>,
    /// Why the last changes were not kept, until what is kept was loaded.
    broken: Option<StoreError>,
    /// The term in which the service leads, as far as the store said.
    leads: Option<u64>,
    /// The term in which what is kept was last loaded; what is decided rests on it.
    loaded: Option<u64>,
}

impl Work {
    #[expect(clippy::disallowed_methods, reason = "when to ask again, and nothing that is decided")]
    fn run(mut self, inbox: &Receiver<Order>, places: &Semaphore) {
        let mut due = Instant::now();
        loop {
            let mut next = match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let (mut turns, mut changes) = (Vec::new(), Vec::new());
            while let Some(Order::Keep(mut turn)) = next.take_if(|order| matches!(order, Order::Keep(_))) {
                places.add_permits(1);
                changes.append(&mut turn.changes);
                turns.push(turn.replies);
                if changes.len() < TOGETHER {
                    next = inbox.try_recv().ok();
                }
            }
            let kept = self.keep(&changes, turns.into_iter().flatten());
            if let Some(Order::Load) = next {
                places.add_permits(1);
                self.load();
            }
            if Instant::now() >= due || !kept {
                // What was told last may not be heard yet; then there is nothing to add.
                due = Instant::now() + if self.beat() { BEAT } else { BEAT / 10 };
            }
        }
    }

    /// Keeps changes and tells who waits; whether they are kept.
    fn keep(
        &mut self,
        changes: &[Change],
        replies: impl Iterator<Item = (oneshot::Sender<Answer>, Answer)>,
    ) -> bool {
        let is_led = self.leads.is_some() && self.leads == self.loaded;
        let mut refused = self.broken.clone();
        if refused.is_none() && !changes.is_empty() {
            let kept = if is_led { self.store.apply(changes) } else { Err(StoreError::Deposed) };
            if let Err(error) = kept {
                (refused, self.leads) = (Some(error.clone()), None);
                // Of what comes after, it is known that it was not kept.
                self.broken = Some(match error {
                    StoreError::Unknown(problem) => StoreError::Database(problem),
                    error => error,
                });
            }
        }
        for (asker, answer) in replies {
            // Who asked may have gone; a client that numbers its requests asks again.
            let _ = asker.send(refused.as_ref().map_or(answer, |error| Err(Refused::from(error))));
        }
        refused.is_none()
    }

    fn load(&mut self) {
        let loaded = self.store.load(self.extent.decisions, self.extent.callers);
        if loaded.is_ok() {
            (self.broken, self.loaded) = (None, self.leads);
        }
        let _ = self.told.blocking_send(Heard::Loaded(loaded));
    }

    /// Asks the store and tells of it, unless what was told before was not heard yet.
    fn beat(&mut self) -> bool {
        let Ok(place) = self.told.try_reserve() else { return false };
        if let Some(error) = &self.broken {
            place.send(Heard::Lost(error.clone()));
            return true;
        }
        let stands = self.store.stand(&self.address);
        self.leads = match stands {
            Ok(Standing::Leads { term }) => Some(term),
            Ok(Standing::Follows { .. }) | Err(_) => None,
        };
        place.send(Heard::Stands(stands));
        true
    }
}

impl From<&StoreError> for Refused {
    fn from(error: &StoreError) -> Refused {
        match error {
            StoreError::Unknown(problem) => Refused::Unknown(problem.clone()),
            error => Refused::Store(error.to_string()),
        }
    }
}
