//! View of a running lab: its circuits, queues and counters.

use leeward_fabric::Nanos;
use serde::Serialize;

/// State of a lab at a moment. Counts are of all its time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Live {
    /// Virtual time since the begin, in seconds.
    pub at_s: f64,
    /// Real seconds for each virtual one.
    pub dilation: u32,
    /// Number of racks.
    pub racks: usize,
    /// Circuits that are up: source and destination rack.
    pub circuits: Vec<(usize, usize)>,
    /// Packets in the queue of each pair of racks, by source and then destination.
    pub queued_packets: Vec<u32>,
    /// Capacity of these queues, in packets.
    pub capacity_packets: Vec<u32>,
    /// Bytes that each rack has sent to others by packets.
    pub packet_bytes: Vec<u64>,
    /// Bytes that each rack has sent to others by circuits.
    pub circuit_bytes: Vec<u64>,
    /// Packets that the switch has dropped.
    pub dropped_packets: u64,
    /// Packets that were lost outside the switch.
    pub lost_packets: u64,
    /// Bytes that programs have written and the switch has not seen, by source and then destination; empty if no
    /// schedule needs them.
    pub demand_bytes: Vec<u64>,
    /// Lateness of 99 % of the packets since the view before, in virtual seconds; `None` without packets.
    pub late_p99_s: Option<f64>,
}

/// Seconds of an optional time.
pub(crate) fn seconds(time: Option<Nanos>) -> Option<f64> {
    time.map(Nanos::as_secs_f64)
}
