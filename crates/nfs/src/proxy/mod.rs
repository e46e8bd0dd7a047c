//! The proxy: listeners, connections, and the queue between them.
//!
//! ```text
//! client --calls--> [Calls task] --READ, WRITE, COMMIT--> Queue --start--> bytes for the server --> server
//!                        '-- all other calls ---------------------------------^
//! client <--bytes-- [Replies task] <--bytes-- server        end of a reply: its request completes, others start
//! ```
//!
//! A connection of a client has its own connection to the server and two tasks, one for each direction. The queue is
//! behind a lock that is held for a decision, and never while a task waits. A task of its own for the queue would cost each
//! request two more wake-ups. Requests that start are handed to their connections after the lock of the queue is free.
//!
//! Payloads are not copied: they are read into buffers, whose parts go to the other side as they are. Replies pass on in
//! pieces, before they are whole.

mod calls_task;
mod connection;
mod listener;
mod replies_task;
mod session;
mod streams;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use leeward_capture::places::Prefixes;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_shaping::{Caps, Order};
use leeward_traces::device::Device;
use serde::Serialize;
use tokio::sync::Notify;

use self::connection::{Connection, Pending};
use self::listener::{Listener, Open};
use crate::clock::Clock;
use crate::counters::Summary;
use crate::event::{Event, Events};
use crate::outgoing::Source;
use crate::queue::{Counted, InvalidWorkload, Queue, Running, Started};
use crate::recorder::{Recorder, RecorderSettings};
use crate::rpc::Record;
use crate::server::Server;
use crate::workloads::Workloads;

/// Time between two rounds of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// Rounds between two searches for requests without an answer.
const ROUNDS: u32 = 10;
/// Time of a timer without held requests.
const NEVER: Nanos = Nanos(u64::MAX);

/// Limits that protect the proxy and its clients from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest record, in bytes, with the headers of its fragments.
    pub record: usize,
    /// Bytes of calls and replies that all connections together hold. Each connection may always hold one record.
    pub buffer: u64,
    /// Largest number of connections.
    pub connections: usize,
    /// Largest number of connections of one address.
    pub connections_per_client: usize,
    /// Longest time for which a request keeps its place at the device without an answer.
    pub answer: Nanos,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            record: (4 << 20) + 4096,
            buffer: 256 << 20,
            connections: 1024,
            connections_per_client: 64,
            answer: Nanos(30 * Nanos::SECOND.0),
        }
    }
}

/// An export behind a proxy, and the address at which the proxy listens for its clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The server.
    pub server: Server,
    /// Address for clients; port 0 is any free port.
    pub listen: SocketAddr,
}

/// Settings of a proxy.
pub struct ProxySettings {
    /// Exports, at least one.
    pub exports: Vec<Export>,
    /// Limits.
    pub limits: Limits,
    /// Ports of connections to servers.
    pub source: Source,
    /// Addresses that may connect; all if it is `None`.
    pub allowed: Option<Prefixes<()>>,
    /// Caps of the device.
    pub caps: Caps,
    /// Order of requests at the device.
    pub order: Order,
    /// Device file; without one, requests have no work.
    pub device: Option<Arc<Device>>,
    /// Workloads at the start.
    pub workloads: Workloads,
    /// Recording of traces.
    pub recorder: Option<RecorderSettings>,
}

/// A proxy that listens, but does not accept connections yet.
pub struct Proxy {
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
    recording: Option<JoinHandle<()>>,
}

/// State that all connections share.
struct Shared {
    exports: Vec<Export>,
    limits: Limits,
    source: Source,
    allowed: Option<Prefixes<()>>,
    clock: Clock,
    events: Events,
    queue: Mutex<Queue<Queued>>,
    open: Mutex<Open>,
    numbers: Numbers,
    /// Time for which the timer of held requests waits, in nanoseconds. It changes under the lock of the queue.
    timer: AtomicU64,
    timer_is_earlier: Notify,
}

/// Numbers for reports.
#[derive(Debug, Default)]
struct Numbers {
    connections: AtomicUsize,
    rounds: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    unanswered: AtomicU64,
    lost_rows: AtomicU64,
}

/// A call in the queue.
struct Queued {
    connection: Arc<Connection>,
    xid: u32,
    record: Record,
    cost: u64,
}

