//! Packets of connections: what hosts send and receive.

use leeward_circuits::timers::NEVER;
use leeward_fabric::Nanos;
use leeward_tcp::{Ack, Segment};

use super::{Simulator, SimulatorError, deadline};
use crate::event::Event;
use crate::network::{Packet, Payload};

impl Simulator<'_> {
    /// A packet arrives at its next port, or at its host.
    #[inline]
    pub(super) fn arrive(&mut self, number: u32) -> Result<(), SimulatorError> {
        let left = self.network.left_host(number);
        if let Some(packet) = self.network.arrive(self.now, number, &mut self.agenda) {
            match packet.payload {
                Payload::Data(segment) => self.take_data(packet.connection, &segment)?,
                Payload::Ack(ack) => self.take_ack(packet.connection, &ack),
            }
        }
        if let Some((sender, bytes)) = left {
            let connection = self.connections.get(sender);
            connection.in_host = connection.in_host.saturating_sub(u64::from(bytes));
            if connection.is_held {
                self.pump(sender);
            }
        }
        Ok(())
    }

    /// A segment arrives. If it completes a message, the message's call goes on.
    fn take_data(&mut self, number: u32, segment: &Segment) -> Result<(), SimulatorError> {
        self.records.data_packets += 1;
        let connection = self.connections.get(number);
        let before = connection.receiver.delivered();
        let ack = connection.receiver.on_segment(Nanos(self.now), segment);
        let is_complete = connection.receiver.delivered() > before && connection.is_delivered();
        if let Some(ack) = ack {
            self.send_ack(number, ack);
        }
        self.arm(number);
        if is_complete { self.message_arrives(number) } else { Ok(()) }
    }

    fn take_ack(&mut self, number: u32, ack: &Ack) {
        self.records.ack_packets += 1;
        self.connections.get(number).sender.on_ack(Nanos(self.now), ack);
        self.pump(number);
    }

    /// Writes a message to a connection.
    pub(super) fn write(&mut self, number: u32, bytes: u64) {
        self.connections.get(number).sender.write(bytes);
        self.pump(number);
    }

    /// Sends all segments that a sender may send.
    fn pump(&mut self, number: u32) {
        let connection = self.connections.get(number);
        loop {
            connection.is_held = connection.in_host >= self.plan.host_limit;
            if connection.is_held {
                connection.sender.hold_back();
                break;
            }
            let Some(segment) = connection.sender.next_segment(Nanos(self.now)) else { break };
            connection.in_host += u64::from(segment.wire_bytes());
            let packet = Packet::new(Payload::Data(segment), number, connection.class, connection.there);
            self.network.send(self.now, packet, &mut self.agenda);
        }
        self.arm(number);
    }

    fn send_ack(&mut self, number: u32, ack: Ack) {
        let connection = self.connections.get(number);
        let packet = Packet::new(Payload::Ack(ack), number, connection.class, connection.back);
        self.network.send(self.now, packet, &mut self.agenda);
    }

    /// Checks the timers of a sender.
    pub(super) fn check_sender(&mut self, number: u32) {
        let connection = self.connections.get(number);
        if connection.sender_check != self.now {
            return;
        }
        connection.sender_check = NEVER;
        connection.sender.on_timer(Nanos(self.now));
        self.pump(number);
    }

    /// Checks the timer of a receiver.
    pub(super) fn check_receiver(&mut self, number: u32) {
        let connection = self.connections.get(number);
        if connection.receiver_check != self.now {
            return;
        }
        connection.receiver_check = NEVER;
        if let Some(ack) = connection.receiver.on_timer(Nanos(self.now)) {
            self.send_ack(number, ack);
        }
        self.arm(number);
    }

    /// Schedules checks of a connection's timers in time for their deadlines.
    #[inline]
    fn arm(&mut self, number: u32) {
        let connection = self.connections.get(number);
        let sender = deadline(connection.sender.deadline()).max(self.now);
        if sender < connection.sender_check {
            connection.sender_check = sender;
            self.agenda.push(sender, Event::Sender(number));
        }
        let receiver = deadline(connection.receiver.deadline()).max(self.now);
        if receiver < connection.receiver_check {
            connection.receiver_check = receiver;
            self.agenda.push(receiver, Event::Receiver(number));
        }
    }
}
