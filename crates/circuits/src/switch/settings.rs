//! What a hybrid switch is like, and what it is not.

use leeward_fabric::{Bandwidth, Nanos};

use super::Resize;

/// The most racks a switch joins: it keeps a queue for each pair.
pub(super) const MOST_RACKS: usize = 1024;

/// A hybrid switch: the top-of-rack switches of all racks, the packet switch and the circuit switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many racks it joins.
    pub racks: usize,
    /// The rate of each rack's link to the packet switch, and of that from it.
    pub packet_rate: Bandwidth,
    /// The rate of a circuit.
    pub circuit_rate: Bandwidth,
    /// How long a bit takes along a link to the packet switch.
    pub uplink_delay: Nanos,
    /// And along one from it.
    pub downlink_delay: Nanos,
    /// And along a circuit.
    pub circuit_delay: Nanos,
    /// What a pair's queue at its top-of-rack switch holds, in packets; [`Settings::resize`] changes it by the schedule.
    pub voq_capacity: u32,
    /// What the packet switch itself holds of a pair, in packets.
    pub inner_capacity: u32,
    /// How many packets of a pair, sent back by the packet switch when that was full, the top-of-rack switch holds; they go first.
    pub loss_capacity: u32,
    /// Whether a pair's packets keep off the packet switch from the night before the pair's day until that day ends, so that none
    /// overtakes another.
    pub packet_path_off: bool,
    /// Whether racks have links to a packet switch. Without, packets wait for circuits.
    pub packet_switch: bool,
    /// How many packets of other racks, on their way to a destination by circuits, a rack keeps for it ([`crate::routing`]); they go
    /// before its own.
    pub relay_capacity: u32,
    /// From how many packets in its queue on a packet is marked, if it is capable of that.
    pub mark_at: Option<u32>,
    /// Larger queues ahead of circuits. Takes the place of `voq_capacity` from the first schedule on.
    pub resize: Option<Resize>,
    /// Whether packets from a circuit's destination to its source tell that source of its circuit (Etalon, section 4.4), and how
    /// long before the day they begin to. The paper's text says 0, its code as early as it resizes.
    pub circuit_marks: Option<Nanos>,
}

/// Settings that are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// Racks that are too few or too many.
    #[error("{racks} racks: must be 1 to {MOST_RACKS}")]
    Racks {
        /// How many.
        racks: usize,
    },
    /// A link that carries nothing.
    #[error("{field} of 0 bit/s: must be above 0")]
    Rate {
        /// Which.
        field: &'static str,
    },
    /// A queue that holds nothing.
    #[error("{field} of 0 packets: must be at least 1")]
    Capacity {
        /// Which.
        field: &'static str,
    },
}

impl Settings {
    /// The testbed of the Etalon paper (section 3.4) for so many racks: 10 and 80 Gb/s, 5 us for each packet link, 30 us for
    /// circuits, queues of 16 packets; in the packet switch 3 packets a pair and 5 sent back, as in the released switch.
    pub fn etalon(racks: usize) -> Settings {
        Settings {
            racks,
            packet_rate: Bandwidth(10_000_000_000),
            circuit_rate: Bandwidth(80_000_000_000),
            uplink_delay: Nanos(5_000),
            downlink_delay: Nanos(5_000),
            circuit_delay: Nanos(30_000),
            voq_capacity: 16,
            inner_capacity: 3,
            loss_capacity: 5,
            packet_path_off: true,
            packet_switch: true,
            relay_capacity: 1024,
            mark_at: None,
            resize: None,
            circuit_marks: None,
        }
    }

    /// Whether there can be such a switch.
    ///
    /// # Errors
    /// The first field that is out of bounds.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.racks == 0 || self.racks > MOST_RACKS {
            return Err(SettingsError::Racks { racks: self.racks });
        }
        for (field, rate) in [("packet_rate", self.packet_rate), ("circuit_rate", self.circuit_rate)] {
            if rate.0 == 0 {
                return Err(SettingsError::Rate { field });
            }
        }
        for (field, capacity) in [
            ("voq_capacity", self.voq_capacity),
            ("inner_capacity", self.inner_capacity),
            ("relay_capacity", self.relay_capacity),
        ] {
            if capacity == 0 {
                return Err(SettingsError::Capacity { field });
            }
        }
        Ok(())
    }
}