/// Counters of a proxy at one time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Seconds since 1970.
    pub at_s: f64,
    /// Seconds since the start.
    pub elapsed_s: f64,
    /// Names of the exports.
    pub exports: Vec<String>,
    /// Open connections.
    pub connections: usize,
    /// Connections that were refused, by the limits or because of their address.
    pub refused_connections: u64,
    /// Connections that were closed because of broken calls.
    pub broken_connections: u64,
    /// Requests that wait in the queue.
    pub waiting: usize,
    /// Requests at the server.
    pub in_service: usize,
    /// Calls that passed on at once.
    pub passed: u64,
    /// Requests that lost their place at the device because no answer came in time.
    pub unanswered: u64,
    /// Rows of traces that were lost because the disk was too slow.
    pub lost_rows: u64,
    /// Counters of workloads, and of clients without one.
    pub workloads: Vec<Summary>,
}

/// Access to a proxy that runs.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Replaces the workloads, also for waiting requests.
    ///
    /// # Errors
    /// Fails for invalid settings of a workload; nothing is changed then.
    pub fn replace(&self, workloads: Workloads) -> Result<(), InvalidWorkload> {
        let count = workloads.list().len();
        let workloads = Arc::new(workloads);
        let replaced = self.0.lock_queue().replace(self.0.clock.now(), workloads);
        if replaced.is_ok() {
            self.0.events.send(Event::Replaced { workloads: count });
        }
        replaced
    }

    /// Number of rounds of housekeeping so far: a number that stands still for a second means that the proxy hangs.
    pub fn rounds(&self) -> u64 {
        self.0.numbers.rounds.load(Ordering::Relaxed)
    }

    /// Numbers of open connections, of requests that wait, and of requests at the server.
    pub fn load(&self) -> (usize, usize, usize) {
        let (waiting, in_service) = self.0.lock_queue().depth();
        (self.0.numbers.connections.load(Ordering::Relaxed), waiting, in_service)
    }

    /// Counters and recent latencies of all workloads, for an acknowledgement.
    pub fn counted(&self) -> Vec<Counted> {
        let now = self.0.clock.now();
        self.0.lock_queue().counted(now)
    }

    /// Counters. The latencies since the last report begin again.
    pub fn report(&self) -> Report {
        let Shared { numbers, clock, exports, .. } = &*self.0;
        let now = clock.now();
        let connections = numbers.connections.load(Ordering::Relaxed);
        let (workloads, (waiting, in_service)) = {
            let mut queue = self.0.lock_queue();
            (queue.summaries(), queue.depth())
        };
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Report {
            at_s: clock.wall(now).as_secs_f64(),
            elapsed_s: now.as_secs_f64(),
            exports: exports.iter().map(|export| export.server.export.to_string()).collect(),
            connections,
            refused_connections: number(&numbers.refused),
            broken_connections: number(&numbers.broken),
            waiting,
            in_service,
            passed: number(&numbers.passed),
            unanswered: number(&numbers.unanswered),
            lost_rows: number(&numbers.lost_rows),
            workloads,
        }
    }
}

impl Proxy {
    /// Listens at the addresses of the exports and starts the recording.
    ///
    /// # Errors
    /// Fails for an address that cannot be listened on, for invalid settings of a workload or a cap, and for a folder of
    /// traces that cannot be written to.
    pub fn bind(settings: ProxySettings, clock: Clock, events: Events) -> Result<Proxy, InputError> {
        let listen = |export: &Export| {
            let listening = TcpListener::bind(export.listen).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            listening.map_err(|error| listen_error(export.listen, &error))
        };
        let listeners = settings.exports.iter().map(listen).collect::<Result<Vec<_>, _>>()?;
        let names = settings.exports.iter().map(|export| export.server.export.to_string()).collect();
        let (recorder, recording) = match settings.recorder {
            Some(recorder) => {
                let (recorder, thread) = Recorder::start(recorder, events.clone())?;
                (Some(recorder), Some(thread))
            }
            None => (None, None),
        };
        let queue = Queue::new(settings.order, settings.caps, settings.device, names, recorder);
        let mut queue = queue.map_err(|error| InputError::new("--outstanding", error))?;
        let replaced = queue.replace(clock.now(), Arc::new(settings.workloads));
        replaced.map_err(|error| InputError::new("--workloads", error))?;
        let shared = Shared {
            exports: settings.exports,
            limits: settings.limits,
            source: settings.source,
            allowed: settings.allowed,
            clock,
            events,
            queue: Mutex::new(queue),
            open: Mutex::default(),
            numbers: Numbers::default(),
            timer: AtomicU64::new(NEVER.0),
            timer_is_earlier: Notify::new(),
        };
        Ok(Proxy { shared: Arc::new(shared), listeners, recording })
    }

