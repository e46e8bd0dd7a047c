//! Packet trains and bulk transfers, and their limits.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::wire::HEADER;

/// Nanoseconds per second.
const SECOND_NS: u64 = 1_000_000_000;

/// A packet train (Choreo, section 3.1): bursts of packets sent back to back, with a pause between bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Train {
    /// K, the number of bursts; 1 to 1,000.
    pub bursts: u32,
    /// B, the number of packets per burst; 2 to 10,000.
    pub packets: u32,
    /// P, the UDP payload of a packet in bytes; 64 to 8,972.
    pub bytes: u32,
    /// δ, the pause between bursts in nanoseconds; at most one second.
    pub gap_ns: u64,
}

impl Default for Train {
    /// A train with good results on EC2 (section 4.1): ten bursts of 200 packets of 1,472 bytes, 1 ms apart.
    fn default() -> Train {
        Train { bursts: 10, packets: 200, bytes: 1472, gap_ns: 1_000_000 }
    }
}

/// Limits of a host. The host rejects a larger train or transfer before anything is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum payload of one train in bytes.
    pub train_bytes: u64,
    /// Maximum duration of a transfer in nanoseconds.
    pub transfer_ns: u64,
    /// Maximum number of connections of one transfer.
    pub connections: u32,
    /// Maximum number of simultaneous control connections.
    pub peers: usize,
}

impl Default for Limits {
    /// 512 MiB per train (nearly twice the largest train of a calibration), one minute and 16 connections per transfer,
    /// 64 peers.
    fn default() -> Limits {
        Limits { train_bytes: 512 << 20, transfer_ns: 60 * SECOND_NS, connections: 16, peers: 64 }
    }
}

const _: () = assert!(HEADER as u64 <= Train::LEAST_BYTES, "a packet has room for its header");

impl Train {
    /// Maximum number of bursts.
    pub const MOST_BURSTS: u64 = 1_000;
    /// Maximum number of packets per burst; the minimum is two.
    pub const MOST_PACKETS: u64 = 10_000;
    /// Minimum payload of a packet in bytes, with room for its header.
    pub const LEAST_BYTES: u64 = 64;
    /// Maximum payload of a packet in bytes: the payload of a jumbo frame of 9,000 bytes.
    pub const MOST_BYTES: u64 = 8_972;

    /// Number of packets of the whole train.
    pub fn total_packets(&self) -> u64 {
        u64::from(self.bursts) * u64::from(self.packets)
    }

    /// Payload of the whole train in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.total_packets() * u64::from(self.bytes)
    }

    /// Checks the train's fields and the host's limits.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Setting`] with the field and its range.
    pub fn check(&self, limits: &Limits) -> Result<(), ProbeError> {
        let bounds = [
            ("bursts", u64::from(self.bursts), 1, Train::MOST_BURSTS),
            ("packets", u64::from(self.packets), 2, Train::MOST_PACKETS),
            ("bytes", u64::from(self.bytes), Train::LEAST_BYTES, Train::MOST_BYTES),
        ];
        for (field, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                let message = format!("{value}: expected a whole number from {least} to {most}");
                return Err(ProbeError::setting(field, message));
            }
        }
        if self.gap_ns > SECOND_NS {
            let message = format!("{} s: expected at most 1 s", self.gap_ns as f64 / 1e9);
            return Err(ProbeError::setting("gap_ns", message));
        }
        if self.total_bytes() > limits.train_bytes {
            let message = format!(
                "{} bursts of {} packets of {} bytes are {} bytes: expected at most {}",
                self.bursts,
                self.packets,
                self.bytes,
                self.total_bytes(),
                limits.train_bytes
            );
            return Err(ProbeError::setting("bursts", message));
        }
        Ok(())
    }
}

/// A bulk transfer over TCP, used to calibrate trains and to count competing connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Duration of sending in nanoseconds.
    pub duration_ns: u64,
    /// Number of simultaneous connections.
    pub connections: u32,
    /// Congestion control of the sender; `None` for the default of its system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
}

/// Congestion control of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// CUBIC (RFC 9438).
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR.
    Bbr,
}

impl Congestion {
    /// Name of the algorithm in the system.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Cubic => "cubic",
            Congestion::Reno => "reno",
            Congestion::Bbr => "bbr",
        }
    }
}

impl FromStr for Congestion {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Congestion, ProbeError> {
        let all = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];
        all.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            ProbeError::setting("congestion", format!("`{text}`: expected cubic, reno or bbr"))
        })
    }
}

impl Transfer {
    /// Shortest transfer; TCP does not reach its rate in less time.
    pub const LEAST_NS: u64 = 100_000_000;

    /// Checks the transfer's fields and the host's limits.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Setting`] with the field and its range.
    pub fn check(&self, limits: &Limits) -> Result<(), ProbeError> {
        if !(Transfer::LEAST_NS..=limits.transfer_ns).contains(&self.duration_ns) {
            let [given, least, most] =
                [self.duration_ns, Transfer::LEAST_NS, limits.transfer_ns].map(|ns| ns as f64 / 1e9);
            let message = format!("{given} s: expected {least} to {most} s");
            return Err(ProbeError::setting("duration_ns", message));
        }
        if !(1..=limits.connections).contains(&self.connections) {
            let most = limits.connections;
            let message = format!("{}: expected a whole number from 1 to {most}", self.connections);
            return Err(ProbeError::setting("connections", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trains_of_the_paper_are_valid_and_absurd_ones_are_rejected() {
        let limits = Limits::default();
        let paper = Train::default();
        assert_eq!(paper.check(&limits), Ok(()));
        assert_eq!(Train { packets: 2000, ..paper }.check(&limits), Ok(()));
        assert_eq!(Train { bursts: 50, packets: 2000, ..paper }.check(&limits), Ok(()));
        for (wrong, field) in [
            (Train { bursts: 0, ..paper }, "bursts"),
            (Train { packets: 1, ..paper }, "packets"),
            (Train { packets: u32::MAX, bursts: u32::MAX, ..paper }, "bursts"),
            (Train { bytes: 63, ..paper }, "bytes"),
            (Train { bytes: 9000, ..paper }, "bytes"),
            (Train { gap_ns: u64::MAX, ..paper }, "gap_ns"),
            (Train { bursts: 1000, packets: 10_000, ..paper }, "bursts"),
        ] {
            let Err(ProbeError::Setting { field: named, .. }) = wrong.check(&limits) else {
                panic!("{wrong:?}")
            };
            assert_eq!(named, field);
        }
    }

    #[test]
    fn transfers_have_bounds() {
        let limits = Limits::default();
        let second = Transfer { duration_ns: SECOND_NS, connections: 1, congestion: None };
        assert_eq!(second.check(&limits), Ok(()));
        for wrong in [
            Transfer { duration_ns: 0, ..second },
            Transfer { duration_ns: 61 * SECOND_NS, ..second },
            Transfer { connections: 0, ..second },
            Transfer { connections: 17, ..second },
        ] {
            assert!(wrong.check(&limits).is_err(), "{wrong:?}");
        }
    }
}
