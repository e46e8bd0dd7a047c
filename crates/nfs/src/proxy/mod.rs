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
//! A client that goes leaves its requests at the server: they keep their places until they are answered. The memory of all
//! connections has a limit, by a share of each and permits for messages above it.
//!
//! Payloads are not copied: they are read into buffers, whose parts go to the other side as they are. Replies pass on in
//! pieces, before they are whole.

mod calls_task;
mod connection;
mod handle;
mod listener;
mod open;
mod permits;
mod replies_task;
mod room;
mod session;
mod shared;
mod state;
mod streams;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use leeward_capture::places::Prefixes;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_shaping::{Caps, Order};
use leeward_traces::device::Device;
use tokio::sync::Notify;

use self::listener::Listener;
use self::permits::Permits;
use self::shared::{NEVER, Numbers, Shared, housekeeping, start_held_requests};
use crate::clock::Clock;
use crate::event::Events;
use crate::outgoing::Source;
use crate::queue::Queue;
use crate::recorder::{Recorder, RecorderSettings};
use crate::server::Server;
use crate::workloads::Workloads;

pub use self::handle::{Handle, Report};

/// Limits that protect the proxy and its clients from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest record, in bytes, with the headers of its fragments.
    pub record: usize,
    /// Bytes of calls and replies that all connections together hold: one half in equal shares, of at least 64 KiB, and the
    /// other half for messages that are larger than a share.
    pub buffer: u64,
    /// Largest number of connections.
    pub connections: usize,
    /// Largest number of connections of one client: of an address of IPv4, or of the 64 bits of a network of IPv6.
    pub connections_per_client: usize,
    /// Longest time for which a request keeps its place at the device without an answer.
    pub answer: Nanos,
    /// Longest time for a call that is larger than the share of its connection.
    pub call: Nanos,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            record: (4 << 20) + 4096,
            buffer: 256 << 20,
            connections: 1024,
            connections_per_client: 64,
            answer: Nanos(30 * Nanos::SECOND.0),
            call: Nanos(60 * Nanos::SECOND.0),
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
    /// True if clients must come from a reserved port, which only root of a machine has.
    pub reserved_clients: bool,
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
        let limits = settings.limits;
        let permits = (limits.buffer / 2 / limits.record.max(1) as u64).max(1);
        let shared = Shared {
            exports: settings.exports,
            limits,
            source: settings.source,
            allowed: settings.allowed,
            reserved_clients: settings.reserved_clients,
            clock,
            events,
            queue: Mutex::new(queue),
            open: Mutex::default(),
            permits: Permits::new(usize::try_from(permits).unwrap_or(usize::MAX)),
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
