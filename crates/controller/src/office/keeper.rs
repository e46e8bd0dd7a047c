//! The thread that owns the store. Changes that come while it writes are written together the next time (group commit),
//! and replies are sent when what they tell of is kept; what the desk has left to the store is read for them. Between
//! writing, it asks the store over and over how the service stands to it, whether anybody listens or not: a service that says
//! nothing to its store does not lead for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::Answer;
use super::pulse::{Pulse, SILENCE};
use crate::desk::{Record, Refused, Reply};
use crate::store::{Change, Leadership, State, Store, StoreError};

/// Turns of the desk, of a few messages each, that may wait to be written; the desk waits when there are more.
const TURNS: usize = 1024;
/// Changes that are written in one go at most, so that the first of them do not wait long for the last.
const TOGETHER: usize = 4096;
/// How often the store is asked how the service stands to it.
const BEAT: Duration = Duration::from_millis(500);

/// Who is told of something when it is kept.
type Replies = Vec<(oneshot::Sender<Answer>, Answer)>;

/// A turn of the desk: what changed, and who is told of it.
#[derive(Default)]
pub(super) struct Turn {
    pub changes: Vec<Change>,
    pub replies: Replies,
}

/// Replies that whoever comes first sends: the thread, or who waits for it no longer.
type Askers = Arc<Mutex<Replies>>;

enum Order {
    Keep(Vec<Change>, Askers),
    Load,
}

/// What is heard from the thread, in the order in which it happened.
pub(super) enum Heard {
    /// How the service stands to the store.
    Stands(Result<Leadership, StoreError>),
    /// Changes were not kept. Until it is told to load, the thread keeps nothing: what came after was decided on them.
    Lost(StoreError),
    /// What is kept.
    Loaded(Result<State, StoreError>),
    /// Nothing, for long: the store does not come back to it. Who waits for something to be kept was told so.
    Silence(StoreError),
}

