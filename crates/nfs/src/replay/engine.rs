//! The loop of a replay, on one thread: it sends requests at their times, and reads replies as they come.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use leeward_fabric::Nanos;
use leeward_traces::Kind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::ReplayStop;
use super::connection::Connection;
use super::outcome::{Outcome, Row, State};
use super::plan::Planned;
use super::settings::{MOST_PAYLOAD, ReplaySettings};
use super::volume::{Volume, read_count, status_name};
use crate::caller::own_credential;
use crate::calls::{NFS, READ, VERSION, WRITE};
use crate::clock::Clock;
use crate::rpc::{call, call_with_payload, results};
use crate::xdr::{Reader, Writer, XdrError};

/// Longest time of the connect.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two calls of the callback.
const TICK: Nanos = Nanos(200_000_000);
/// Bytes that are read from a connection at once.
const BUFFER: usize = 256 << 10;
/// Requests that may be open. A server that falls behind by more is no subject of a replay.
const MOST_OPEN: usize = 1 << 17;
/// Stability of writes: data and attributes are on the device before the reply (RFC 1813, section 3.3.7).
const FILE_SYNC: u32 = 2;
/// Bytes of a unit of XDR.
const UNIT: usize = 4;

/// A replay that runs.
pub(super) struct Engine<'a> {
    settings: &'a ReplaySettings,
    plan: &'a [Planned],
    handle: Vec<u8>,
    machine: &'a str,
    clock: Clock,
    start: Nanos,
    connections: Vec<Connection>,
    /// Requests without a reply, by the numbers of their calls.
    open: HashMap<u32, Row, RandomState>,
    /// Number of requests sent, and the time of the last one.
    sent: u64,
    last_sent: Nanos,
    /// Bytes of all writes.
    payload: Bytes,
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    /// Connects to the server. `start` is the time of the start of the plan, which is not empty, on this clock.
    ///
    /// # Errors
    /// An I/O error if the server does not accept a connection.
    pub fn new(
        settings: &'a ReplaySettings,
        plan: &'a [Planned],
        volume: &Volume,
        machine: &'a str,
        clock: Clock,
        start: Nanos,
    ) -> io::Result<Engine<'a>> {
        let connect = |_| Connection::connect(volume.server, settings.source, PATIENCE);
        Ok(Engine {
            settings,
            plan,
            machine,
            clock,
            start,
            connections: (0..settings.connections).map(connect).collect::<io::Result<_>>()?,
            handle: volume.handle.clone(),
            open: HashMap::with_hasher(RandomState::default()),
            sent: 0,
            last_sent: start,
            payload: Bytes::from(vec![0xa5; MOST_PAYLOAD as usize]),
            outcome: Outcome::new(settings.rows.is_some()),
        })
    }

    /// Sends all requests, and waits for their replies.
    ///
    /// # Errors
    /// Fails if a connection ends or the server falls far behind, and if `tick` stops the replay.
    pub fn run<E>(mut self, mut tick: impl FnMut(f64) -> Result<(), E>) -> Result<Outcome, ReplayStop<E>> {
        let mut buffer = vec![0; BUFFER];
        let mut next_tick = Nanos(0);
        loop {
            self.send_due()?;
            let now = self.clock.now();
            let is_over = now >= self.last_sent.plus(self.settings.patience);
            if self.is_sent(now) && (self.open.is_empty() || is_over) {
                break;
            }
            if now >= next_tick {
                next_tick = now.plus(TICK);
                tick(self.share(now)).map_err(ReplayStop::Stopped)?;
            }
            let wake = self.next_due(now).map_or(next_tick, |due| due.min(next_tick));
            for at in self.wait(wake.since(now))? {
                self.receive(at, &mut buffer)?;
            }
        }
        for (_, row) in self.open.drain() {
            self.outcome.add(row, None);
        }
        Ok(self.outcome)
    }

    /// Completed share of the replay.
    fn share(&self, now: Nanos) -> f64 {
        let passed = now.since(self.start).as_secs_f64();
        match (self.settings.closed, self.settings.duration) {
            (Some(_), Some(duration)) => (passed / duration.as_secs_f64()).min(1.0),
            _ => (self.sent as f64 / self.plan.len() as f64).min(1.0),
        }
    }

    /// True if all requests were sent.
    fn is_sent(&self, now: Nanos) -> bool {
        match (self.settings.closed, self.settings.duration) {
            (Some(_), Some(duration)) => now >= self.start.plus(duration),
            _ => self.sent >= self.plan.len() as u64,
        }
    }

    /// Time at which the next request is due; `None` if it waits for a reply, or if there is none. A closed loop sends
    /// a request as soon as fewer than its number are open.
    fn next_due(&self, now: Nanos) -> Option<Nanos> {
        if self.is_sent(now) {
            return None;
        }
        match self.settings.closed {
            Some(open) => (self.open.len() < open as usize).then(|| self.start.max(now)),
            None => Some(self.start.plus(self.planned().at)),
        }
    }

    /// The next request. A closed loop repeats the plan.
    fn planned(&self) -> Planned {
        self.plan[(self.sent % self.plan.len() as u64) as usize]
    }

    /// Sends all requests whose time has come.
    fn send_due(&mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            let Some(due) = self.next_due(now).filter(|&due| due <= now) else { break };
            if self.open.len() >= MOST_OPEN {
                let problem = format!("the server is too slow for this trace: {MOST_OPEN} requests are open");
                return Err(io::Error::other(problem));
            }
            let planned = self.planned();
            self.send(planned);
            self.open.insert(self.number(), Row::sent(planned, due.since(self.start), now.since(due)));
            self.outcome.open(self.open.len());
            (self.sent, self.last_sent) = (self.sent + 1, now);
        }
        self.connections.iter_mut().try_for_each(Connection::flush)
    }

    /// Number of the next call.
    fn number(&self) -> u32 {
        self.sent as u32
    }

    /// Hands a call to its connection.
    fn send(&mut self, planned: Planned) {
        let Planned { kind, size, offset, .. } = planned;
        let user = own_credential(self.machine);
        let place = Writer::new().opaque(&self.handle).u64(offset).u32(size);
        let number = self.number();
        let at = (self.sent % self.connections.len() as u64) as usize;
        let connection = &mut self.connections[at];
        match kind {
            Kind::Read => {
                let call = call(number, [NFS, VERSION, READ], user, &place.into_bytes());
                connection.push(Bytes::from(call));
            }
            Kind::Write => {
                // The length of the data is the last argument before it.
                let arguments = place.u32(FILE_SYNC).u32(size).into_bytes();
                let (size, padding) = (size as usize, (UNIT - size as usize % UNIT) % UNIT);
                let numbers = [NFS, VERSION, WRITE];
                let head = call_with_payload(number, numbers, user, &arguments, size + padding);
                connection.push(Bytes::from(head));
                connection.push(self.payload.slice(..size));
                if padding > 0 {
                    connection.push(Bytes::from_static(&[0; UNIT]).slice(..padding));
                }
            }
        }
    }

    /// Waits for a connection, for at most a time. Returns the connections with something to read.
    fn wait(&self, time: Nanos) -> io::Result<Vec<usize>> {
        let flags = |connection: &Connection| {
            if connection.waits() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        };
        let polled = self.connections.iter().map(|connection| PollFd::new(connection, flags(connection)));
        let mut connections: Vec<PollFd<'_>> = polled.collect();
        let second = Nanos::SECOND.0;
        let timeout = Timespec { tv_sec: (time.0 / second) as i64, tv_nsec: (time.0 % second) as _ };
        match poll(&mut connections, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        // Errors and ends of a connection are something to read as well.
        let readable = |(at, connection): (usize, &PollFd<'_>)| {
            (!(connection.revents() - PollFlags::OUT).is_empty()).then_some(at)
        };
        Ok(connections.iter().enumerate().filter_map(readable).collect())
    }

    /// Reads what a connection has, and ends the requests whose replies are whole.
    fn receive(&mut self, at: usize, buffer: &mut [u8]) -> io::Result<()> {
        let connection = &mut self.connections[at];
        let length = connection.read(buffer)?;
        let now = self.clock.now();
        let mut bytes = &buffer[..length];
        let broken = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        let replies = connection.replies();
        while let Some(head) = replies.take(&mut bytes).map_err(|error| broken(error.to_string()))? {
            let number = Reader::new(&head).u32().map_err(|error| broken(error.to_string()))?;
            let Some(row) = self.open.remove(&number) else {
                return Err(broken("a reply to no call".to_owned()));
            };
            let (state, problem) = match answer(&head, number, &row) {
                Ok(state) => (state, None),
                Err(problem) => (State::Failed, Some(problem)),
            };
            let latency = now.since(self.start.plus(row.due));
            self.outcome.add(Row { latency: Some(latency), state, ..row }, problem);
        }
        Ok(())
    }
}

/// State of a request by its reply, or the reason of its failure.
fn answer(head: &[u8], number: u32, row: &Row) -> Result<State, String> {
    let results = results(head, number).map_err(|error| error.to_string())?;
    let broken = |error: XdrError| format!("a broken answer: {error}");
    let mut reader = Reader::new(results);
    match reader.u32().map_err(broken)? {
        0 => {}
        status => return Err(status_name(status)),
    }
    let is_short = row.kind == Kind::Read && read_count(&mut reader).map_err(broken)? < row.size;
    Ok(if is_short { State::Short } else { State::Done })
}
