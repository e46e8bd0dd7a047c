//! An open-loop load generator on one thread. Due times are drawn in advance. A request is sent as soon as it is due
//! and a connection is free.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use leeward_testing::numbers::Numbers;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::Value;

use crate::process::used;
use crate::requests::{Request, Tokens, Writer};

/// Time to wait for the last responses.
const LAST_RESPONSES: Duration = Duration::from_secs(10);
/// Sleep when there is nothing to do.
const NAP: Duration = Duration::from_micros(20);
/// Warm-up: every agent reports before the measurement starts, and placements are sent in the second half.
const WARM_UP: Duration = Duration::from_secs(2);

/// Number of jobs that tasks belong to.
const JOBS: u64 = 100;

/// The requests to send.
pub struct Schedule<'a> {
    pub agents: u64,
    pub racks: u64,
    /// Reports per second of all agents together.
    pub reports: u64,
    /// Placements per second.
    pub placements: u64,
    /// Percentage of the placements that are tasks instead of blocks.
    pub tasks: u64,
    /// Tokens for the requests.
    pub tokens: Option<&'a Tokens>,
    /// Connections for reports and for placements.
    pub connections: (usize, usize),
    /// Length of the measurement.
    pub length: Duration,
}

/// Results for one kind of request.
#[derive(Default)]
pub struct Results {
    pub sent: u64,
    /// Responses to requests that were due before the measurement.
    pub filled: u64,
    /// Times from a request's due time to its response, in microseconds.
    pub waits: Vec<u64>,
    /// Links and devices sent.
    pub parts: u64,
    /// Accepted links and devices (or decided placements), and skipped ones.
    pub accepted: u64,
    pub skipped: u64,
    /// Error responses.
    pub rejected: u64,
}

impl Results {
    /// The given quantile of the sorted waits, in microseconds; 0 without waits.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let at = (self.waits.len() as f64 * share) as usize;
        self.waits.get(at.min(self.waits.len().saturating_sub(1))).copied().unwrap_or(0) as f64
    }
}

/// Results of all requests.
#[derive(Default)]
pub struct Outcome {
    pub reports: Results,
    pub placements: Results,
    pub tasks: Results,
    /// CPU time of the service and of the load generator during the measurement.
    pub service_cpu: Duration,
    pub generator_cpu: Duration,
}

impl Outcome {
    /// Results for requests of this kind.
    fn of(&mut self, request: Request) -> &mut Results {
        match request {
            Request::Report { .. } => &mut self.reports,
            Request::Placement { .. } => &mut self.placements,
            Request::Task { .. } => &mut self.tasks,
        }
    }
}

struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    /// Request that waits for its response.
    pending: Option<Request>,
    waiting: VecDeque<Request>,
}

