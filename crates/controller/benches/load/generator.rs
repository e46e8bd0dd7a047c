//! An open-loop load generator on one thread. Due times are drawn in advance. A request is sent when it is due and its
//! connection is free.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::Value;

use crate::process::used;
use crate::requests::{Ask, Tokens, Writer};

/// Time to wait for the last responses.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Sleep when there is nothing to do.
const NAP: Duration = Duration::from_micros(20);
/// Warm-up: every agent reports before the measurement starts, and placements are sent in the second half.
const FILLING: Duration = Duration::from_secs(2);

/// Number of jobs that tasks belong to.
const JOBS: u64 = 100;

/// The requests to send.
pub struct Schedule<'a> {
    /// Number of agents. Each reports once per second on average.
    pub agents: u64,
    pub racks: u64,
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
pub struct Heard {
    pub asked: u64,
    /// Responses to requests that were due before the measurement.
    pub filled: u64,
    /// Times from a request's due time to its response, in microseconds.
    pub waits: Vec<u64>,
    /// Links and devices sent.
    pub parts: u64,
    /// Accepted links and devices (or decided placements), and skipped ones.
    pub taken: u64,
    pub skipped: u64,
    /// Error responses.
    pub refused: u64,
}

/// Results of all requests.
#[derive(Default)]
pub struct Outcome {
    pub reports: Heard,
    pub placements: Heard,
    pub tasks: Heard,
    /// CPU time of the service and of the load generator during the measurement.
    pub served: Duration,
    pub sent: Duration,
}

impl Outcome {
    /// Results for requests of this kind.
    fn of(&mut self, ask: Ask) -> &mut Heard {
        match ask {
            Ask::Report { .. } => &mut self.reports,
            Ask::Placement { .. } => &mut self.placements,
            Ask::Task { .. } => &mut self.tasks,
        }
    }
}

struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    heard: Vec<u8>,
    /// The request that waits for a response.
    asked: Option<Ask>,
    waiting: VecDeque<Ask>,
}

/// Deterministic pseudorandom numbers (Steele, Lea, Flood: splitmix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An exponential gap between independent events at `rate` per second.
    fn gap(&mut self, rate: u64) -> Duration {
        let share = ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        Duration::from_secs_f64(-share.ln() / rate as f64)
    }
}

/// All requests, in order of their due times.
fn asks(schedule: &Schedule<'_>) -> Vec<Ask> {
    let Schedule { agents, placements, tasks, length, .. } = *schedule;
    let (mut draws, mut kinds, until) = (Draws(1), Draws(3), FILLING + length);
    let (mut asks, mut last) = (Vec::new(), vec![Duration::ZERO; agents as usize]);
    let (mut due, mut count) = (Duration::ZERO, 0);
    while due < until {
        due += draws.gap(agents);
        // Consecutive reports come from distant hosts.
        let agent = count * 7_919 % agents;
        asks.push(Ask::Report { agent, from: last[agent as usize], due });
        (last[agent as usize], count) = (due, count + 1);
    }
    // Placements before the first reports would be rejected.
    due = FILLING / 2;
    while due < until {
        due += draws.gap(placements);
        let writer = draws.next() % agents;
        let is_task = kinds.next() % 100 < tasks;
        asks.push(if is_task {
            Ask::Task { job: writer % JOBS, due }
        } else {
            Ask::Placement { writer, due }
        });
    }
    asks.sort_by_key(|ask| ask.due());
    asks
}

