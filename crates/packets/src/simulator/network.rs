//! Packets between hosts and the switch, and circuits that come up and go down.

use leeward_circuits::switch::{self, Event, Full, Output, Packet, Via};
use leeward_circuits::timers::NEVER;
use leeward_fabric::Nanos;
use leeward_tcp as tcp;

use super::connections::Flow;
use super::{HOSTS, Simulator, SimulatorError};
use crate::hosts::Payload;
use crate::records::DayRecord;

impl Simulator<'_> {
    /// A packet has left a host's NIC.
    #[inline]
    pub(super) fn depart(&mut self, host: usize) -> Result<(), SimulatorError> {
        let Some((packet, next)) = self.nics[host].pop(self.now) else { return Ok(()) };
        self.timers.set(HOSTS + host, next.unwrap_or(NEVER));
        self.records.sent.add(packet.bytes);
        if packet.source == packet.destination {
            self.records.local.add(packet.bytes);
            self.leave_nic(&packet);
            self.arrive(packet, false)?;
            self.set_alarms();
            return Ok(());
        }
        self.switch.step(Nanos(self.now), Event::Arrive(packet), &mut self.out)?;
        if let (Some(adus), Payload::Data { flow, segment }) = (&mut self.adus, packet.payload) {
            // The output for a dropped packet is the last one.
            if !matches!(self.out.last(), Some(Output::Drop { by: Full::Voq, .. })) {
                adus.seen(flow as usize, segment.end());
            }
        }
        if !self.out.is_empty() {
            self.handle_outputs()?;
        }
        self.leave_nic(&packet);
        self.set_alarms();
        Ok(())
    }

    /// A packet has left its host's NIC: its connection or its train may have more to send.
    #[inline]
    fn leave_nic(&mut self, packet: &Packet<Payload>) {
        let flow = match packet.payload {
            Payload::Data { flow, .. } => flow,
            Payload::Ack { .. } => return,
            Payload::Train { train, .. } => return self.leave_train(train, packet.bytes),
        };
        let Flow::Live(connection) = &mut self.flows[flow as usize] else { return };
        connection.in_nic -= u64::from(packet.bytes);
        if connection.held {
            self.pump(flow);
        }
    }

    /// Handles the output of the switch.
    pub(super) fn handle_outputs(&mut self) -> Result<(), SimulatorError> {
        let mut out = std::mem::take(&mut self.out);
        for output in out.drain(..) {
            match output {
                Output::Deliver { packet, at, via, hops, circuit_mark } => {
                    self.records.hops[usize::from(hops) - 1].add(packet.bytes);
                    self.records.delivered[via as usize].add(packet.bytes);
                    if !matches!(packet.payload, Payload::Ack { .. }) {
                        self.records.latency[via as usize].add(at.since(packet.entered));
                    }
                    self.arrive(packet, circuit_mark)?;
                }
                Output::Drop { packet, .. } => {
                    self.records.dropped.add(packet.bytes);
                    if let Payload::Train { train, .. } = packet.payload {
                        self.count_train_packet(train);
                    }
                }
                Output::Circuit { source, destination, up, at } => {
                    self.change_circuit(source as usize, destination as usize, up, at)?;
                }
            }
        }
        self.out = out;
        Ok(())
    }

    /// A packet arrives at its host.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        packet: Packet<Payload>,
        circuit_mark: bool,
    ) -> Result<(), SimulatorError> {
        match packet.payload {
            Payload::Data { flow, mut segment } => {
                if packet.ecn == switch::Ecn::Congested {
                    segment.ecn = tcp::Ecn::Marked;
                }
                self.records.data_packets += 1;
                self.take_data(flow, &segment)
            }
            Payload::Ack { flow, mut ack } => {
                // The mark adds to the receiver's echo; with reTCP nothing else sets the bit.
                ack.ece |= circuit_mark;
                self.take_ack(flow, &ack);
                Ok(())
            }
            Payload::Train { train, packet } => {
                self.records.data_packets += 1;
                self.receive_train_packet(train, packet);
                Ok(())
            }
        }
    }

    /// A circuit comes up or goes down.
    pub(super) fn change_circuit(
        &mut self,
        source: usize,
        destination: usize,
        up: bool,
        at: Nanos,
    ) -> Result<(), SimulatorError> {
        let carried = self.switch.sent_bytes(source, destination, Via::Circuit);
        if up {
            self.days[destination] = (at.0, carried);
        } else {
            let (began, before) = self.days[destination];
            let bytes = carried - before;
            self.records.days.push(DayRecord { source, destination, began: Nanos(began), ended: at, bytes });
        }
        if self.settings.tcp.divisions > 1 {
            let pair = source * self.settings.switch.racks + destination;
            for index in 0..self.of_pair[pair].len() {
                let flow = self.of_pair[pair][index];
                let Flow::Live(connection) = &mut self.flows[flow as usize] else { continue };
                connection.sender.set_division(u8::from(up));
                connection.receiver.set_division(u8::from(up));
                self.pump(flow);
            }
        }
        Ok(())
    }
}
