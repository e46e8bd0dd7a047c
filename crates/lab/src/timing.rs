//! Timing of a run: how late the lab was.

use leeward_fabric::Nanos;
use leeward_packets::Histogram;

use crate::error::LabError;

/// Share of packets that must be within the bound, and its name.
const SHARE: (f64, &str) = (0.99, "99 %");

/// Lateness of a run, in virtual time, and losses outside the switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Timing {
    /// Real nanoseconds for each virtual one.
    pub dilation: u32,
    /// Time from the moment at which a packet left the switch until it was written to its receiver's device.
    pub packets: Histogram,
    /// Time from a change of a circuit until the lab carried it out.
    pub circuits: Histogram,
    /// Computing time of each schedule, in virtual time.
    pub schedules: Histogram,
    /// Packets that a receiver's device did not take.
    pub refused: u64,
    /// Packets that the queues of NICs dropped.
    pub nic_drops: u64,
    /// Packets that the devices of hosts dropped.
    pub device_drops: u64,
    /// Frames that were not for a host of the lab.
    pub stray: u64,
    /// Days of circuits by their real length, as nanoseconds of virtual time.
    pub days: Vec<Nanos>,
    /// Weeks by their real length, as nanoseconds of virtual time: from the first circuit of a week to that of the next
    /// week with circuits.
    pub weeks: Vec<Nanos>,
}

impl Timing {
    /// Checks that the lab kept up.
    ///
    /// # Errors
    /// Returns an error if more than 1 % of the packets were later than `bound`, or a packet was lost outside the switch.
    pub fn check(&self, bound: Nanos) -> Result<(), LabError> {
        let dilation = self.dilation;
        if let Some(late) = self.packets.quantile(SHARE.0).filter(|late| *late > bound) {
            return Err(LabError::Drift { share: SHARE.1, late, bound, dilation });
        }
        match self.lost() {
            0 => Ok(()),
            packets => Err(LabError::Lost { packets, by_nics: self.nic_drops, dilation }),
        }
    }

    /// Packets that were lost outside the switch.
    pub fn lost(&self) -> u64 {
        // A device counts most of the packets that it did not take.
        self.nic_drops + self.device_drops.max(self.refused)
    }
}
