//! Packet trains: bursts of packets without a transport, which measure the capacity of a path (Choreo,
//! section 3.1).

use leeward_fabric::Nanos;

use super::{Place, WorkloadError};

/// Bytes of headers before a packet's payload: IPv4 20, UDP 8.
pub const HEADER: u32 = 28;
/// Largest payload of a UDP packet.
const MOST_PAYLOAD: u32 = 65_507;
/// Largest number of packets of all trains, so that their records fit in memory.
const MOST_PACKETS: u64 = 20_000_000;

/// A train: bursts of packets with a pause between them. Each burst goes as fast as the host's NIC accepts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Train {
    /// Sending host.
    pub source: Place,
    /// Receiving host.
    pub destination: Place,
    /// Start of the first burst.
    pub start: Nanos,
    /// Number of bursts.
    pub bursts: u32,
    /// Packets per burst.
    pub packets: u32,
    /// Bytes of a packet without headers.
    pub payload: u32,
    /// Time between the last packet of a burst that the NIC accepted and the first packet of the next burst.
    pub gap: Nanos,
}

impl Train {
    /// Packets of the whole train.
    pub fn total(&self) -> u64 {
        u64::from(self.bursts) * u64::from(self.packets)
    }

    /// Size of each packet as an IP packet, in bytes.
    pub fn wire_bytes(&self) -> u32 {
        self.payload + HEADER
    }

    /// Checks that hosts of a network can send the train, in addition to other trains with `other_packets` packets.
    pub(super) fn check(&self, racks: u32, hosts: u32, other_packets: u64) -> Result<(), WorkloadError> {
        for (end, place) in [("from", self.source), ("to", self.destination)] {
            if place.rack >= racks || place.host >= hosts {
                return Err(WorkloadError::setting(
                    end,
                    place,
                    "an existing host; racks and hosts are numbered from 0",
                ));
            }
        }
        if self.source == self.destination {
            return Err(WorkloadError::setting("to", self.destination, "another host than the sender"));
        }
        if self.bursts == 0 {
            return Err(WorkloadError::setting("bursts", self.bursts, "above 0"));
        }
        if self.packets < 2 {
            return Err(WorkloadError::setting("packets", self.packets, "at least 2"));
        }
        if !(1..=MOST_PAYLOAD).contains(&self.payload) {
            return Err(WorkloadError::setting("payload", self.payload, "from 1 to 65507"));
        }
        let all = self.total().saturating_add(other_packets);
        if all > MOST_PACKETS {
            return Err(WorkloadError::setting("packets", all, "at most 20 million in all"));
        }
        Ok(())
    }
}
