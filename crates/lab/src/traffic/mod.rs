//! Traffic of a workload: its flows on sockets of the hosts' kernels.
//!
//! [`leeward_packets::workload::Driver`] decides what is written when, as in the simulator. Flows connect before the
//! workload begins, as those of Etalon's flowgrind do; flows of a block connect when it begins, because its hosts are
//! chosen then.

mod blocks;
mod connections;
mod sockets;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::TcpStream;

use leeward_fabric::Nanos;
use leeward_packets::workload::{Driver, Place};
use leeward_packets::{BlockRecord, FlowRecord, Records};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::clock::{Clock, real_now};
use crate::error::LabError;
use crate::frame::Tuple;
use crate::names::LabName;
use crate::precedence::Precedence;
use crate::switch::{Progress, Shared};
use sockets::Sockets;

/// Bytes that one call writes or discards at most, so that all flows have their turn.
const CHUNK: usize = 256 << 10;
/// Longest real wait, in nanoseconds, so that a stop is noticed.
const LONGEST_WAIT: u64 = 20_000_000;
/// Longest real wait if the demand is that of sockets, in nanoseconds: so old is what the estimate knows.
const REFRESH: u64 = 1_000_000;
/// Real time within which all flows must have connected, in nanoseconds.
const CONNECT_TIME: u64 = 60_000_000_000;
/// Real time from the last connection to the begin of the workload, in nanoseconds.
const PAUSE: u64 = 20_000_000;
/// Virtual time in which the last packets of the connections' openings reach their hosts, in nanoseconds.
const TRANSITS: u64 = 1_000_000;
/// Kinds of descriptors that are waited for, in the low bits of their data.
const KINDS: u64 = 3;
const SENDER: u64 = 0;
const RECEIVER: u64 = 1;
const LISTENER: u64 = 2;

/// An event of the workload, in the order of simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Piece(u32),
    GiveUp(u32),
}

/// Ends of a flow.
#[derive(Default)]
struct Connection {
    sender: Option<TcpStream>,
    receiver: Option<TcpStream>,
    /// Bytes that the application has written and the socket has not taken.
    backlog: u64,
    written: u64,
    delivered: u64,
    /// True if the application writes nothing more.
    is_closed: bool,
    /// Ends of the connection, as its packets have them.
    tuple: Option<Tuple>,
    /// True after the last byte has arrived, or the flow was abandoned.
    is_over: bool,
}

/// Traffic of a workload.
pub(crate) struct Traffic<'a> {
    settings: &'a leeward_packets::Settings,
    shared: &'a Shared,
    clock: Clock,
    driver: Driver,
    sockets: Sockets<'a>,
    poll: OwnedFd,
    flows: Vec<Connection>,
    later: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    sequence: u64,
    due: Vec<(Nanos, u32)>,
    began: Nanos,
    zeros: Vec<u8>,
    records: Records,
}

