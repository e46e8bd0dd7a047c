//! Timing of a run: how late the lab was.

use leeward_fabric::Nanos;
use leeward_packets::Histogram;

use crate::error::LabError;

/// Share of packets that must be within the bound, and its name.
const SHARE: (f64, &str) = (0.99, "99 %");
/// Least number of packets after which a run may be rejected before its end.
const LEAST_PACKETS: u64 = 1000;

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

    /// Checks during a run that it can still keep up: that no more packets are late already than may be late in the
    /// whole run, if the rest of it has as many packets per second as its beginning.
    ///
    /// # Errors
    /// Returns an error if more packets are late.
    pub fn check_during(&self, bound: Nanos, elapsed: Nanos, horizon: Nanos) -> Result<(), LabError> {
        let late = (1.0 - SHARE.0) * horizon.0 as f64 / elapsed.0.max(1) as f64;
        if late >= 1.0 || self.packets.total() < LEAST_PACKETS {
            return Ok(());
        }
        match self.packets.quantile(1.0 - late) {
            Some(least) if least > bound => {
                let percent = 100 * elapsed.0 / horizon.0.max(1);
                Err(LabError::FallsBehind { percent, horizon, bound, dilation: self.dilation })
            }
            _ => Ok(()),
        }
    }

    /// Packets that were lost outside the switch.
    pub fn lost(&self) -> u64 {
        // A device counts most of the packets that it did not take.
        self.nic_drops + self.device_drops.max(self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_rejected_early_if_its_rest_cannot_help_at_the_rate_so_far() {
        let (bound, horizon) = (Nanos(5000), Nanos(1_000_000));
        let timing = |late: u64| {
            let mut timing = Timing { dilation: 60, ..Timing::default() };
            (0..1000).for_each(|packet| timing.packets.add(Nanos(if packet < late { 9000 } else { 10 })));
            timing
        };
        // Of 1,000 packets after a tenth of the run, 100 may be late, since 9,000 more may be on time.
        for (late, elapsed, keeps_up) in [
            (100, 100_000, true),
            (101, 100_000, false),
            (11, 1_000_000, false),
            (10, 1_000_000, true),
            (1000, 9_000, true),
            (1000, 11_000, false),
            (1000, 0, true),
        ] {
            let checked = timing(late).check_during(bound, Nanos(elapsed), horizon);
            assert_eq!(checked.is_ok(), keeps_up, "{late} of 1,000 after {elapsed} ns");
        }
        let few = Timing { packets: timing(1).packets, ..Timing::default() };
        assert!(few.check(bound).is_ok());
        let error = timing(500).check_during(bound, Nanos(100_000), horizon).expect_err("half are late");
        assert_eq!(
            error.to_string(),
            "the lab fell behind: in the first 10 % of 1ms, the packets that were later than 5us in virtual time are already \
             more than 1 % of those that the whole run has at this rate; choose a larger dilation than 60, or a quieter machine"
        );
    }
}
