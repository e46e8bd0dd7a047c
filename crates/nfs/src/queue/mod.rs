//! The requests of all connections in front of one device: a thin driver of [`leeward_shaping::Server`], which decides
//! which request starts. This type adds who a request belongs to, its work, its counters and its trace.
//!
//! A driver calls [`Queue::start`] until nothing starts after requests came or ended, and at [`Queue::next_poll`]. A demoted
//! request that waits does so for the caps alone, which only the end of another request frees. So only held requests need
//! a time.

mod streams;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use leeward_fabric::Nanos;
use leeward_promises::Latency;
use leeward_shaping::{Caps, Order, OverLimit, Request, Server, ShapingError, Ticket};
use leeward_traces::Kind;
use leeward_traces::device::Device;

use self::streams::Streams;
use crate::counters::{Answered, Summary};
use crate::recorder::{Recorder, Row};
use crate::work::DeviceWork;
use crate::workloads::Workloads;

pub(crate) use self::streams::shaping;

/// Deadline of a request without an SLO.
const NEVER: Nanos = Nanos(u64::MAX);
/// A request as the queue sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Direction of the payload.
    pub kind: Kind,
    /// Bytes of payload; 0 for a COMMIT.
    pub size: u64,
    /// Place on the volume, in bytes.
    pub place: u64,
}

/// A request that may go to the server now.
#[derive(Clone, PartialEq, Debug)]
pub struct Started<P> {
    /// Value that the caller attached to the request.
    pub payload: P,
    /// The request, for its end.
    pub running: Running,
}

/// A request at the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    ticket: Ticket,
    stream: u32,
    kind: Kind,
    size: u64,
    arrived: Nanos,
    started: Nanos,
    was_over: bool,
}

impl Running {
    /// Time at which it went to the server.
    pub fn started(&self) -> Nanos {
        self.started
    }
}

/// Counters and recent latencies of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Counted {
    /// Name of the workload.
    pub workload: String,
    /// Counters since the start.
    pub counters: leeward_promises::RequestCounters,
    /// Latencies of the last time.
    pub latencies: Vec<Latency>,
}

/// Number of a connection, from [`Queue::open`] to [`Queue::close`].
pub type ConnectionNumber = u32;

/// Invalid settings of a workload.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("workload {name}: {error}")]
pub struct InvalidWorkload {
    /// Name of the workload.
    pub name: String,
    /// The invalid setting.
    pub error: ShapingError,
}

/// Requests that wait for a device or are there, with the counters of their workloads.
pub struct Queue<P> {
    server: Server<Waiting<P>>,
    work: DeviceWork,
    workloads: Arc<Workloads>,
    /// Number of replacements of the workloads.
    version: u64,
    streams: Streams,
    connections: Vec<Option<Connection>>,
    free: Vec<ConnectionNumber>,
    /// True once a workload holds requests back: some may wait even after it was replaced.
    holds: bool,
    /// Number of requests that arrived, for the order of equal deadlines.
    arrivals: u64,
}

/// A waiting request.
#[derive(Clone, Debug)]
struct Waiting<P> {
    payload: P,
    connection: ConnectionNumber,
    stream: u32,
    item: Item,
    arrived: Nanos,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    export: usize,
    stream: u32,
    /// Version of the workloads in which the stream was found.
    version: u64,
    waiting: HashSet<Ticket, RandomState>,
    /// True once the client has gone: no more requests arrive.
    is_left: bool,
}

impl<P> Queue<P> {
    /// A queue without workloads, in front of a device. `exports` are the names of the exports.
    ///
    /// # Errors
    /// Fails for a cap of 0 requests.
    pub fn new(
        order: Order,
        caps: Caps,
        device: Option<Arc<Device>>,
        exports: Vec<String>,
        recorder: Option<Recorder>,
    ) -> Result<Queue<P>, ShapingError> {
        let mut server = Server::new(order, caps)?;
        let best_effort = server.add(&leeward_shaping::Workload::best_effort())?;
        Ok(Queue {
            server,
            work: DeviceWork::new(device),
            workloads: Arc::new(Workloads::none(exports.len())),
            version: 0,
            streams: Streams::new(best_effort, exports, recorder),
            connections: Vec::new(),
            free: Vec::new(),
            holds: false,
            arrivals: 0,
        })
    }

    /// Replaces the workloads, also for waiting requests: workloads of the same name keep their tokens and counters, and
    /// the waiting requests of the others become best effort as those that come. A workload that comes back finds its
    /// buckets, so that a lease that ends and begins again is no free burst.
    ///
    /// # Errors
    /// Fails for invalid settings of a workload; nothing is changed then.
    pub fn replace(&mut self, now: Nanos, workloads: Arc<Workloads>) -> Result<(), InvalidWorkload> {
        self.streams.replace(&mut self.server, now, &workloads)?;
        self.holds |= workloads.list().iter().any(|workload| workload.over == OverLimit::Held);
        self.workloads = workloads;
        self.version += 1;
        Ok(())
    }

    /// A connection of a client to an export opens.
    pub fn open(&mut self, client: IpAddr, export: usize) -> ConnectionNumber {
        let waiting = HashSet::with_hasher(RandomState::default());
        let stream = self.streams.of_client(&self.workloads, client, export);
        let connection =
            Connection { client, export, stream, version: self.version, waiting, is_left: false };
        match self.free.pop() {
            Some(number) => {
                self.connections[number as usize] = Some(connection);
                number
            }
            None => {
                self.connections.push(Some(connection));
                (self.connections.len() - 1) as ConnectionNumber
            }
        }
    }

