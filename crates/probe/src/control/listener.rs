//! Listener: receives trains and transfers, and measures on request.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::client::Secret;
use super::frame;
use super::message::{Order, Reply, Request, VERSION};
use super::source;
use crate::error::ProbeError;
use crate::sockets::clock::Clock;
use crate::sockets::{bulk, train as packets};
use crate::train::{Limits, Train, Transfer};
use crate::transfer_report::TransferReport;

/// Maximum silence on a connection.
const IDLE: Duration = Duration::from_secs(15);
/// Time limit for a connection's complete first message. A client waits no longer than this for the reply.
const GREETING: Duration = Duration::from_secs(5);
/// Interval between checks of the stop flag.
const TICK: Duration = Duration::from_millis(50);
/// Maximum time for a train to arrive, in nanoseconds.
const TRAIN_NS: u64 = 40_000_000_000;

/// A host that takes part in measurements.
pub struct Listener {
    socket: TcpListener,
    shared: Arc<Shared>,
}

/// State shared by all connections.
struct Shared {
    limits: Limits,
    secret: Secret,
    stopped: AtomicBool,
    peers: AtomicUsize,
    /// At most one train is sent and one is received at a time, because two simultaneous trains would disturb each
    /// other.
    sending: Mutex<()>,
    receiving: Mutex<()>,
    /// Receivers of the data connections of each transfer.
    transfers: Mutex<BTreeMap<u64, Sender<TcpStream>>>,
}

/// Handle that stops a listener.
#[derive(Clone)]
pub struct Stop(Arc<Shared>);

impl Stop {
    /// Stops accepting connections. Existing connections end by themselves.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
    }
}

impl Listener {
    /// Listens on an address; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::System`] with the system's error.
    pub fn bind(address: SocketAddr, limits: Limits, secret: Secret) -> Result<Listener, ProbeError> {
        let system_error = |error| ProbeError::system(address, &error);
        let socket = TcpListener::bind(address).map_err(system_error)?;
        socket.set_nonblocking(true).map_err(system_error)?;
        let shared = Arc::new(Shared {
            limits,
            secret,
            stopped: AtomicBool::new(false),
            peers: AtomicUsize::new(0),
            sending: Mutex::new(()),
            receiving: Mutex::new(()),
            transfers: Mutex::new(BTreeMap::new()),
        });
        Ok(Listener { socket, shared })
    }

    /// Address of the listening socket.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::System`] with the system's error.
    pub fn address(&self) -> Result<SocketAddr, ProbeError> {
        self.socket.local_addr().map_err(|error| ProbeError::system("listen", &error))
    }

    /// Returns a handle that stops the listener.
    pub fn stop(&self) -> Stop {
        Stop(self.shared.clone())
    }

    /// Serves connections, one thread each, until the listener is stopped. The listener retries when it cannot accept a
    /// connection.
    pub fn run(&self) {
        while !self.shared.stopped.load(Ordering::Acquire) {
            // No peer is waiting, or the peer has disconnected, or too many files are open: a later call may succeed.
            let Ok((stream, _)) = self.socket.accept() else {
                thread::sleep(TICK);
                continue;
            };
            // Connections of a transfer arrive one by one while its control connection waits, so the limit must allow
            // both.
            let Some(permit) = ConnectionPermit::take(&self.shared) else { continue };
            let builder = thread::Builder::new().name("leeward-probe".to_owned());
            // An error ends only this connection, and its peer notices. The same holds if the thread cannot start.
            let _ = builder.spawn(move || {
                let permit = permit;
                serve(&permit.0, stream)
            });
        }
    }
}

/// One of the limited number of connections; released on drop.
struct ConnectionPermit(Arc<Shared>);

impl ConnectionPermit {
    fn take(shared: &Arc<Shared>) -> Option<ConnectionPermit> {
        let permit = ConnectionPermit(shared.clone());
        let connected = shared.peers.fetch_add(1, Ordering::AcqRel);
        // Beyond the limit, the permit is dropped and releases its count.
        (connected < shared.limits.peers).then_some(permit)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.peers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reader with a deadline for all its data. Without the deadline, a peer that sends single bytes could hold a
/// connection for hours.
struct DeadlineReader<'a> {
    stream: &'a TcpStream,
    clock: Clock,
    within: Duration,
}

impl DeadlineReader<'_> {
    fn new(stream: &TcpStream, within: Duration) -> DeadlineReader<'_> {
        DeadlineReader { stream, clock: Clock::start(), within }
    }
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = self.within.saturating_sub(Duration::from_nanos(self.clock.ns()));
        if remaining.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(remaining))?;
        self.stream.read(buffer)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws a session number that other hosts cannot guess.
fn random_session() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

