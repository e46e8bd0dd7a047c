//! Trains of packets: they go as fast as a host's NIC accepts them, without retransmissions.

use leeward_circuits::switch::{Ecn, Packet};
use leeward_fabric::Nanos;

use super::connections::start_time;
use super::{HOSTS, Simulator, Timer};
use crate::hosts::Payload;
use crate::records::Arrival;

/// A train in progress.
#[derive(Clone, Copy, Default)]
pub(super) struct ActiveTrain {
    /// Current burst, and the number of its packets that the NIC has taken.
    burst: u32,
    taken: u32,
    /// Bytes of the train in its host's NIC. `held` is true if more bytes wait for them to leave.
    in_nic: u64,
    held: bool,
    /// Packets that have arrived or are lost.
    gone: u64,
}

impl Simulator<'_> {
    /// Passes packets of a train to a host's NIC, up to its free space and the end of the burst.
    pub(super) fn send_train(&mut self, number: u32) {
        let at = number as usize;
        let train = self.driver.workload().trains()[at];
        let host = self.settings.number(train.source);
        let limit = self.settings.nic_limit.unwrap_or(u64::MAX);
        self.records.trains[at].began.get_or_insert(Nanos(self.now));
        while self.trains[at].taken < train.packets {
            let sending = &mut self.trains[at];
            sending.held = sending.in_nic >= limit;
            if sending.held {
                return;
            }
            let packet = Packet {
                payload: Payload::Train {
                    train: number,
                    packet: sending.burst * train.packets + sending.taken,
                },
                source: train.source.rack,
                destination: train.destination.rack,
                bytes: train.wire_bytes(),
                ecn: Ecn::Incapable,
                entered: Nanos(0),
            };
            sending.taken += 1;
            sending.in_nic += u64::from(packet.bytes);
            self.records.trains[at].sent += 1;
            let begin = start_time(&mut self.random, &self.settings, &self.nics[host], self.now);
            if let Some(leaves) = self.nics[host].push(packet, begin) {
                self.timers.set(HOSTS + host, leaves);
            }
        }
        let sending = &mut self.trains[at];
        *sending = ActiveTrain { burst: sending.burst + 1, taken: 0, held: false, ..*sending };
        if sending.burst < train.bursts {
            self.schedule(self.now.saturating_add(train.gap.0), Timer::Burst(number));
        }
    }

    /// A packet of a train has left its host's NIC; other packets may have waited for the space.
    pub(super) fn leave_train(&mut self, number: u32, bytes: u32) {
        let sending = &mut self.trains[number as usize];
        sending.in_nic -= u64::from(bytes);
        if sending.held {
            self.send_train(number);
        }
    }

    /// A packet of a train arrives at its host.
    pub(super) fn receive_train_packet(&mut self, number: u32, packet: u32) {
        let arrival = Arrival { packet, at: Nanos(self.now) };
        self.records.trains[number as usize].arrivals.push(arrival);
        self.count_train_packet(number);
    }

    /// Counts a packet of a train that has arrived or is lost.
    pub(super) fn count_train_packet(&mut self, number: u32) {
        let sending = &mut self.trains[number as usize];
        sending.gone += 1;
        if sending.gone == self.driver.workload().trains()[number as usize].total() {
            self.trains_left -= 1;
        }
    }
}