    /// Addresses for clients, in the order of the exports, with the ports in use.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own =
            |(listener, export): (&TcpListener, &Export)| listener.local_addr().unwrap_or(export.listen);
        self.listeners.iter().zip(&self.shared.exports).map(own).collect()
    }

    /// Access to the proxy while it runs.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Accepts and serves connections until `stop` is ready. Open connections then end, and traces are completed.
    ///
    /// # Errors
    /// An I/O error if a listener cannot be registered.
    pub async fn run(self, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let Proxy { shared, listeners, recording } = self;
        let mut tasks = Vec::new();
        for (export, listener) in listeners.into_iter().enumerate() {
            let listener = Listener::new(shared.clone(), export, listener)?;
            tasks.push(tokio::spawn(listener.run()));
        }
        tasks.push(tokio::spawn(housekeeping(shared.clone())));
        tasks.push(tokio::spawn(start_held_requests(shared.clone())));
        stop.await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for connection in shared.connections() {
            connection.close();
        }
        shared.lock_queue().end_recording();
        if let Some(recording) = recording {
            // The thread writes what it has; this is the end of the process or of a test.
            drop(tokio::task::spawn_blocking(move || recording.join()).await);
        }
        Ok(())
    }
}

/// Error for an address that cannot be listened on.
fn listen_error(address: SocketAddr, error: &std::io::Error) -> InputError {
    let reason = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "the port is in use; clients find another one by `port=` and `mountport=`, or `nfsport=` of libnfs".to_owned()
        }
        std::io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        std::io::ErrorKind::PermissionDenied => {
            "a port below 1024 requires root or the capability CAP_NET_BIND_SERVICE".to_owned()
        }
        _ => error.to_string(),
    };
    InputError::new("--listen", format!("{address}: {reason}"))
}

/// Requests without an answer lose their places, and rows of traces go to their thread.
async fn housekeeping(shared: Arc<Shared>) -> std::convert::Infallible {
    let (mut scratch, mut round) = (Scratch::default(), 0);
    loop {
        tokio::time::sleep(HOUSEKEEPING).await;
        shared.numbers.rounds.fetch_add(1, Ordering::Relaxed);
        let lost = shared.lock_queue().flush_recorder();
        shared.numbers.lost_rows.store(lost, Ordering::Relaxed);
        round = (round + 1) % ROUNDS;
        if round > 0 {
            continue;
        }
        let now = shared.clock.now();
        let Some(limit) = now.0.checked_sub(shared.limits.answer.0).map(Nanos) else { continue };
        let late: Vec<Running> =
            shared.connections().iter().flat_map(|connection| connection.take_unanswered(limit)).collect();
        if !late.is_empty() {
            shared.numbers.unanswered.fetch_add(late.len() as u64, Ordering::Relaxed);
            shared.with_queue(None, &mut scratch, |queue, _| {
                late.iter().for_each(|running| queue.release(running));
            });
        }
    }
}

/// Starts held requests when their tokens come. A timer of the runtime is up to a millisecond late.
async fn start_held_requests(shared: Arc<Shared>) -> std::convert::Infallible {
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

/// Lists that a task uses again and again.
#[derive(Default)]
struct Scratch {
    started: Vec<Started<Queued>>,
    refused: Vec<Running>,
}

impl Shared {
    /// The queue. A panic of a task that held the lock ends its connection alone.
    fn lock_queue(&self) -> MutexGuard<'_, Queue<Queued>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.lock_open().connections()
    }

    /// Bytes that one connection may hold.
    fn share(&self) -> u64 {
        let connections = self.numbers.connections.load(Ordering::Relaxed).max(1) as u64;
        (self.limits.buffer / connections).max(self.limits.record as u64)
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
    fn with_queue(
        &self,
        own: Option<&Arc<Connection>>,
        scratch: &mut Scratch,
        change: impl FnOnce(&mut Queue<Queued>, Nanos),
    ) {
        let Scratch { started, refused } = scratch;
        let (now, is_earlier) = {
            let mut queue = self.lock_queue();
            // Under the lock, so that times and rows of traces are in order.
            let now = self.clock.now();
            change(&mut queue, now);
            started.extend(std::iter::from_fn(|| queue.start(now)));
            (now, self.set_timer(&queue))
        };
        if is_earlier {
            self.timer_is_earlier.notify_one();
        }
        while !started.is_empty() {
            for Started { payload: Queued { connection, xid, record, cost }, running } in started.drain(..) {
                let by_its_task = own.is_some_and(|own| Arc::ptr_eq(own, &connection));
                match connection.send(xid, record, Pending::new(Some(running), cost), by_its_task) {
                    Ok(waker) => waker.into_iter().for_each(std::task::Waker::wake),
                    // The connection closed meanwhile.
                    Err(running) => refused.extend(running),
                }
            }
            if !refused.is_empty() {
                let mut queue = self.lock_queue();
                refused.drain(..).for_each(|running| queue.release(&running));
                started.extend(std::iter::from_fn(|| queue.start(now)));
            }
        }
    }
}
