//! An open loop on one thread: requests are due at times that were drawn beforehand, and each is sent when it is due and
//! its connection is free.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::Value;

use crate::process::used;
use crate::requests::{Ask, Tokens, Writer};

/// How long the last answers are waited for.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long it sleeps when there is nothing to do.
const NAP: Duration = Duration::from_micros(20);
/// Before anything is measured every agent reports, and for as long placements are sent too.
const FILLING: Duration = Duration::from_secs(2);

/// Jobs that tasks are of.
const JOBS: u64 = 100;

/// What is sent.
pub struct Schedule<'a> {
    /// Agents, each of which reports once a second.
    pub agents: u64,
    pub racks: u64,
    /// Placements a second.
    pub placements: u64,
    /// Of a hundred of these, how many are of a task and not of a block.
    pub tasks: u64,
    /// What requests carry.
    pub tokens: Option<&'a Tokens>,
    /// For reports, and for placements.
    pub connections: (usize, usize),
    /// For how long it is measured.
    pub length: Duration,
}

/// What came of requests of a kind.
#[derive(Default)]
pub struct Heard {
    pub asked: u64,
    /// Answers before it was measured.
    pub filled: u64,
    /// From when a request was due until its answer was there, in microseconds.
    pub waits: Vec<u64>,
    /// Links and devices that were sent.
    pub parts: u64,
    /// Of those the ones that were taken in, and that were told to be passed over; or placements that were made.
    pub taken: u64,
    pub skipped: u64,
    /// Answers that were problems.
    pub refused: u64,
}

/// What came of all of them.
#[derive(Default)]
pub struct Outcome {
    pub reports: Heard,
    pub placements: Heard,
    pub tasks: Heard,
    /// What the service and the load used of their cores while it was measured.
    pub served: Duration,
    pub sent: Duration,
}

impl Outcome {
    /// What came of requests like this one.
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
    /// What is answered next.
    asked: Option<Ask>,
    waiting: VecDeque<Ask>,
}

/// Numbers that are as good as random, and the same in every run (Steele, Lea, Flood: splitmix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The time between two events of which so many come in a second, each on its own.
    fn gap(&mut self, rate: u64) -> Duration {
        let share = ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        Duration::from_secs_f64(-share.ln() / rate as f64)
    }
}

/// All requests in the order in which they are due.
fn asks(schedule: &Schedule<'_>) -> Vec<Ask> {
    let Schedule { agents, placements, tasks, length, .. } = *schedule;
    let (mut draws, mut kinds, until) = (Draws(1), Draws(3), FILLING + length);
    let (mut asks, mut last) = (Vec::new(), vec![Duration::ZERO; agents as usize]);
    let (mut due, mut count) = (Duration::ZERO, 0);
    while due < until {
        due += draws.gap(agents);
        // Neighbours do not report one after the other.
        let agent = count * 7_919 % agents;
        asks.push(Ask::Report { agent, from: last[agent as usize], due });
        (last[agent as usize], count) = (due, count + 1);
    }
    // Who places before anybody has reported is refused.
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
    /// Connections for placements that are free, and placements for which none was. They take turns: a service closes one over
    /// which nothing was asked in 10 s.
    free: VecDeque<usize>,
    waiting: VecDeque<Ask>,
    draws: Draws,
    under_way: u64,
    outcome: Outcome,
}

/// Sends all that is due, and says what came of it.
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
            // To wait in the poll would be to wait for a millisecond; never to sleep, to lose the core to others.
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
    let stream = std::net::TcpStream::connect(address).expect("it listens");
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

    /// Something can be read or written.
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

/// Takes a whole answer off what was heard: its status, and its body.
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