impl<'a> Traffic<'a> {
    /// Opens listeners on all hosts, and connects the flows that do not belong to blocks.
    pub(crate) fn new(
        settings: &'a leeward_packets::Settings,
        shared: &'a Shared,
        clock: Clock,
        driver: Driver,
        name: &'a LabName,
        places: &[Place],
        control: &'a str,
    ) -> Result<Traffic<'a>, LabError> {
        let workload = driver.workload();
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        let records = Records {
            flows: workload.flows().iter().map(FlowRecord::of).collect(),
            blocks: workload.blocks().iter().map(BlockRecord::of).collect(),
            ..Records::default()
        };
        *shared.flows() = workload
            .flows()
            .iter()
            .map(|flow| Progress {
                source: flow.source.rack as usize,
                destination: flow.destination.rack as usize,
                written: 0,
                acknowledged: 0,
                delivered: 0,
            })
            .collect();
        let sockets = Sockets::new(name, places, control)?;
        for (host, listener) in sockets.listeners.iter().enumerate() {
            let data = EventData::new_u64(host as u64 * KINDS + LISTENER);
            epoll::add(&poll, listener, data, EventFlags::IN).map_err(failed)?;
        }
        Ok(Traffic {
            settings,
            shared,
            clock,
            sockets,
            poll,
            flows: workload.flows().iter().map(|_| Connection::default()).collect(),
            driver,
            later: BinaryHeap::new(),
            sequence: 0,
            due: Vec::new(),
            began: Nanos(0),
            zeros: vec![0; CHUNK],
            records,
        })
    }

    /// Connects the flows, begins the workload, and runs it until its end, the horizon, or a stop. Returns the records of
    /// flows and blocks, and the virtual time at which the run ended.
    pub(crate) fn run(mut self, horizon: Nanos) -> Result<(Records, Nanos), LabError> {
        self.connect_all()?;
        let pause = (PAUSE / u64::from(self.clock.dilation())).max(TRANSITS);
        self.began = self.clock.now().plus(Nanos(pause));
        for (at, piece) in self.driver.first() {
            self.schedule(self.began.plus(at).0, Timer::Piece(piece));
        }
        self.shared.begin_at(self.began);
        let end = self.began.plus(horizon);
        let mut is_first = true;
        let mut precedence = Precedence::take();
        while !self.shared.is_stopped() {
            let real = real_now();
            precedence.keep(real);
            let now = self.clock.at(real);
            if now >= end || self.driver.is_finished() {
                break;
            }
            while let Some(&Reverse((at, _, timer))) = self.later.peek()
                && at <= now.0
            {
                self.later.pop();
                self.handle_timer(timer, Nanos(at))?;
            }
            if is_first && now >= self.began {
                self.shared.set_written();
                is_first = false;
            }
            if self.shared.needs_acknowledged() {
                self.read_acknowledged();
            }
            let next = self.later.peek().map_or(end, |&Reverse((at, ..))| end.min(Nanos(at)));
            let longest = if self.shared.needs_acknowledged() { REFRESH } else { LONGEST_WAIT };
            self.poll(self.clock.until(next).min(longest))?;
        }
        let ended = self.clock.now().min(end).since(self.began);
        for flow in 0..self.flows.len() {
            self.record(flow);
        }
        Ok((std::mem::take(&mut self.records), ended))
    }

    fn schedule(&mut self, at: u64, timer: Timer) {
        self.sequence += 1;
        self.later.push(Reverse((at, self.sequence, timer)));
    }

    /// Virtual time since the begin of the workload.
    fn now(&self) -> Nanos {
        self.clock.now().since(self.began)
    }

    /// Reads the acknowledged bytes of all open flows.
    fn read_acknowledged(&mut self) {
        let mut progress = self.shared.flows();
        for (flow, connection) in self.flows.iter().enumerate() {
            if let Some(stream) = &connection.sender {
                progress[flow].acknowledged = sockets::counters(stream).acknowledged;
            }
        }
    }

    fn handle_timer(&mut self, timer: Timer, at: Nanos) -> Result<(), LabError> {
        match timer {
            Timer::Piece(piece) => self.write(piece, at),
            Timer::GiveUp(flow) => {
                if let Some(sender) = &self.flows[flow as usize].sender {
                    sockets::discard_at_close(sender);
                    self.driver.give_up(flow);
                    self.forget(flow as usize);
                }
                Ok(())
            }
        }
    }

    /// An application writes a piece.
    fn write(&mut self, piece: u32, at: Nanos) -> Result<(), LabError> {
        let write = self.driver.write(piece);
        let flow = write.flow as usize;
        if self.flows[flow].is_over {
            return Ok(());
        }
        if write.opens {
            self.begin_block(write.flow)?;
            self.records.flows[flow].began = Some(at.since(self.began));
            if self.flows[flow].sender.is_none() {
                self.connect(write.flow)?;
            }
            if let Some(time) = self.settings.give_up {
                self.schedule(at.plus(time).0, Timer::GiveUp(write.flow));
            }
        }
        let connection = &mut self.flows[flow];
        connection.backlog += write.bytes;
        connection.written += write.bytes;
        connection.is_closed |= write.closes;
        self.shared.flows()[flow].written = connection.written;
        self.report_written(flow);
        self.send(flow)
    }

    /// Reports the bytes that an application has written to the estimate of demand.
    fn report_written(&mut self, flow: usize) {
        let connection = &self.flows[flow];
        if let (Some(mut adus), Some(tuple)) = (self.shared.adus(), connection.tuple) {
            adus.written(tuple, connection.written);
        }
    }

    /// Passes the backlog of a flow to its socket.
    fn send(&mut self, flow: usize) -> Result<(), LabError> {
        let connection = &mut self.flows[flow];
        let Some(stream) = &connection.sender else { return Ok(()) };
        if connection.backlog > 0 {
            let size = connection.backlog.min(self.zeros.len() as u64) as usize;
            match sockets::send(stream, &self.zeros[..size]) {
                Ok(taken) => connection.backlog -= taken as u64,
                Err(error) => return Err(self.broken(flow, error)),
            }
        }
        let wanted = if connection.backlog > 0 { EventFlags::OUT } else { EventFlags::empty() };
        let data = EventData::new_u64(flow as u64 * KINDS + SENDER);
        epoll::modify(&self.poll, stream, data, wanted).map_err(failed)
    }

    /// Takes the bytes that have arrived at a flow's receiver.
    fn receive(&mut self, flow: usize) -> Result<(), LabError> {
        let connection = &mut self.flows[flow];
        let Some(stream) = &connection.receiver else { return Ok(()) };
        let bytes = match sockets::receive(stream, &mut self.zeros) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) => return Err(self.broken(flow, error)),
        };
        connection.delivered += bytes as u64;
        let (delivered, written) = (connection.delivered, connection.written);
        let is_done = connection.is_closed && delivered == written;
        self.shared.flows()[flow].delivered = delivered;
        let ends = self.records.flows[flow].flow;
        let pair = ends.source.rack as usize * self.settings.switch.racks + ends.destination.rack as usize;
        self.shared.add_arrived(pair, bytes as u64);
        let now = self.now();
        if is_done {
            self.records.flows[flow].finished = Some(now);
            self.end_block(flow as u32, now);
            self.forget(flow);
        }
        let mut due = std::mem::take(&mut self.due);
        self.driver.arrive(now, flow as u32, delivered, &mut due);
        for (at, piece) in due.drain(..) {
            self.schedule(self.began.plus(at).0, Timer::Piece(piece));
        }
        self.due = due;
        Ok(())
    }

    /// Closes a flow.
    fn forget(&mut self, flow: usize) {
        self.record(flow);
        let connection = &mut self.flows[flow];
        connection.is_over = true;
        if let (Some(mut adus), Some(tuple)) = (self.shared.adus(), connection.tuple) {
            adus.closed(tuple);
        }
        // A flow that is over is no demand.
        let progress = &mut self.shared.flows()[flow];
        (progress.acknowledged, progress.delivered) = (progress.written, progress.written);
        (connection.sender, connection.receiver) = (None, None);
    }

    fn record(&mut self, flow: usize) {
        let connection = &self.flows[flow];
        let record = &mut self.records.flows[flow];
        record.written = connection.written;
        record.delivered = connection.delivered;
        if let Some(stream) = &connection.sender {
            let counters = sockets::counters(stream);
            (record.segments, record.retransmitted) = (counters.segments, counters.retransmitted);
        }
    }
}

impl Drop for Traffic<'_> {
    fn drop(&mut self) {
        self.flows.iter().filter_map(|flow| flow.sender.as_ref()).for_each(sockets::discard_at_close);
    }
}

fn failed(error: Errno) -> LabError {
    LabError::system("epoll")(error.into())
}

/// Checks that the kernel's sockets can run a workload.
pub(crate) fn check(driver: &Driver) -> Result<(), LabError> {
    let workload = driver.workload();
    if !workload.trains().is_empty() {
        let problem = "the lab runs flows: expected `workload` only".to_owned();
        return Err(LabError::Unsupported { field: "trains", problem });
    }
    Ok(())
}
