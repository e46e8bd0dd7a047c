//! The requests of all connections in front of one device: a thin driver of [`leeward_shaping::Server`], which decides
//! which request starts. This type adds who a request belongs to, its work, its counters and its trace.
//!
//! A driver calls [`Queue::start`] until nothing starts after requests came or ended, and at [`Queue::next_poll`]. A demoted
//! request that waits does so for the caps alone, which only the end of another request frees. So only held requests need
//! a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use leeward_fabric::Nanos;
use leeward_promises::Latency;
use leeward_shaping::{Caps, Order, OverLimit, Request, Server, ShapingError, Ticket, WorkloadId};
use leeward_traces::Kind;
use leeward_traces::device::Device;

use crate::counters::{Answered, Counters, Summary};
use crate::recorder::{Recorder, Row};
use crate::work::DeviceWork;
use crate::workloads::{Workload, Workloads};

/// Clients without a workload that have counters and a trace of their own; all further ones share one.
const MOST_CLIENTS: usize = 256;
/// Name of these further clients.
const OTHERS: &str = "other clients";
/// Workloads of before that keep their counters; those of the earliest are forgotten.
const MOST_FORMER: usize = 256;
/// Deadline of a request without an SLO.
const NEVER: Nanos = Nanos(u64::MAX);
/// Last priority of a workload; a later one is reserved.
const LAST_PRIORITY: u32 = u32::MAX - 1;

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
    pub counters: leeward_promises::Counters,
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
    /// Names of exports, for clients without a workload.
    exports: Vec<String>,
    streams: Vec<Stream>,
    by_name: HashMap<String, u32>,
    clients: usize,
    /// Streams of former workloads, the earliest first. One that has come back may be among them.
    former: VecDeque<u32>,
    best_effort: WorkloadId,
    connections: Vec<Option<Connection>>,
    free: Vec<ConnectionNumber>,
    recorder: Option<Recorder>,
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