/// The way to the thread. It ends when this is dropped, after it has written what it was given.
pub(super) struct Keeper {
    orders: Option<Sender<Order>>,
    /// Places for orders that wait.
    places: Arc<Semaphore>,
    heard: mpsc::Receiver<Heard>,
    pulse: Arc<Pulse>,
    /// Whether its silence was told.
    is_silent: bool,
    /// Who waits, by turn.
    waiting: VecDeque<Askers>,
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
        let pulse = Arc::new(Pulse::new());
        let work = Work {
            store,
            extent,
            address,
            told,
            places: places.clone(),
            pulse: pulse.clone(),
            broken: None,
            lost: None,
            untold: None,
            leads: None,
            loaded: None,
        };
        let thread = std::thread::Builder::new().name("leeward-store".to_owned());
        let thread = Some(thread.spawn(move || work.run(&inbox))?);
        let (orders, waiting, is_silent) = (Some(orders), VecDeque::new(), false);
        Ok(Keeper { orders, places, heard, pulse, is_silent, waiting, thread })
    }

    /// What the thread says next, or that it says nothing.
    pub async fn hear(&mut self) -> Option<Heard> {
        let heard = tokio::select! {
            biased;
            heard = self.heard.recv() => heard,
            () = self.pulse.ends(), if !self.is_silent => Some(Heard::Silence(self.give_up())),
        };
        self.is_silent = matches!(heard, Some(Heard::Silence(_)));
        heard
    }

    /// Keeps what changed in a turn, and then tells who waits.
    ///
    /// # Errors
    /// The thread has taken nothing for long: none of it is kept, and who waits was told so.
    pub async fn keep(&mut self, turn: Turn) -> Result<(), StoreError> {
        let waiting: Askers = Arc::new(Mutex::new(turn.replies));
        // The thread lets go of those whom it has told.
        while self.waiting.front().is_some_and(|told| Arc::strong_count(told) == 1) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting.clone());
        let is_taken = self.order(Order::Keep(turn.changes, waiting)).await;
        if is_taken { Ok(()) } else { Err(self.give_up()) }
    }

    /// Keeps a change and waits until it is.
    ///
    /// # Errors
    /// It is not kept, or it is not known whether it is.
    pub async fn settle(&mut self, change: Change) -> Result<(), Refused> {
        let (asker, mut kept) = oneshot::channel();
        let turn = Turn { changes: vec![change], replies: vec![(asker, Ok(Reply::Noted))] };
        if self.keep(turn).await.is_ok() {
            tokio::select! {
                biased;
                kept = &mut kept => return kept.unwrap_or(Err(Refused::Moved)).map(drop),
                () = self.pulse.ends() => drop(self.give_up()),
            }
        }
        kept.await.unwrap_or(Err(Refused::Moved)).map(drop)
    }

    /// What is kept. What the thread said before counts no more.
    ///
    /// # Errors
    /// It cannot be read; or the thread has not come to it for long.
    pub async fn load(&mut self) -> Result<State, StoreError> {
        let mut is_taken = self.order(Order::Load).await;
        while is_taken {
            tokio::select! {
                biased;
                heard = self.heard.recv() => match heard {
                    Some(Heard::Loaded(loaded)) => return loaded,
                    Some(Heard::Stands(_) | Heard::Lost(_) | Heard::Silence(_)) => {}
                    None => return Err(StoreError::Database("the store's thread is gone".to_owned())),
                },
                () = self.pulse.ends() => is_taken = false,
            }
        }
        Err(self.give_up())
    }

    /// Whether the thread could be given something to do; not if it has done nothing for long.
    async fn order(&self, order: Order) -> bool {
        let place = tokio::select! {
            biased;
            place = self.places.acquire() => place,
            () = self.pulse.ends() => return false,
        };
        if let (Some(orders), Ok(place)) = (&self.orders, place) {
            // The thread gives the place back.
            place.forget();
            // It is there as long as this is.
            let _ = orders.send(order);
        }
        true
    }

    /// Whoever waits for something to be kept waits no longer.
    fn give_up(&mut self) -> StoreError {
        let error = StoreError::Silent(SILENCE);
        for waiting in self.waiting.drain(..) {
            for (asker, answer) in taken(&waiting) {
                let _ = asker.send(Err(refusal(&StoreError::Unknown(error.to_string()), &answer)));
            }
        }
        error
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

fn taken(waiting: &Askers) -> Replies {
    std::mem::take(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The thread's own.
struct Work {
    store: Box<dyn Store>,
    extent: Extent,
    address: Arc<str>,
    told: mpsc::Sender<Heard>,
    places: Arc<Semaphore>,
    pulse: Arc<Pulse>,
    /// Why the last changes were not kept, until what is kept was loaded.
    broken: Option<StoreError>,
    /// The same, until it was told.
    lost: Option<StoreError>,
    /// What the store said since somebody last listened.
    untold: Option<Leadership>,
    /// The term in which the service leads, as far as the store said.
    leads: Option<u64>,
    /// The term in which what is kept was last loaded; what is decided rests on it.
    loaded: Option<u64>,
}

impl Work {
    #[expect(clippy::disallowed_methods, reason = "when to ask again, and nothing that is decided")]
    fn run(mut self, inbox: &Receiver<Order>) {
        let mut due = Instant::now();
        loop {
            let mut next = match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.pulse.beat();
            let (mut turns, mut changes) = (Vec::new(), Vec::new());
            while let Some(Order::Keep(more, waiting)) =
                next.take_if(|order| matches!(order, Order::Keep(..)))
            {
                self.places.add_permits(1);
                changes.extend(more);
                turns.push(waiting);
                if changes.len() < TOGETHER {
                    next = inbox.try_recv().ok();
                }
            }
            let kept = self.keep(&changes, &turns);
            if let Some(Order::Load) = next {
                self.places.add_permits(1);
                self.load();
            }
            if Instant::now() >= due || !kept {
                self.beat();
                // What could not be told yet is to be told soon.
                due = Instant::now() + if self.lost.is_none() { BEAT } else { BEAT / 10 };
            }
        }
    }

    /// Keeps changes and tells who waits; whether they are kept.
    fn keep(&mut self, changes: &[Change], turns: &[Askers]) -> bool {
        let is_led = self.leads.is_some() && self.leads == self.loaded;
        let mut refused = self.broken.clone();
        if refused.is_none() && !changes.is_empty() {
            let kept = if is_led { self.store.apply(changes) } else { Err(StoreError::Deposed) };
            self.pulse.beat();
            if let Err(error) = kept {
                (refused, self.leads) = (Some(error.clone()), None);
                // Of what comes after, it is known that it was not kept.
                self.broken = Some(match error {
                    StoreError::Unknown(problem) => StoreError::Database(problem),
                    error => error,
                });
                self.lost.clone_from(&self.broken);
            }
        }
        let found = if refused.is_none() { self.find(turns) } else { Ok(BTreeMap::new()) };
        for (asker, answer) in turns.iter().flat_map(taken) {
            let answer = match (&refused, answer, &found) {
                (Some(error), answer, _) => Err(refusal(error, &answer)),
                (None, Ok(Reply::Left(left)), Ok(found)) => left.answer(found.get(&left.id()).cloned()),
                (None, Ok(Reply::Left(left)), Err(error)) => Err(left.unread(error.to_string())),
                (None, answer, _) => answer,
            };
            // Who asked may have gone; a client that numbers its requests asks again.
            let _ = asker.send(answer);
        }
        refused.is_none()
    }

    /// The decisions that the desk left to the store, of which somebody waits to be told.
    fn find(&mut self, turns: &[Askers]) -> Result<BTreeMap<u64, Arc<Record>>, StoreError> {
        let mut ids = BTreeSet::new();
        for waiting in turns {
            let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let there = waiting.iter().filter(|(asker, _)| !asker.is_closed());
            ids.extend(there.filter_map(|(_, answer)| match answer {
                Ok(Reply::Left(left)) => Some(left.id()),
                _ => None,
            }));
        }
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.store.decisions(&Vec::from_iter(ids));
        self.pulse.beat();
        Ok(found?.into_iter().map(|record| (record.id, Arc::new(record))).collect())
    }

    fn load(&mut self) {
        self.pulse.hold();
        let loaded = self.store.load(self.extent.decisions, self.extent.callers);
        self.pulse.beat();
        if loaded.is_ok() {
            (self.broken, self.lost, self.untold, self.loaded) = (None, None, None, self.leads);
        }
        let _ = self.told.blocking_send(Heard::Loaded(loaded));
    }

    /// Asks the store, and tells of it if what was told before was heard.
    fn beat(&mut self) {
        let place = self.told.try_reserve();
        if let Some(error) = self.lost.take() {
            match place {
                Ok(place) => place.send(Heard::Lost(error)),
                Err(_) => self.lost = Some(error),
            }
            return;
        }
        let stands = self.store.stand(&self.address);
        self.pulse.beat();
        self.leads = match stands {
            Ok(Leadership::Leads { term }) => Some(term),
            Ok(Leadership::Follows { .. }) | Err(_) => None,
        };
        let stands = stands.map(|now| now.after(self.untold.take()));
        match place {
            Ok(place) => place.send(Heard::Stands(stands)),
            Err(_) => self.untold = stands.ok(),
        }
    }
}

/// What somebody is told in place of an answer where the store fails: who only wanted to know has nothing to be kept.
fn refusal(error: &StoreError, answer: &Answer) -> Refused {
    match answer {
        Ok(Reply::Left(left)) if !left.commits() => Refused::Unread(error.to_string()),
        _ => Refused::from(error),
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