struct Load<'a> {
    schedule: &'a Schedule<'a>,
    writer: Writer<'a>,
    began: Instant,
    connections: Vec<Connection>,
    /// Free connections for placements, and placements that wait for one. Each connection is used regularly, because
    /// the service closes a connection after 10 s without a request.
    free: VecDeque<usize>,
    waiting: VecDeque<Ask>,
    draws: Draws,
    under_way: u64,
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
        draws: Draws(2),
        under_way: 0,
        outcome: Outcome::default(),
    };
    let (mut asks, mut events) = (asks(schedule).into_iter().peekable(), Events::with_capacity(4_096));
    let (mut before, mut end) = (None, None);
    load.began = Instant::now();
    loop {
        let now = load.began.elapsed();
        while let Some(ask) = asks.next_if(|ask| ask.due() <= now) {
            load.due(ask);
        }
        if before.is_none() && now >= FILLING {
            before = Some((used(process), used(std::process::id())));
        }
        if asks.peek().is_none() {
            let end = *end.get_or_insert(now);
            if load.under_way == 0 || now > end + LAST_ANSWERS {
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
    let (served, sent) = before.unwrap_or_default();
    load.outcome.served = used(process).saturating_sub(served);
    load.outcome.sent = used(std::process::id()).saturating_sub(sent);
    load.outcome
}

fn connect(address: SocketAddr, at: usize, poll: &Poll) -> Connection {
    let stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).expect("a socket");
    let mut stream = TcpStream::from_std(stream);
    poll.registry()
        .register(&mut stream, Token(at), Interest::READABLE | Interest::WRITABLE)
        .expect("the system polls");
    let (out, heard, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
    Connection { stream, out, written: 0, heard, asked: None, waiting }
}

impl Load<'_> {
    fn due(&mut self, ask: Ask) {
        self.under_way += 1;
        match ask {
            Ask::Report { agent, .. } => {
                self.outcome.reports.asked += 1;
                self.outcome.reports.parts += self.writer.parts(agent);
                let at = agent as usize % self.schedule.connections.0;
                if self.connections[at].asked.is_some() {
                    self.connections[at].waiting.push_back(ask);
                } else {
                    self.send(at, ask);
                }
            }
            Ask::Placement { .. } | Ask::Task { .. } => {
                self.outcome.of(ask).asked += 1;
                match self.free.pop_front() {
                    Some(at) => self.send(at, ask),
                    None => self.waiting.push_back(ask),
                }
            }
        }
    }

    fn send(&mut self, at: usize, ask: Ask) {
        let connection = &mut self.connections[at];
        self.writer.write(ask, self.draws.next(), &mut connection.out);
        (connection.written, connection.asked) = (0, Some(ask));
        self.flush(at);
    }

    fn flush(&mut self, at: usize) {
        let Connection { stream, out, written, .. } = &mut self.connections[at];
        while *written < out.len() {
            match stream.write(&out[*written..]) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the service does not take it: {error}"),
            }
        }
    }

    /// Handles a readable or writable socket.
    fn ready(&mut self, at: usize) {
        self.flush(at);
        loop {
            let Connection { stream, heard, .. } = &mut self.connections[at];
            let known = heard.len();
            heard.resize(known + 8_192, 0);
            let read = stream.read(&mut heard[known..]);
            heard.truncate(known + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => panic!("the service closed a connection"),
                Ok(_) => {
                    while let Some((status, body)) = answer(&mut self.connections[at].heard) {
                        self.answered(at, status, &body);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the service does not answer: {error}"),
            }
        }
    }

    fn answered(&mut self, at: usize, status: u16, body: &[u8]) {
        let ask = self.connections[at].asked.take().expect("an answer to what was asked");
        self.under_way -= 1;
        let waited = self.began.elapsed().saturating_sub(ask.due());
        let is_report = matches!(ask, Ask::Report { .. });
        let heard = self.outcome.of(ask);
        if ask.due() < FILLING {
            heard.filled += 1;
        } else {
            heard.waits.push(waited.as_micros() as u64);
        }
        let next =
            if is_report { self.connections[at].waiting.pop_front() } else { self.waiting.pop_front() };
        if !(200..300).contains(&status) {
            heard.refused += 1;
        } else if is_report {
            let body: Value = serde_json::from_slice(body).expect("JSON");
            let count = |value: &Value| value.as_u64().expect("a count");
            heard.taken += count(&body["links"]) + count(&body["devices"]);
            heard.skipped += count(&body["skipped"]["stale"]) + count(&body["skipped"]["down"]);
        } else {
            heard.taken += 1;
        }
        match next {
            Some(next) => self.send(at, next),
            None if !is_report => self.free.push_back(at),
            None => {}
        }
    }
}

/// Removes one complete response from the received bytes and returns its status and body.
fn answer(heard: &mut Vec<u8>) -> Option<(u16, Vec<u8>)> {
    let head = heard.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&heard[..head]).expect("a head is text");
    let status = text.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let end = head + length.parse::<usize>().expect("a number");
    if heard.len() < end {
        return None;
    }
    let body = heard[head..end].to_vec();
    heard.drain(..end);
    Some((status, body))
}
