//! What goes into a switch and what comes out: packets, what it is told, what it does, what it cannot take.

use std::sync::Arc;

use leeward_fabric::Nanos;

use crate::Schedule;
use crate::routing::Routes;

/// What a packet says of congestion (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// It cannot be marked.
    #[default]
    Incapable,
    /// It can be.
    Capable,
    /// It is.
    Congested,
}

/// A packet, with whatever its user lets it carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// What it carries; the switch does not look at it.
    pub payload: P,
    /// The rack it comes from.
    pub source: u32,
    /// The rack it goes to.
    pub destination: u32,
    /// Its length on a link.
    pub bytes: u32,
    /// Its mark.
    pub ecn: Ecn,
    /// When it entered the switch, which sets it.
    pub entered: Nanos,
}

/// By which switch a packet went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Via {
    /// The packet switch.
    Packet,
    /// The circuit switch.
    Circuit,
}

/// What a switch is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<P> {
    /// A packet comes from a host.
    Arrive(Packet<P>),
    /// Time has passed.
    Wake,
    /// A pair's queue holds so many packets from now on. Packets beyond that stay; none is taken until there is room.
    SetCapacity {
        /// The rack the packets come from.
        source: usize,
        /// The rack they go to.
        destination: usize,
        /// The capacity.
        packets: u32,
    },
    /// The schedule from the end of the week that runs on; of the first, from now on. It repeats until there is another.
    NewWeek(Schedule),
    /// How packets go by the circuits of the week that runs on, until there is another week; directly until told.
    Routes(Arc<Routes>),
}

/// What a switch does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output<P> {
    /// A packet comes out.
    Deliver {
        /// Which.
        packet: Packet<P>,
        /// When.
        at: Nanos,
        /// By which switch, of the last link.
        via: Via,
        /// How many links between racks it took: 1, and one for each rack that it was passed on at.
        hops: u8,
        /// Whether a circuit from its destination to its source is announced to it ([`Settings::circuit_marks`]).
        circuit_mark: bool,
    },
    /// A packet is lost.
    Drop {
        /// Which.
        packet: Packet<P>,
        /// When.
        at: Nanos,
        /// For want of room in which queue.
        by: Full,
    },
    /// A circuit comes up, or goes down.
    Circuit {
        /// The rack it leads from.
        source: u32,
        /// The rack it leads to.
        destination: u32,
        /// Whether it is up now.
        up: bool,
        /// When.
        at: Nanos,
    },
}

/// A queue without room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Full {
    /// That of the pair.
    Voq,
    /// That of the pair's packets that the packet switch sent back.
    Loss,
    /// That of packets of other racks that are passed on.
    Relay,
}

/// What a switch cannot take. Nothing has changed then, but that the time told has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchError {
    /// A rack that is not there.
    #[error("{what} rack {rack} of {racks}, numbered from 0")]
    NoRack {
        /// Source or destination.
        what: &'static str,
        /// Which.
        rack: usize,
        /// How many there are.
        racks: usize,
    },
    /// A time that was.
    #[error("time {} ns after {} ns: must not go back", now.0, before.0)]
    Backwards {
        /// The time told.
        now: Nanos,
        /// A time told before.
        before: Nanos,
    },
    /// A schedule of other racks.
    #[error("schedule of {found} racks: must be of {expected}")]
    Racks {
        /// The schedule's.
        found: usize,
        /// The switch's.
        expected: usize,
    },
    /// Routes of another schedule than the one that runs.
    #[error("routes of {} racks and {} days: must be of {} and {}", found.0, found.1, expected.0, expected.1)]
    Routes {
        /// Racks and days of the routes.
        found: (usize, usize),
        /// Those of the switch and its schedule.
        expected: (usize, usize),
    },
    /// A schedule that takes no time.
    #[error("schedule without days: must have one at least")]
    NoDays,
    /// A queue that holds nothing.
    #[error("capacity from rack {source_rack} to {destination} of 0 packets: must be at least 1")]
    NoCapacity {
        /// The rack the packets come from.
        source_rack: usize,
        /// The rack they go to.
        destination: usize,
    },
}

/// Bytes that entered a switch, and where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// All that came.
    pub entered: u64,
    /// Those that came out by packets.
    pub by_packet: u64,
    /// Those that came out by circuit.
    pub by_circuit: u64,
    /// Those lost.
    pub dropped: u64,
}
