//! Inputs, outputs and errors of a switch.

use std::sync::Arc;

use leeward_fabric::Nanos;

use crate::Schedule;
use crate::routing::Routes;

/// Congestion state of a packet (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not capable of marking.
    #[default]
    Incapable,
    /// Capable of marking.
    Capable,
    /// Marked.
    Congested,
}

/// A packet with a payload of the caller's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// Payload; the switch does not examine it.
    pub payload: P,
    /// Source rack.
    pub source: u32,
    /// Destination rack.
    pub destination: u32,
    /// Length on a link in bytes.
    pub bytes: u32,
    /// Congestion mark.
    pub ecn: Ecn,
    /// Time of arrival; the switch sets it.
    pub entered: Nanos,
}

/// Switch that a packet took.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Via {
    /// Packet switch.
    Packet,
    /// Circuit switch.
    Circuit,
}

/// Input to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<P> {
    /// A packet arrives from a host.
    Arrive(Packet<P>),
    /// Time passes.
    Wake,
    /// Sets the capacity of a pair's queue. Packets beyond it stay, and new packets are rejected until there is room.
    SetCapacity {
        /// Source rack of the pair.
        source: usize,
        /// Destination rack of the pair.
        destination: usize,
        /// Capacity in packets.
        packets: u32,
    },
    /// Schedule to follow after the current week; the first schedule starts at once. A schedule repeats until the next
    /// one replaces it.
    NewWeek(Schedule),
    /// Routes over the circuits of the current week, valid until a schedule replaces it. Without routes, packets take
    /// direct circuits.
    Routes(Arc<Routes>),
}

/// Output of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output<P> {
    /// A packet leaves the switch.
    Deliver {
        /// Packet delivered.
        packet: Packet<P>,
        /// Time of delivery.
        at: Nanos,
        /// Switch of the last link.
        via: Via,
        /// Number of links between racks on the packet's path: 1, plus one for each rack that forwarded it.
        hops: u8,
        /// True if the packet carries the announcement of a circuit from its destination to its source
        /// ([`Settings::circuit_marks`](super::Settings::circuit_marks)).
        circuit_mark: bool,
    },
    /// A packet is dropped.
    Drop {
        /// Packet dropped.
        packet: Packet<P>,
        /// Time of the drop.
        at: Nanos,
        /// Queue without room.
        by: Full,
    },
    /// A circuit comes up or goes down.
    Circuit {
        /// Source rack.
        source: u32,
        /// Destination rack.
        destination: u32,
        /// True if the circuit is up now.
        up: bool,
        /// Time of the change.
        at: Nanos,
    },
}

/// A queue without room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Full {
    /// Queue of the pair.
    Voq,
    /// Queue of the pair's packets that the packet switch sent back.
    Loss,
    /// Queue of forwarded packets of other racks.
    Relay,
}

/// Rejected input. The switch is unchanged, except that time has advanced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchError {
    /// A rack that does not exist.
    #[error("{end} rack {rack}: there are {racks} racks, numbered from 0")]
    NoRack {
        /// `source` or `destination`.
        end: &'static str,
        /// Rack, from 0.
        rack: usize,
        /// Number of racks.
        racks: usize,
    },
    /// A time before the last one.
    #[error("time {} ns: must not be before the last one, {} ns", now.0, before.0)]
    Backwards {
        /// Time given.
        now: Nanos,
        /// Last time.
        before: Nanos,
    },
    /// A schedule with another number of racks.
    #[error("schedule of {found} racks: must be of {expected}")]
    Racks {
        /// Racks of the schedule.
        found: usize,
        /// Racks of the switch.
        expected: usize,
    },
    /// Routes computed for another schedule.
    #[error("routes for {} racks and {} days: the schedule has {} racks and {} days", found.0, found.1, expected.0, expected.1)]
    Routes {
        /// Racks and days of the routes.
        found: (usize, usize),
        /// Racks and days of the switch's schedule.
        expected: (usize, usize),
    },
    /// A schedule of length 0.
    #[error("schedule without days: must have at least one")]
    NoDays,
    /// A capacity of 0.
    #[error("capacity from rack {source_rack} to {destination} of 0 packets: must be at least 1")]
    NoCapacity {
        /// Source rack of the pair.
        source_rack: usize,
        /// Destination rack of the pair.
        destination: usize,
    },
}

/// Byte counters of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// Bytes that arrived.
    pub entered: u64,
    /// Bytes delivered by the packet switch.
    pub by_packet: u64,
    /// Bytes delivered by circuits.
    pub by_circuit: u64,
    /// Bytes dropped.
    pub dropped: u64,
}