/// Requests with counters and a trace of their own: those of a workload, or of a client without one.
#[derive(Debug)]
struct Stream {
    name: String,
    /// Current settings of the workload; `None` for best effort.
    workload: Option<Workload>,
    id: WorkloadId,
    counters: Counters,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    export: usize,
    stream: u32,
    /// Version of the workloads in which the stream was found.
    version: u64,
    waiting: HashSet<Ticket, RandomState>,
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
            exports,
            streams: Vec::new(),
            by_name: HashMap::new(),
            clients: 0,
            former: VecDeque::new(),
            best_effort,
            connections: Vec::new(),
            free: Vec::new(),
            recorder,
            holds: false,
            arrivals: 0,
        })
    }

    /// Replaces the workloads, also for waiting requests: workloads of the same name keep their tokens and counters, and
    /// the waiting requests of the others become best effort as those that come.
    ///
    /// # Errors
    /// Fails for invalid settings of a workload; nothing is changed then.
    pub fn replace(&mut self, now: Nanos, workloads: Arc<Workloads>) -> Result<(), InvalidWorkload> {
        for workload in workloads.list() {
            let invalid = |error| InvalidWorkload { name: workload.name.clone(), error };
            shaping(workload).check().map_err(invalid)?;
        }
        for at in 0..self.streams.len() {
            let stays = |workload: &Workload| workloads.list().iter().any(|new| new.name == workload.name);
            let stream = &mut self.streams[at];
            if stream.workload.take_if(|workload| !stays(workload)).is_some() {
                self.server.remove(stream.id);
                stream.id = self.best_effort;
                self.former.push_back(at as u32);
            }
        }
        for workload in workloads.list() {
            let invalid = |error| InvalidWorkload { name: workload.name.clone(), error };
            let at = self.stream(&workload.name);
            let (stream, settings) = (&mut self.streams[at as usize], shaping(workload));
            match stream.workload {
                Some(_) => self.server.change(now, stream.id, &settings).map_err(invalid)?,
                None => stream.id = self.server.add(&settings).map_err(invalid)?,
            }
            stream.workload = Some(workload.clone());
        }
        self.holds |= workloads.list().iter().any(|workload| workload.over == OverLimit::Held);
        self.workloads = workloads;
        self.version += 1;
        self.forget_former();
        Ok(())
    }

    /// Forgets the counters of former workloads beyond a number, so that a proxy does not grow with their names.
    fn forget_former(&mut self) {
        while self.former.len() > MOST_FORMER {
            let Some(at) = self.former.pop_front().filter(|at| !self.former.contains(at)) else { continue };
            let stream = &mut self.streams[at as usize];
            if stream.workload.is_none() {
                stream.counters = Counters::default();
            }
        }
    }

    /// A connection of a client to an export opens.
    pub fn open(&mut self, client: IpAddr, export: usize) -> ConnectionNumber {
        let waiting = HashSet::with_hasher(RandomState::default());
        let stream = self.find_stream(client, export);
        let connection = Connection { client, export, stream, version: self.version, waiting };
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

    /// A connection closes. Its waiting requests are dropped: the client sends them again over another connection, and
    /// then an earlier write must not come after a later one. Requests at the server end by [`Queue::release`].
    pub fn close(&mut self, now: Nanos, number: ConnectionNumber) {
        let Some(connection) = self.connections.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        for ticket in connection.waiting {
            drop(self.server.cancel(now, ticket));
        }
        self.free.push(number);
    }

    /// A request arrives over an open connection; `wall` is the time since 1970. Returns the payload if the connection
    /// is closed.
    pub fn arrive(
        &mut self,
        now: Nanos,
        wall: Nanos,
        number: ConnectionNumber,
        item: Item,
        payload: P,
    ) -> Option<P> {
        let Some(Some(connection)) = self.connections.get(number as usize) else { return Some(payload) };
        let (client, export, mut stream) = (connection.client, connection.export, connection.stream);
        if connection.version != self.version {
            stream = self.find_stream(client, export);
            if let Some(connection) = &mut self.connections[number as usize] {
                (connection.stream, connection.version) = (stream, self.version);
            }
        }
        let Item { kind, size, place } = item;
        if let Some(recorder) = &mut self.recorder {
            recorder.add(Row { trace: stream, at: wall, kind, size, offset: place });
        }
        let slo = self.streams[stream as usize].workload.as_ref().and_then(|workload| workload.slo);
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
        let id = self.streams[stream as usize].id;
        match self.server.arrive(now, id, request, waiting) {
            Ok(arrival) => {
                if let Some(connection) = &mut self.connections[number as usize] {
                    connection.waiting.insert(arrival.ticket);
                }
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
        self.server.complete(running.ticket);
        let stream = &mut self.streams[running.stream as usize];
        let answered = Answered {
            kind: running.kind,
            size: running.size,
            waited: running.started.since(running.arrived),
            latency: now.since(running.arrived),
            was_over: running.was_over,
        };
        let slo = stream.workload.as_ref().and_then(|workload| workload.slo);
        stream.counters.add(now, answered, slo);
    }

    /// A request at the server has no answer: its connection closed, or the server takes too long. Its place is free.
    pub fn release(&mut self, running: &Running) {
        self.server.complete(running.ticket);
    }

    /// Numbers of requests that wait, and of requests at the server.
    pub fn depth(&self) -> (usize, usize) {
        let in_service = self.server.in_service();
        (self.server.len() - in_service, in_service)
    }

    /// Counters of all workloads, and of clients without one that have sent requests. A new interval begins.
    pub fn summaries(&mut self) -> Vec<Summary> {
        let shown = |stream: &&mut Stream| stream.workload.is_some() || stream.counters.requests() > 0;
        let summary = |stream: &mut Stream| {
            let priority = stream.workload.as_ref().map(|workload| workload.priority);
            let slo = stream.workload.as_ref().and_then(|workload| workload.slo);
            let summary = stream.counters.summary(&stream.name, priority, slo);
            stream.counters.begin_interval();
            summary
        };
        self.streams.iter_mut().filter(shown).map(summary).collect()
    }

    /// Counters and recent latencies of all workloads, for an acknowledgement.
    pub fn counted(&mut self, now: Nanos) -> Vec<Counted> {
        let own = self.streams.iter_mut().filter_map(|stream| {
            let slo = stream.workload.as_ref()?.slo;
            let (counters, latencies) = stream.counters.counted(now, slo);
            Some(Counted { workload: stream.name.clone(), counters, latencies })
        });
        own.collect()
    }

    /// Hands recorded rows to their thread. Returns the number of rows that were lost so far.
    pub fn flush_recorder(&mut self) -> u64 {
        let Some(recorder) = &mut self.recorder else { return 0 };
        recorder.flush();
        recorder.lost()
    }

    /// Ends the recording.
    pub fn end_recording(&mut self) {
        if let Some(mut recorder) = self.recorder.take() {
            recorder.flush();
        }
    }

    /// Number of the stream of a client's requests to an export.
    fn find_stream(&mut self, client: IpAddr, export: usize) -> u32 {
        let client = client.to_canonical();
        if let Some(index) = self.workloads.find(client, export) {
            let name = self.workloads.list()[index].name.clone();
            return self.stream(&name);
        }
        let name = match &self.exports[..] {
            [_] => format!("client {client}"),
            exports => format!("client {client} {}", exports.get(export).map_or("", String::as_str)),
        };
        if self.by_name.contains_key(&name) {
            return self.stream(&name);
        }
        if self.clients >= MOST_CLIENTS {
            return self.stream(OTHERS);
        }
        self.clients += 1;
        self.stream(&name)
    }

    /// Number of the stream with this name, which is made if it is not there.
    fn stream(&mut self, name: &str) -> u32 {
        if let Some(&stream) = self.by_name.get(name) {
            return stream;
        }
        let stream = self.streams.len() as u32;
        if let Some(recorder) = &mut self.recorder {
            recorder.name(stream, name);
        }
        self.by_name.insert(name.to_owned(), stream);
        let (name, counters) = (name.to_owned(), Counters::default());
        self.streams.push(Stream { name, workload: None, id: self.best_effort, counters });
        stream
    }
}

/// Settings of a workload at the device.
pub(crate) fn shaping(workload: &Workload) -> leeward_shaping::Workload {
    leeward_shaping::Workload {
        priority: workload.priority.min(LAST_PRIORITY),
        weight: 1.0,
        limits: workload.limits.clone(),
        over: workload.over,
    }
}

#[cfg(test)]
mod tests {
    use leeward_calculus::TokenBucket;
    use leeward_slo::Slo;

    use super::*;
    use crate::workloads::Entry;

    const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}]}"#;
    const MILLI: u64 = 1_000_000;

    fn queue(outstanding: u32) -> Queue<&'static str> {
        ordered(Order::Priority, outstanding)
    }

    fn ordered(order: Order, outstanding: u32) -> Queue<&'static str> {
        let device = Device::from_text("ssd.json", DEVICE).unwrap();
        let caps = Caps { outstanding, ..Caps::NONE };
        Queue::new(order, caps, Some(Arc::new(device)), vec!["nas:/vol".to_owned()], None).unwrap()
    }

    fn entry(name: &str, priority: u32, client: &str, limits: &[(f64, f64)]) -> Entry {
        let limits = limits.iter().map(|&(rate, burst)| TokenBucket::new(rate, burst).unwrap()).collect();
        let slo = Some(Slo { percentile: 99.0, latency: 0.01 });
        let (name, over) = (name.to_owned(), OverLimit::Demoted);
        let workload = Workload { name, priority, limits, over, slo };
        Entry { workload, clients: vec![client.parse().unwrap()], export: None }
    }

    fn workloads(entries: Vec<Entry>) -> Arc<Workloads> {
        Arc::new(Workloads::new(1, entries).unwrap())
    }

    fn read(queue: &mut Queue<&'static str>, millis: u64, connection: ConnectionNumber, name: &'static str) {
        let item = Item { kind: Kind::Read, size: 4096, place: 0 };
        assert_eq!(queue.arrive(Nanos(millis * MILLI), Nanos(0), connection, item, name), None);
    }

    fn start(queue: &mut Queue<&'static str>, millis: u64) -> Option<(&'static str, Running)> {
        queue.start(Nanos(millis * MILLI)).map(|started| (started.payload, started.running))
    }

    #[test]
    fn each_order_starts_the_same_requests_in_its_own_way() {
        for (order, expected) in [
            (Order::Priority, ["mail 1", "mail 2", "mail 3", "web"]),
            (Order::Fifo, ["mail 1", "mail 2", "web", "mail 3"]),
            (Order::Shares, ["mail 1", "web", "mail 2", "mail 3"]),
            (Order::Deadline, ["web", "mail 1", "mail 2", "mail 3"]),
        ] {
            let mut queue = ordered(order, 1);
            let mut web = entry("web", 1, "10.0.0.2", &[]);
            web.workload.slo = Some(Slo { percentile: 99.0, latency: 0.001 });
            queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[]), web])).unwrap();
            let [mail, web, other] =
                ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|client| queue.open(client.parse().unwrap(), 0));
            read(&mut queue, 0, other, "other");
            let (_, mut running) = start(&mut queue, 0).unwrap();
            for (connection, name) in [(mail, "mail 1"), (mail, "mail 2"), (web, "web"), (mail, "mail 3")] {
                read(&mut queue, 0, connection, name);
            }
            let started = expected.map(|_| {
                queue.complete(Nanos(MILLI), &running);
                let (name, next) = start(&mut queue, 1).unwrap();
                running = next;
                name
            });
            assert_eq!(started, expected, "{order:?}");
        }
    }

    #[test]
    fn the_highest_priority_within_its_limits_starts_first_and_requests_over_a_limit_last() {
        let mut queue = queue(1);
        let entries = vec![entry("mail", 0, "10.0.0.1", &[(0.1, 0.001)]), entry("web", 1, "10.0.0.2", &[])];
        queue.replace(Nanos(0), workloads(entries)).unwrap();
        let [mail, web, other] =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|client| queue.open(client.parse().unwrap(), 0));
        read(&mut queue, 0, other, "other");
        let (first, mut running) = start(&mut queue, 0).unwrap();
        assert_eq!(first, "other");
        // The second request of mail is over its limit.
        for (connection, name) in [(web, "web"), (other, "other"), (mail, "mail"), (mail, "mail over")] {
            read(&mut queue, 1, connection, name);
        }
        assert_eq!(start(&mut queue, 1), None);
        assert_eq!(queue.depth(), (4, 1));
        for expected in ["mail", "web", "other", "mail over"] {
            queue.complete(Nanos(2 * MILLI), &running);
            let (name, next) = start(&mut queue, 2).unwrap();
            assert_eq!(name, expected);
            running = next;
        }
        queue.complete(Nanos(20 * MILLI), &running);
        let summaries = queue.summaries();
        let mail = summaries.iter().find(|summary| summary.workload == "mail").unwrap();
        assert_eq!((mail.reads, mail.over_limit, mail.late), (2, 1, 1));
        let other = summaries.iter().find(|summary| summary.workload == "client 10.0.0.3").unwrap();
        assert_eq!((other.reads, other.slo, other.priority), (2, None, None));
    }

    #[test]
    fn waiting_requests_of_a_closed_connection_never_start() {
        let mut queue = queue(1);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|client| queue.open(client.parse().unwrap(), 0));
        for (connection, name) in [(one, "a"), (one, "b"), (other, "c"), (one, "d")] {
            read(&mut queue, 0, connection, name);
        }
        let (_, running) = start(&mut queue, 0).unwrap();
        queue.close(Nanos(0), one);
        queue.close(Nanos(0), one);
        let item = Item { kind: Kind::Read, size: 1, place: 0 };
        assert_eq!(queue.arrive(Nanos(0), Nanos(0), one, item, "e"), Some("e"));
        queue.release(&running);
        queue.release(&running);
        let (name, running) = start(&mut queue, 0).unwrap();
        assert_eq!((name, start(&mut queue, 0)), ("c", None));
        queue.complete(Nanos(MILLI), &running);
        assert_eq!(queue.depth(), (0, 0));
        // The number is used again.
        let new = queue.open("10.0.0.3".parse().unwrap(), 0);
        read(&mut queue, 1, new, "f");
        assert_eq!(start(&mut queue, 1).unwrap().0, "f");
    }

    #[test]
    fn workloads_change_while_requests_wait() {
        let mut queue = queue(1);
        let rows = |mail, web| vec![entry("mail", mail, "10.0.0.1", &[]), entry("web", web, "10.0.0.2", &[])];
        queue.replace(Nanos(0), workloads(rows(0, 1))).unwrap();
        let [mail, web] = ["10.0.0.1", "10.0.0.2"].map(|client| queue.open(client.parse().unwrap(), 0));
        read(&mut queue, 0, mail, "first");
        let (_, running) = start(&mut queue, 0).unwrap();
        read(&mut queue, 0, mail, "mail");
        read(&mut queue, 0, web, "web");
        queue.replace(Nanos(0), workloads(rows(1, 0))).unwrap();
        queue.complete(Nanos(0), &running);
        let (name, running) = start(&mut queue, 0).unwrap();
        assert_eq!(name, "web");
        // Without a workload, the client of mail is best effort, and its waiting request is still served.
        queue.replace(Nanos(0), workloads(vec![entry("web", 0, "10.0.0.2", &[])])).unwrap();
        read(&mut queue, 0, mail, "best effort");
        queue.complete(Nanos(0), &running);
        for expected in ["mail", "best effort"] {
            let (name, running) = start(&mut queue, 0).unwrap();
            assert_eq!(name, expected);
            queue.complete(Nanos(0), &running);
        }
        let names: Vec<String> = queue.summaries().into_iter().map(|summary| summary.workload).collect();
        assert_eq!(names, ["mail", "web", "client 10.0.0.1"]);
    }

    #[test]
    fn held_requests_start_at_a_time_and_demoted_ones_need_none() {
        for over in [OverLimit::Held, OverLimit::Demoted] {
            let mut queue = queue(u32::MAX);
            let mut mail = entry("mail", 0, "10.0.0.1", &[(0.1, 0.001)]);
            mail.workload.over = over;
            queue.replace(Nanos(0), workloads(vec![mail])).unwrap();
            let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
            read(&mut queue, 0, connection, "first");
            read(&mut queue, 0, connection, "second");
            assert_eq!(start(&mut queue, 0).unwrap().0, "first");
            if over == OverLimit::Demoted {
                assert_eq!((start(&mut queue, 0).unwrap().0, queue.next_poll()), ("second", None));
                continue;
            }
            // Its work of 1 ms fits after 10 ms.
            assert_eq!(start(&mut queue, 9), None);
            let next = queue.next_poll().unwrap();
            assert!(next.0.abs_diff(10 * MILLI) < 10, "{next}");
            assert_eq!(queue.start(next).unwrap().payload, "second");
            assert_eq!(queue.next_poll(), None);
        }
    }

    #[test]
    fn an_invalid_workload_changes_nothing() {
        let mut queue = queue(1);
        queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[])])).unwrap();
        let invalid = workloads(vec![entry("web", 0, "10.0.0.1", &[(0.0, 1.0)])]);
        let error = queue.replace(Nanos(0), invalid).unwrap_err().to_string();
        assert_eq!(error, "workload web: a limit of rate 0: expected above 0");
        let names: Vec<String> = queue.summaries().into_iter().map(|summary| summary.workload).collect();
        assert_eq!(names, ["mail"]);
    }

    #[test]
    fn former_workloads_have_counters_up_to_a_number() {
        let mut queue = queue(u32::MAX);
        for number in 0..MOST_FORMER + 10 {
            let own = entry(&format!("w{number}"), 0, "10.0.0.1", &[]);
            queue.replace(Nanos(0), workloads(vec![own])).unwrap();
            let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
            read(&mut queue, 0, connection, "x");
            let (_, running) = start(&mut queue, 0).unwrap();
            queue.complete(Nanos(0), &running);
            queue.close(Nanos(0), connection);
        }
        queue.replace(Nanos(0), workloads(Vec::new())).unwrap();
        let summaries = queue.summaries();
        assert_eq!((summaries.len(), summaries[0].workload.as_str()), (MOST_FORMER, "w10"));
        assert!(summaries.iter().all(|summary| summary.reads == 1));
        // One that comes back begins again.
        queue.replace(Nanos(0), workloads(vec![entry("w0", 0, "10.0.0.1", &[])])).unwrap();
        assert_eq!(queue.summaries()[0].workload, "w0");
    }

    #[test]
    fn clients_without_a_workload_have_counters_up_to_a_number() {
        let mut queue = queue(u32::MAX);
        for number in 0..MOST_CLIENTS as u32 + 50 {
            let connection = queue.open(IpAddr::V4((0x0a00_0000 + number).into()), 0);
            read(&mut queue, 0, connection, "x");
            let (_, running) = start(&mut queue, 0).unwrap();
            queue.complete(Nanos(0), &running);
            queue.close(Nanos(0), connection);
        }
        let summaries = queue.summaries();
        assert_eq!(summaries.len(), MOST_CLIENTS + 1);
        assert_eq!(summaries.last().map(|last| (last.workload.as_str(), last.reads)), Some((OTHERS, 50)));
    }
}
