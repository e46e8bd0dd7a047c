//! Settings of a hybrid switch and their validation.

use leeward_fabric::{Bandwidth, Nanos};

use super::Resize;

/// Largest number of racks of a switch; the switch has a queue for each pair.
pub(super) const MOST_RACKS: usize = 1024;

/// A hybrid switch: the top-of-rack switches of all racks, the packet switch and the circuit switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Number of racks.
    pub racks: usize,
    /// Rate of each rack's link to the packet switch and of the link from it.
    pub packet_rate: Bandwidth,
    /// Rate of a circuit.
    pub circuit_rate: Bandwidth,
    /// Propagation delay of a link to the packet switch.
    pub uplink_delay: Nanos,
    /// Propagation delay of a link from the packet switch.
    pub downlink_delay: Nanos,
    /// Propagation delay of a circuit.
    pub circuit_delay: Nanos,
    /// Capacity in packets of a pair's queue at its top-of-rack switch; [`Settings::resize`] changes it by the
    /// schedule.
    pub voq_capacity: u32,
    /// Capacity in packets of a pair's queue in the packet switch.
    pub inner_capacity: u32,
    /// Capacity in packets for a pair's packets that the full packet switch sent back to the top-of-rack switch. They
    /// precede other packets.
    pub loss_capacity: u32,
    /// If true, a pair's packets avoid the packet switch from the night before the pair's day until the end of the day,
    /// so that no packet overtakes another.
    pub packet_path_off: bool,
    /// If false, racks have no links to a packet switch, and all packets wait for circuits.
    pub packet_switch: bool,
    /// Capacity in packets, for each destination, for packets of other racks that a rack forwards over circuits
    /// ([`crate::routing`]). They precede its own packets.
    pub relay_capacity: u32,
    /// Queue length in packets from which ECN-capable packets are marked.
    pub mark_at: Option<u32>,
    /// Larger queues ahead of circuits. Replaces `voq_capacity` from the first schedule on.
    pub resize: Option<Resize>,
    /// Time by which the announcement of a circuit precedes its day (Etalon, section 4.4). Packets from the circuit's
    /// destination to its source carry the announcement. `None` for no announcements. The paper's text says 0; its code
    /// uses the same time as for resizing.
    pub circuit_marks: Option<Nanos>,
}

/// Invalid settings of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// Too few or too many racks.
    #[error("{racks} racks: must be 1 to {MOST_RACKS}")]
    Racks {
        /// Number of racks.
        racks: usize,
    },
    /// A link rate of 0.
    #[error("{field} of 0 bit/s: must be above 0")]
    Rate {
        /// Name of the field.
        field: &'static str,
    },
    /// A capacity of 0.
    #[error("{field} of 0 packets: must be at least 1")]
    Capacity {
        /// Name of the field.
        field: &'static str,
    },
}

impl Settings {
    /// Testbed of the Etalon paper (section 3.4) for `racks` racks: rates of 10 and 80 Gb/s, delays of 5 us for each
    /// packet link and 30 us for circuits, queues of 16 packets. As in the released switch, the packet switch holds 3
    /// packets per pair, and 5 that it sent back.
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

    /// Validates the settings.
    ///
    /// # Errors
    /// Returns the first field out of range.
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
