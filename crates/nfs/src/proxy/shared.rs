//! State that all connections share, and the tasks that look after it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leeward_capture::places::Prefixes;
use leeward_fabric::Nanos;
use tokio::sync::Notify;

use super::connection::Connection;
use super::open::Open;
use super::permits::Permits;
use super::state::Pending;
use super::{Export, Limits};
use crate::clock::Clock;
use crate::event::Events;
use crate::outgoing::Source;
use crate::queue::{Queue, Running, Started};
use crate::rpc::Record;

/// Time between two rounds of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// Rounds between two searches for requests without an answer.
const ROUNDS: u32 = 10;
/// Time of a timer without held requests.
pub const NEVER: Nanos = Nanos(u64::MAX);
/// Least share of a connection, in bytes.
const LEAST_SHARE: u64 = 64 << 10;

/// State that all connections share.
pub struct Shared {
    pub exports: Vec<Export>,
    pub limits: Limits,
    pub source: Source,
    pub allowed: Option<Prefixes<()>>,
    /// True if clients must come from a reserved port.
    pub reserved_clients: bool,
    pub clock: Clock,
    pub events: Events,
    pub queue: Mutex<Queue<Queued>>,
    pub open: Mutex<Open>,
    pub permits: Permits,
    pub numbers: Numbers,
    /// Time for which the timer of held requests waits, in nanoseconds. It changes under the lock of the queue.
    pub timer: AtomicU64,
    pub timer_is_earlier: Notify,
}

/// Numbers for reports.
#[derive(Debug, Default)]
pub struct Numbers {
    pub connections: AtomicUsize,
    pub rounds: AtomicU64,
    pub passed: AtomicU64,
    pub refused: AtomicU64,
    pub broken: AtomicU64,
    pub unanswered: AtomicU64,
    pub lost_rows: AtomicU64,
}

/// A call in the queue.
pub struct Queued {
    pub connection: Arc<Connection>,
    pub xid: u32,
    pub record: Record,
    pub cost: u64,
}

/// Lists that a task uses again and again.
#[derive(Default)]
pub struct Scratch {
    started: Vec<Started<Queued>>,
    refused: Vec<Running>,
}

impl Shared {
    /// The queue. A panic of a task that held the lock ends its connection alone.
    pub fn lock_queue(&self) -> MutexGuard<'_, Queue<Queued>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lock_open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.lock_open().connections()
    }

    /// Bytes that one connection may hold without a permit: of one half of the buffer. Permits have the other half.
    pub fn share(&self) -> u64 {
        let connections = self.numbers.connections.load(Ordering::Relaxed).max(1) as u64;
        (self.limits.buffer / 2 / connections).max(LEAST_SHARE)
    }

    /// Gives a connection a permit, or wakes its task of calls when it has one.
    pub fn acquire_permit(&self, connection: &Arc<Connection>) -> bool {
        self.permits.acquire(connection, self.clock.now())
    }

    /// A permit is free.
    pub fn release_permit(&self) {
        self.permits.release(self.clock.now());
    }

    /// A connection ends, with its permit.
    pub fn end_permit(&self, connection: &Arc<Connection>) {
        self.permits.end(connection, self.clock.now());
    }

    /// Sets the time of the timer, if a held request starts earlier. Returns true if the timer must be woken.
    fn set_timer(&self, queue: &Queue<Queued>) -> bool {
        let next = queue.next_poll().unwrap_or(NEVER);
        let is_earlier = next.0 < self.timer.load(Ordering::Relaxed);
        if is_earlier {
            self.timer.store(next.0, Ordering::Relaxed);
        }
        is_earlier
    }

    /// Changes the queue, and hands the requests that start to their connections. `own` is the connection of a task of
    /// calls that sends its requests itself.
    pub fn with_queue<T>(
        &self,
        own: Option<&Arc<Connection>>,
        scratch: &mut Scratch,
        change: impl FnOnce(&mut Queue<Queued>, Nanos) -> T,
    ) -> T {
        let Scratch { started, refused } = scratch;
        let (changed, now, is_earlier) = {
            let mut queue = self.lock_queue();
            // Under the lock, so that times and rows of traces are in order.
            let now = self.clock.now();
            let changed = change(&mut queue, now);
            started.extend(std::iter::from_fn(|| queue.start(now)));
            (changed, now, self.set_timer(&queue))
        };
        if is_earlier {
            self.timer_is_earlier.notify_one();
        }
        while !started.is_empty() {
            for Started { payload: Queued { connection, xid, record, cost }, running } in started.drain(..) {
                let by_its_task = own.is_some_and(|own| Arc::ptr_eq(own, &connection));
                match connection.send(xid, record, Pending::new(Some(running), cost), by_its_task) {
                    Ok(waker) => waker.into_iter().for_each(std::task::Waker::wake),
                    // The client went meanwhile.
                    Err(running) => refused.extend(running),
                }
            }
            if !refused.is_empty() {
                let mut queue = self.lock_queue();
                refused.drain(..).for_each(|running| queue.withdraw(&running));
                started.extend(std::iter::from_fn(|| queue.start(now)));
            }
        }
        changed
    }

    /// Requests at the server that have no answer: their places are free, and they count as late.
    pub fn release(&self, unanswered: &[Running]) {
        if !unanswered.is_empty() {
            self.with_queue(None, &mut Scratch::default(), |queue, now| {
                unanswered.iter().for_each(|running| queue.release(now, running));
            });
        }
    }
}

/// Requests without an answer lose their places, and rows of traces go to their thread.
pub async fn housekeeping(shared: Arc<Shared>) -> Infallible {
    let mut round = 0;
    loop {
        tokio::time::sleep(HOUSEKEEPING).await;
        shared.numbers.rounds.fetch_add(1, Ordering::Relaxed);
        let now = shared.clock.now();
        let lost = shared.lock_queue().flush_recorder(shared.clock.wall(now));
        shared.numbers.lost_rows.store(lost, Ordering::Relaxed);
        round = (round + 1) % ROUNDS;
        if round > 0 {
            continue;
        }
        let before = |time: Nanos| Nanos(now.0.saturating_sub(time.0));
        let Limits { answer, call, .. } = shared.limits;
        let mut late = Vec::new();
        for connection in shared.connections() {
            late.extend(connection.take_unanswered(before(answer)));
            connection.end_slow_call(before(call));
        }
        shared.numbers.unanswered.fetch_add(late.len() as u64, Ordering::Relaxed);
        shared.release(&late);
    }
}

/// Starts held requests when their tokens come. A timer of the runtime is up to a millisecond late.
pub async fn start_held_requests(shared: Arc<Shared>) -> Infallible {
    let mut scratch = Scratch::default();
    loop {
        let next = {
            let queue = shared.lock_queue();
            let next = queue.next_poll();
            shared.timer.store(next.unwrap_or(NEVER).0, Ordering::Relaxed);
            next
        };
        let Some(next) = next else {
            shared.timer_is_earlier.notified().await;
            continue;
        };
        let wait = Duration::from_nanos(next.since(shared.clock.now()).0);
        if tokio::time::timeout(wait, shared.timer_is_earlier.notified()).await.is_err() {
            shared.with_queue(None, &mut scratch, |_, _| {});
        }
    }
}