    /// The client of a connection goes. Its waiting requests are dropped: the client sends them again over another
    /// connection, and then an earlier write must not come after a later one. Requests at the server keep their places
    /// until they end. A request that has waited for longer than its SLO is late, although nobody waits for it now.
    pub fn leave(&mut self, now: Nanos, number: ConnectionNumber) {
        let Some(Some(connection)) = self.connections.get_mut(number as usize) else { return };
        connection.is_left = true;
        for ticket in std::mem::take(&mut connection.waiting) {
            let Some(Waiting { stream, arrived, .. }) = self.server.cancel(now, ticket) else { continue };
            let (stream, waited) = (self.streams.at(stream), now.since(arrived));
            if stream.slo().is_some_and(|slo| waited.as_secs_f64() > slo.latency) {
                let slo = stream.slo();
                stream.counters.add_unanswered(now, waited, false, slo);
            }
        }
    }

    /// A connection closes, as by [`Queue::leave`], and its number is free for another one. Requests at the server end by
    /// [`Queue::release`].
    pub fn close(&mut self, now: Nanos, number: ConnectionNumber) {
        self.leave(now, number);
        if self.connections.get_mut(number as usize).and_then(Option::take).is_some() {
            self.free.push(number);
        }
    }

    /// A request arrives over an open connection; `wall` is the time since 1970. Returns the payload if the connection
    /// is closed or its client has gone.
    pub fn arrive(
        &mut self,
        now: Nanos,
        wall: Nanos,
        number: ConnectionNumber,
        item: Item,
        payload: P,
    ) -> Option<P> {
        let Some(Some(connection)) = self.connections.get_mut(number as usize) else { return Some(payload) };
        if connection.is_left {
            return Some(payload);
        }
        if connection.version != self.version {
            let Connection { client, export, .. } = *connection;
            connection.stream = self.streams.of_client(&self.workloads, client, export);
            connection.version = self.version;
        }
        let stream = connection.stream;
        let Item { kind, size, place } = item;
        if let Some(recorder) = self.streams.recorder() {
            recorder.add(Row { trace: stream, at: wall, kind, size, offset: place });
        }
        let (id, slo) = (self.streams.at(stream).flow, self.streams.at(stream).slo());
        let deadline = slo.map_or(NEVER, |slo| now.plus(Nanos::from_secs_f64(slo.latency)));
        self.arrivals += 1;
        let request = Request {
            kind,
            size,
            offset: Some(place),
            work: self.work.seconds(kind, size, place),
            deadline,
            number: self.arrivals,
        };
        let waiting = Waiting { payload, connection: number, stream, item, arrived: now };
        match self.server.arrive(now, id, request, waiting) {
            Ok(arrival) => {
                connection.waiting.insert(arrival.ticket);
                None
            }
            Err(waiting) => Some(waiting.payload),
        }
    }

    /// The next request that may go to the server; `None` if none waits or the caps are reached. The caller calls again
    /// until then.
    pub fn start(&mut self, now: Nanos) -> Option<Started<P>> {
        let start = self.server.poll(now)?;
        let Waiting { payload, connection, stream, item, arrived } = start.payload;
        if let Some(Some(connection)) = self.connections.get_mut(connection as usize) {
            connection.waiting.remove(&start.ticket);
        }
        let running = Running {
            ticket: start.ticket,
            stream,
            kind: item.kind,
            size: item.size,
            arrived,
            started: now,
            was_over: start.was_over,
        };
        Some(Started { payload, running })
    }

    /// Time of the next [`Queue::start`] if no request comes or ends before; `None` if there is nothing to wait for.
    pub fn next_poll(&self) -> Option<Nanos> {
        self.server.next_poll().filter(|_| self.holds)
    }

    /// The server answered a request: it is counted, and its place is free.
    pub fn complete(&mut self, now: Nanos, running: &Running) {
        if !self.server.complete(running.ticket) {
            return;
        }
        let stream = self.streams.at(running.stream);
        let answered = Answered {
            kind: running.kind,
            size: running.size,
            waited: running.started.since(running.arrived),
            latency: now.since(running.arrived),
            was_over: running.was_over,
        };
        let slo = stream.slo();
        stream.counters.add(now, answered, slo);
    }

    /// A request at the server has no answer: its connection ended, or the server takes too long. Its place is free, and
    /// it counts as late.
    pub fn release(&mut self, now: Nanos, running: &Running) {
        if self.server.complete(running.ticket) {
            let stream = self.streams.at(running.stream);
            let slo = stream.slo();
            stream.counters.add_unanswered(now, now.since(running.arrived), running.was_over, slo);
        }
    }

    /// A started request did not reach the server, because its client has gone. Its place is free.
    pub fn withdraw(&mut self, running: &Running) {
        self.server.complete(running.ticket);
    }

    /// Numbers of requests that wait, and of requests at the server.
    pub fn depth(&self) -> (usize, usize) {
        let in_service = self.server.in_service();
        (self.server.len() - in_service, in_service)
    }

    /// Counters of all workloads, and of clients without one that have sent requests. A new interval begins.
    pub fn summaries(&mut self) -> Vec<Summary> {
        self.streams.summaries()
    }

    /// Counters and recent latencies of all workloads, for an acknowledgement.
    pub fn counted(&mut self, now: Nanos) -> Vec<Counted> {
        self.streams.counted(now)
    }

    /// Hands recorded rows to their thread; `wall` is the time since 1970. Returns the number of rows that were lost so far.
    pub fn flush_recorder(&mut self, wall: Nanos) -> u64 {
        let Some(recorder) = self.streams.recorder() else { return 0 };
        recorder.flush_at(wall);
        recorder.lost()
    }

    /// Ends the recording.
    pub fn end_recording(&mut self) {
        if let Some(mut recorder) = self.streams.recorder().take() {
            recorder.flush();
        }
    }
}

#[cfg(test)]
mod tests;