fn serve(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(IDLE))?;
    let first = frame::read_at_most(&mut DeadlineReader::new(&stream, GREETING), frame::FIRST_BYTES)?;
    stream.set_read_timeout(Some(IDLE))?;
    match first {
        Request::Data { session } => {
            let sender = lock(&shared.transfers).get(&session).cloned();
            // Data connections without a transfer are closed.
            if let Some(sender) = sender {
                let _ = sender.send(stream);
            }
            return Ok(());
        }
        Request::Hello { version, secret } => {
            if version != VERSION {
                let message = format!("protocol version {VERSION} required, not {version}");
                return frame::write(&mut stream, &Reply::Refused { message });
            }
            if !equal_in_constant_time(shared.secret.0.as_deref(), secret.as_deref()) {
                let message = "wrong secret; all hosts need the same one".to_owned();
                return frame::write(&mut stream, &Reply::Refused { message });
            }
            frame::write(&mut stream, &Reply::Hello { version: VERSION })?;
        }
        _ => {
            let message = "expected `hello` first".to_owned();
            return frame::write(&mut stream, &Reply::Refused { message });
        }
    }
    loop {
        let reply = match frame::read(&mut stream) {
            Ok(request) => reply(shared, &mut stream, request)?,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let message = format!("unknown message: {error}");
                return frame::write(&mut stream, &Reply::Refused { message });
            }
            Err(error) => return Err(error),
        };
        frame::write(&mut stream, &reply)?;
    }
}

/// Compares two texts in time independent of the position of the first difference.
fn equal_in_constant_time(ours: Option<&str>, theirs: Option<&str>) -> bool {
    let Some(ours) = ours else { return true };
    let theirs = theirs.unwrap_or_default();
    let differ = ours.bytes().zip(theirs.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    ours.len() == theirs.len() && differ == 0
}

fn reply(shared: &Shared, stream: &mut TcpStream, request: Request) -> io::Result<Reply> {
    let result = match request {
        Request::Ping {} => Ok(Reply::Pong {}),
        Request::ReceiveTrain { train } => receive_train(shared, stream, train),
        Request::ReceiveTransfer { transfer } => receive_transfer(shared, stream, transfer),
        Request::Measure { to, order } => measure(shared, &to, &order),
        Request::Hello { .. } | Request::Data { .. } | Request::Ended {} => {
            Err(ProbeError::Nothing("unexpected message".to_owned()))
        }
    };
    Ok(result.unwrap_or_else(|error| match error {
        ProbeError::Busy { .. } => Reply::Busy {},
        error => Reply::Refused { message: error.to_string() },
    }))
}

fn measure(shared: &Shared, to: &str, order: &Order) -> Result<Reply, ProbeError> {
    let outcome = match order {
        Order::Train { .. } => {
            let Ok(_alone) = shared.sending.try_lock() else {
                return Err(ProbeError::Busy { peer: String::new() });
            };
            source::measure(to, order, &shared.limits, &shared.secret)?
        }
        Order::Transfer { .. } | Order::Hops {} => {
            source::measure(to, order, &shared.limits, &shared.secret)?
        }
    };
    Ok(Reply::Measured { outcome })
}

fn receive_train(shared: &Shared, stream: &mut TcpStream, train: Train) -> Result<Reply, ProbeError> {
    train.check(&shared.limits)?;
    let Ok(_alone) = shared.receiving.try_lock() else {
        return Err(ProbeError::Busy { peer: String::new() });
    };
    let system_error = |error| ProbeError::system("receiving", &error);
    // The UDP port has the same number as the TCP port, so that a firewall needs to allow only one number.
    let address = stream.local_addr().map_err(system_error)?;
    let receiver = packets::Receiver::bind(address, &train).map_err(system_error)?;
    let (session, port) = (random_session(), receiver.address().map_err(system_error)?.port());
    frame::write(stream, &Reply::Ready { port, session }).map_err(system_error)?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.receive(session, train, &ended, TRAIN_NS));
        let message = stream.set_read_timeout(Some(Duration::from_nanos(TRAIN_NS)));
        let message = message.and_then(|()| frame::read(stream));
        let _ = stream.set_read_timeout(Some(IDLE));
        // The sender has finished, regardless of the message.
        ended.store(true, Ordering::Release);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match message.map_err(system_error)? {
            Request::Ended {} => Ok(Reply::Received { received: received.map_err(system_error)? }),
            _ => Err(ProbeError::Nothing("expected `ended` after a train".to_owned())),
        }
    })
}

fn receive_transfer(
    shared: &Shared,
    stream: &mut TcpStream,
    transfer: Transfer,
) -> Result<Reply, ProbeError> {
    transfer.check(&shared.limits)?;
    let system_error = |error| ProbeError::system("receiving", &error);
    let session = random_session();
    let (sender, streams) = channel();
    lock(&shared.transfers).insert(session, sender);
    let result = collect(stream, &transfer, session, &streams);
    lock(&shared.transfers).remove(&session);
    let slots = result.map_err(system_error)?;
    Ok(Reply::Transferred { transferred: TransferReport { duration_ns: transfer.duration_ns, slots } })
}

fn collect(
    stream: &mut TcpStream,
    transfer: &Transfer,
    session: u64,
    streams: &Receiver<TcpStream>,
) -> io::Result<Vec<Vec<u64>>> {
    let port = stream.local_addr()?.port();
    frame::write(stream, &Reply::Ready { port, session })?;
    let mut connected = Vec::new();
    for _ in 0..transfer.connections {
        let next = streams.recv_timeout(IDLE).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        connected.push(next);
    }
    let clock = Clock::start();
    let slots = thread::scope(|scope| {
        let clock = &clock;
        let receiving: Vec<_> = connected
            .into_iter()
            .map(|stream| scope.spawn(move || bulk::receive(stream, transfer, clock)))
            .collect();
        receiving
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<io::Result<Vec<_>>>()
    })?;
    match frame::read(stream)? {
        Request::Ended {} => Ok(slots),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "expected `ended` after a transfer")),
    }
}
