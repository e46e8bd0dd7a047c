//! The thread that owns the store. Changes that come while it writes are written together the next time (group commit),
//! and replies are sent when what they tell of is kept.

use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::Answer;
use crate::desk::Refused;
use crate::store::{Change, State, Store, StoreError};

/// Turns of the desk that may wait to be written; the desk waits when there are more.
const TURNS: usize = 1024;
/// Changes that are written in one go at most, so that the first of them do not wait long for the last.
const TOGETHER: usize = 4096;

/// A turn of the desk: what changed, and who is told of it.
#[derive(Default)]
pub(super) struct Turn {
    pub changes: Vec<Change>,
    pub replies: Vec<(oneshot::Sender<Answer>, Answer)>,
}

enum Order {
    Keep(Turn),
    Load(oneshot::Sender<Result<State, StoreError>>),
}

/// The way to the thread. It ends when this is dropped, after it has written what it was given.
pub(super) struct Keeper {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// How much is read when a service begins.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub decisions: usize,
    pub callers: usize,
}

impl Keeper {
    /// Starts the thread. After a failure it refuses everything until it is told to load, since what comes after was
    /// decided on what was not kept; `failed` is told of it.
    pub fn start(
        store: Box<dyn Store>,
        extent: Extent,
        failed: mpsc::Sender<StoreError>,
    ) -> std::io::Result<Keeper> {
        let (orders, mut inbox) = mpsc::channel(TURNS);
        let name = "leeward-store".to_owned();
        let thread =
            std::thread::Builder::new().name(name).spawn(move || work(store, extent, &mut inbox, &failed))?;
        Ok(Keeper { orders: Some(orders), thread: Some(thread) })
    }

    /// Keeps what changed in a turn, and then tells who waits.
    pub async fn keep(&self, turn: Turn) {
        self.order(Order::Keep(turn)).await;
    }

    /// What is kept.
    pub async fn load(&self) -> Result<State, StoreError> {
        let (sender, loaded) = oneshot::channel();
        self.order(Order::Load(sender)).await;
        loaded.await.unwrap_or_else(|_| Err(StoreError::Database("the store's thread is gone".to_owned())))
    }

    async fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread is there as long as this is.
            let _ = orders.send(order).await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    mut store: Box<dyn Store>,
    extent: Extent,
    inbox: &mut mpsc::Receiver<Order>,
    failed: &mpsc::Sender<StoreError>,
) {
    let mut broken = None;
    while let Some(order) = inbox.blocking_recv() {
        let mut next = Some(order);
        let mut turns = Vec::new();
        let mut changes = Vec::new();
        while let Some(Order::Keep(mut turn)) = next.take_if(|order| matches!(order, Order::Keep(_))) {
            changes.append(&mut turn.changes);
            turns.push(turn.replies);
            if changes.len() < TOGETHER {
                next = inbox.try_recv().ok();
            }
        }
        if broken.is_none()
            && !changes.is_empty()
            && let Err(error) = store.apply(&changes)
        {
            broken = Some(error.to_string());
            let _ = failed.blocking_send(error);
        }
        for (asker, answer) in turns.into_iter().flatten() {
            // Who asked may have gone; a client that numbers its requests asks again.
            let _ = asker.send(broken.clone().map_or(answer, |problem| Err(Refused::Store(problem))));
        }
        if let Some(Order::Load(asker)) = next {
            let loaded = store.load(extent.decisions, extent.callers);
            if loaded.is_ok() {
                broken = None;
            }
            let _ = asker.send(loaded);
        }
    }
}