/// Draws an exponential gap between independent events at `rate` per second.
fn gap(numbers: &mut Numbers, rate: u64) -> Duration {
    let share = ((numbers.draw() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    Duration::from_secs_f64(-share.ln() / rate as f64)
}

/// All requests, in order of their due times.
fn requests(schedule: &Schedule<'_>) -> Vec<Request> {
    let Schedule { agents, reports, placements, tasks, length, .. } = *schedule;
    let (mut numbers, mut kinds, until) = (Numbers::new(1), Numbers::new(3), WARM_UP + length);
    let (mut requests, mut last) = (Vec::new(), vec![Duration::ZERO; agents as usize]);
    let (mut due, mut count) = (Duration::ZERO, 0);
    while due < until {
        due += gap(&mut numbers, reports);
        // Consecutive reports come from distant hosts.
        let agent = count * 7_919 % agents;
        requests.push(Request::Report { agent, from: last[agent as usize], due });
        (last[agent as usize], count) = (due, count + 1);
    }
    // Placements before the first reports would be rejected.
    due = WARM_UP / 2;
    while due < until {
        due += gap(&mut numbers, placements);
        let writer = numbers.draw() % agents;
        let is_task = kinds.draw() % 100 < tasks;
        requests.push(if is_task {
            Request::Task { job: writer % JOBS, due }
        } else {
            Request::Placement { writer, due }
        });
    }
    requests.sort_by_key(|request| request.due());
    requests
}

struct Load<'a> {
    schedule: &'a Schedule<'a>,
    writer: Writer<'a>,
    began: Instant,
    connections: Vec<Connection>,
    /// Free connections for placements, and placements that wait for one. Each connection is used regularly, because
    /// the service closes a connection after 10 s without a request.
    free: VecDeque<usize>,
    waiting: VecDeque<Request>,
    numbers: Numbers,
    in_flight: u64,
    outcome: Outcome,
}

/// Sends all requests at their due times and returns the results.
pub fn run(address: SocketAddr, schedule: &Schedule<'_>, process: u32) -> Outcome {
    let mut poll = Poll::new().expect("the system polls");
    let all = schedule.connections.0 + schedule.connections.1;
    let connections = (0..all).map(|at| connect(address, at, &poll)).collect();
    let mut load = Load {
        schedule,
        writer: Writer::new(schedule.agents, schedule.racks, schedule.tokens),
        began: Instant::now(),
        connections,
        free: (schedule.connections.0..all).collect(),
        waiting: VecDeque::new(),
        numbers: Numbers::new(2),
        in_flight: 0,
        outcome: Outcome::default(),
    };
    let (mut requests, mut events) =
        (requests(schedule).into_iter().peekable(), Events::with_capacity(4_096));
    let (mut before, mut end) = (None, None);
    load.began = Instant::now();
    loop {
        let now = load.began.elapsed();
        while let Some(request) = requests.next_if(|request| request.due() <= now) {
            load.due(request);
        }
        if before.is_none() && now >= WARM_UP {
            before = Some((used(process), used(std::process::id())));
        }
        if requests.peek().is_none() {
            let end = *end.get_or_insert(now);
            if load.in_flight == 0 || now > end + LAST_RESPONSES {
                break;
            }
        }
        poll.poll(&mut events, Some(Duration::ZERO)).expect("the system polls");
        if events.is_empty() {
            // A wait in the poll takes at least a millisecond. A loop without a sleep would lose the core to
            // other threads.
            std::thread::sleep(NAP);
        }
        for event in &events {
            load.ready(event.token().0);
        }
    }
    let (service_cpu, generator_cpu) = before.unwrap_or_default();
    load.outcome.service_cpu = used(process).saturating_sub(service_cpu);
    load.outcome.generator_cpu = used(std::process::id()).saturating_sub(generator_cpu);
    load.outcome
}

fn connect(address: SocketAddr, at: usize, poll: &Poll) -> Connection {
    let stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).expect("a socket");
    let mut stream = TcpStream::from_std(stream);
    poll.registry()
        .register(&mut stream, Token(at), Interest::READABLE | Interest::WRITABLE)
        .expect("the system polls");
    let (out, received, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
    Connection { stream, out, written: 0, received, pending: None, waiting }
}

impl Load<'_> {
    fn due(&mut self, request: Request) {
        self.in_flight += 1;
        match request {
            Request::Report { agent, .. } => {
                self.outcome.reports.sent += 1;
                self.outcome.reports.parts += self.writer.parts(agent);
                let at = agent as usize % self.schedule.connections.0;
                if self.connections[at].pending.is_some() {
                    self.connections[at].waiting.push_back(request);
                } else {
                    self.send(at, request);
                }
            }
            Request::Placement { .. } | Request::Task { .. } => {
                self.outcome.of(request).sent += 1;
                match self.free.pop_front() {
                    Some(at) => self.send(at, request),
                    None => self.waiting.push_back(request),
                }
            }
        }
    }

    fn send(&mut self, at: usize, request: Request) {
        let connection = &mut self.connections[at];
        self.writer.write(request, self.numbers.draw(), &mut connection.out);
        (connection.written, connection.pending) = (0, Some(request));
        self.flush(at);
    }

    fn flush(&mut self, at: usize) {
        let Connection { stream, out, written, .. } = &mut self.connections[at];
        while *written < out.len() {
            match stream.write(&out[*written..]) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the service does not read: {error}"),
            }
        }
    }

    /// Handles a readable or writable socket.
    fn ready(&mut self, at: usize) {
        self.flush(at);
        loop {
            let Connection { stream, received, .. } = &mut self.connections[at];
            let known = received.len();
            received.resize(known + 8_192, 0);
            let read = stream.read(&mut received[known..]);
            received.truncate(known + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => panic!("the service closed a connection"),
                Ok(_) => {
                    while let Some((status, body)) = take_response(&mut self.connections[at].received) {
                        self.handle(at, status, &body);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the service does not answer: {error}"),
            }
        }
    }

    fn handle(&mut self, at: usize, status: u16, body: &[u8]) {
        let request = self.connections[at].pending.take().expect("a response to a request");
        self.in_flight -= 1;
        let waited = self.began.elapsed().saturating_sub(request.due());
        let is_report = matches!(request, Request::Report { .. });
        let results = self.outcome.of(request);
        if request.due() < WARM_UP {
            results.filled += 1;
        } else {
            results.waits.push(waited.as_micros() as u64);
        }
        let next =
            if is_report { self.connections[at].waiting.pop_front() } else { self.waiting.pop_front() };
        if !(200..300).contains(&status) {
            results.rejected += 1;
        } else if is_report {
            let body: Value = serde_json::from_slice(body).expect("JSON");
            let count = |value: &Value| value.as_u64().expect("a count");
            results.accepted += count(&body["links"]) + count(&body["devices"]);
            results.skipped += count(&body["skipped"]["stale"]) + count(&body["skipped"]["down"]);
        } else {
            results.accepted += 1;
        }
        match next {
            Some(next) => self.send(at, next),
            None if !is_report => self.free.push_back(at),
            None => {}
        }
    }
}

/// Removes one complete response from the received bytes and returns its status and body.
fn take_response(received: &mut Vec<u8>) -> Option<(u16, Vec<u8>)> {
    let head = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&received[..head]).expect("a head is text");
    let status = text.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let end = head + length.parse::<usize>().expect("a number");
    if received.len() < end {
        return None;
    }
    let body = received[head..end].to_vec();
    received.drain(..end);
    Some((status, body))
}
