//! Both ends of a flow: application writes, sender, receiver, and their timers.

use leeward_circuits::switch::{self, Packet};
use leeward_circuits::timers::NEVER;
use leeward_fabric::Nanos;
use leeward_tcp::{self as tcp, Ack, Receiver, Segment, Sender};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{HOSTS, Simulator, SimulatorError, Timer};
use crate::hosts::{Nic, Payload};
use crate::settings::{Settings, SettingsError};
use crate::workload::{Flow as WorkloadFlow, Place};

/// Both ends of a flow.
pub(super) struct Connection {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) source_rack: u32,
    pub(super) destination_rack: u32,
    pub(super) closed: bool,
    /// Bytes of the flow in its host's NIC. `held` is true if more bytes wait for them to leave.
    pub(super) in_nic: u64,
    pub(super) held: bool,
    /// Times at which the heap next checks the timers of the sender and the receiver. If the deadline is later by then,
    /// another check follows.
    pub(super) sender_armed: u64,
    pub(super) receiver_armed: u64,
}

pub(super) enum Flow {
    Coming,
    Live(Box<Connection>),
    Done,
}

impl Simulator<'_> {
    /// An application writes a piece.
    pub(super) fn write(&mut self, piece: u32) -> Result<(), SimulatorError> {
        let written = self.driver.write(piece);
        let flow = written.flow as usize;
        if written.opens {
            self.begin(flow)?;
        }
        let Flow::Live(connection) = &mut self.flows[flow] else { return Ok(()) };
        connection.sender.write(written.bytes);
        if written.closes {
            connection.sender.close();
            connection.closed = true;
        }
        if let Some(adus) = self.adus.as_mut().filter(|_| connection.crosses()) {
            adus.write(flow, written.bytes)?;
        }
        self.pump(written.flow);
        Ok(())
    }

    /// Starts a flow.
    pub(super) fn begin(&mut self, flow: usize) -> Result<(), SimulatorError> {
        self.begin_block(flow as u32)?;
        let WorkloadFlow { source, destination, .. } = self.driver.workload().flows()[flow];
        let host = |place: Place| self.settings.number(place) as u32;
        let mut connection = Box::new(Connection {
            sender: Sender::new(self.settings.tcp).map_err(SettingsError::from)?,
            receiver: Receiver::new(&self.settings.tcp).map_err(SettingsError::from)?,
            source: host(source),
            destination: host(destination),
            source_rack: source.rack,
            destination_rack: destination.rack,
            closed: false,
            in_nic: 0,
            held: false,
            sender_armed: NEVER,
            receiver_armed: NEVER,
        });
        let (source, destination) = (source.rack as usize, destination.rack as usize);
        let division = u8::from(self.switch.has_circuit(source, destination));
        connection.sender.set_division(division);
        connection.receiver.set_division(division);
        if let Some(adus) = self.adus.as_mut().filter(|_| connection.crosses()) {
            adus.open(flow, source, destination)?;
        }
        self.flows[flow] = Flow::Live(connection);
        self.of_pair[source * self.settings.switch.racks + destination].push(flow as u32);
        self.records.flows[flow].began = Some(Nanos(self.now));
        if let Some(time) = self.settings.give_up {
            self.schedule(self.now.saturating_add(time.0), Timer::GiveUp(flow as u32));
        }
        Ok(())
    }

    /// Abandons a flow at the end of its time limit.
    pub(super) fn give_up(&mut self, flow: u32) {
        if matches!(self.flows[flow as usize], Flow::Live(_)) {
            self.driver.give_up(flow);
            self.forget(flow);
        }
    }

    /// Ends a flow if the sender knows that all bytes have arrived.
    pub(super) fn end_if_done(&mut self, flow: u32) {
        let Flow::Live(connection) = &self.flows[flow as usize] else { return };
        if connection.sender.is_finished() {
            self.forget(flow);
        }
    }

    fn forget(&mut self, flow: u32) {
        let Flow::Live(connection) = &self.flows[flow as usize] else { return };
        let racks = self.settings.switch.racks;
        let pair = connection.source_rack as usize * racks + connection.destination_rack as usize;
        self.of_pair[pair].retain(|&other| other != flow);
        self.record_flow(flow as usize);
        self.flows[flow as usize] = Flow::Done;
        if let Some(adus) = &mut self.adus {
            adus.close(flow as usize);
        }
    }

    pub(super) fn record_flow(&mut self, flow: usize) {
        let Flow::Live(connection) = &self.flows[flow] else { return };
        let record = &mut self.records.flows[flow];
        let counts = connection.sender.counts();
        record.written = connection.sender.written();
        record.delivered = connection.receiver.delivered();
        (record.segments, record.retransmitted, record.timeouts) =
            (counts.segments, counts.retransmitted, counts.timeouts);
    }

    pub(super) fn take_data(&mut self, flow: u32, segment: &Segment) -> Result<(), SimulatorError> {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return Ok(()) };
        let before = connection.receiver.delivered();
        let ack = connection.receiver.on_segment(Nanos(self.now), segment);
        let after = connection.receiver.delivered();
        let done = connection.closed && after == connection.sender.written();
        if after > before {
            let racks = self.settings.switch.racks;
            let pair = connection.source_rack as usize * racks + connection.destination_rack as usize;
            self.arrived[pair] += after - before;
        }
        if let Some(ack) = ack {
            self.send_ack(flow, ack);
        }
        self.arm(flow);
        if after == before {
            return Ok(());
        }
        let now = Nanos(self.now);
        if done {
            self.records.flows[flow as usize].finished.get_or_insert(now);
            self.end_block(flow);
        }
        let mut due = std::mem::take(&mut self.due);
        self.driver.arrive(now, flow, after, &mut due);
        for (at, piece) in due.drain(..) {
            self.schedule(at.0, Timer::Piece(piece));
        }
        self.due = due;
        Ok(())
    }

    pub(super) fn take_ack(&mut self, flow: u32, ack: &Ack) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        connection.sender.on_ack(Nanos(self.now), ack);
        self.pump(flow);
        self.end_if_done(flow);
    }

    /// Sends all segments that a sender may send.
    pub(super) fn pump(&mut self, flow: u32) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        let host = connection.source as usize;
        let limit = self.settings.nic_limit.unwrap_or(u64::MAX);
        loop {
            connection.held = connection.in_nic >= limit;
            if connection.held {
                connection.sender.hold_back();
                break;
            }
            let Some(segment) = connection.sender.next_segment(Nanos(self.now)) else { break };
            connection.in_nic += u64::from(segment.wire_bytes());
            let packet = Packet {
                payload: Payload::Data { flow, segment },
                source: connection.source_rack,
                destination: connection.destination_rack,
                bytes: segment.wire_bytes(),
                ecn: match segment.ecn {
                    tcp::Ecn::No => switch::Ecn::Incapable,
                    tcp::Ecn::Capable => switch::Ecn::Capable,
                    tcp::Ecn::Marked => switch::Ecn::Congested,
                },
                entered: Nanos(0),
            };
            let begin = start_time(&mut self.random, &self.settings, &self.nics[host], self.now);
            if let Some(at) = self.nics[host].push(packet, begin) {
                self.timers.set(HOSTS + host, at);
            }
        }
        self.arm(flow);
    }

    /// Sends an acknowledgement of a receiver.
    pub(super) fn send_ack(&mut self, flow: u32, ack: Ack) {
        let Flow::Live(connection) = &self.flows[flow as usize] else { return };
        let host = connection.destination as usize;
        let packet = Packet {
            payload: Payload::Ack { flow, ack },
            source: connection.destination_rack,
            destination: connection.source_rack,
            bytes: ack.wire_bytes(),
            ecn: switch::Ecn::Incapable,
            entered: Nanos(0),
        };
        let begin = start_time(&mut self.random, &self.settings, &self.nics[host], self.now);
        if let Some(at) = self.nics[host].push(packet, begin) {
            self.timers.set(HOSTS + host, at);
        }
    }

    /// Schedules a check of a flow's timers in time for their deadlines.
    #[inline]
    pub(super) fn arm(&mut self, flow: u32) {
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        let sender = connection.sender.deadline().map_or(NEVER, |at| at.0);
        let receiver = connection.receiver.deadline().map_or(NEVER, |at| at.0);
        let sooner = (sender < connection.sender_armed, receiver < connection.receiver_armed);
        if sooner.0 {
            connection.sender_armed = sender;
        }
        if sooner.1 {
            connection.receiver_armed = receiver;
        }
        if sooner.0 {
            self.schedule(sender, Timer::Sender(flow));
        }
        if sooner.1 {
            self.schedule(receiver, Timer::Receiver(flow));
        }
    }
}

impl Connection {
    /// Returns true if the flow is between racks.
    fn crosses(&self) -> bool {
        self.source_rack != self.destination_rack
    }
}

/// Returns the time at which a host starts to send a packet: with jitter if its NIC is idle.
#[inline]
pub(super) fn start_time(random: &mut ChaCha8Rng, settings: &Settings, nic: &Nic, now: u64) -> u64 {
    match settings.jitter {
        Nanos(most) if most > 0 && nic.is_idle() => now + random.random_range(0..=most),
        _ => now,
    }
}
