//! What a connection is told before it starts.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::control::Control;
use super::segment::MSS;

/// How both ends of a connection behave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// How a window grows and shrinks.
    pub control: Control,
    /// Kinds of paths that have a window each (TDTCP); 1 is a TCP that knows of none.
    pub divisions: u8,
    /// Largest payload of a segment, in bytes.
    pub mss: u32,
    /// Segments of the first window (RFC 6928).
    pub initial_window: u32,
    /// Bytes that may be unacknowledged at most, whatever the window: what the receiver has room for.
    pub receive_window: u64,
    /// Segments are ECN-capable and an echo of a mark reduces the window (RFC 3168). DCTCP needs no leave; reTCP has none.
    pub ecn: bool,
    /// Whether losses are found by the time at which segments were sent (RFC 8985, section 6), instead of by three later ones.
    pub rack: RackUse,
    /// Of [`RackUse::Repairs`]: a segment is lost when one has arrived that was sent by more than this after it. Linux 4.4: 1 ms.
    pub rack_window: Nanos,
    /// When nothing was heard for two round trips, a segment is sent to find out whether the last ones are lost (RFC 8985, section 7).
    pub tail_probe: bool,
    /// The least wait for such a probe. RFC 8985 has none, Linux 4.4 has 10 ms.
    pub min_probe: Nanos,
    /// How much longer it waits when one segment alone is out, which may be answered late: the receivers' longest delay. Linux
    /// takes 200 ms for it.
    pub lone_probe: Nanos,
    /// A window that was not used for a retransmission timeout starts anew (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// The retransmission timeout before any round trip (RFC 6298, section 2.1).
    pub initial_timeout: Nanos,
    /// By how much the retransmission timeout is above the round trip at least. RFC 6298 asks for 1 s in all; Linux has 200 ms above
    /// the smoothed round trip. A network under time dilation has that over the factor.
    pub min_timeout: Nanos,
    /// The largest, whatever the backoff.
    pub max_timeout: Nanos,
    /// A receiver acknowledges every so many segments (RFC 5681, section 4.2: 2 at most).
    pub ack_every: u32,
    /// It waits no longer than this with an acknowledgement.
    pub ack_delay: Nanos,
}

/// Which losses are found by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RackUse {
    /// None: by three later segments that have arrived (RFC 6675).
    Never,
    /// While losses are repaired, those of retransmissions too; the first by later segments that have arrived, where a hole among
    /// these counts as well (FACK). So did Linux from 4.4 on, before time was all that it went by (4.18).
    Repairs,
    /// All.
    Always,
}

impl Default for Settings {
    /// As Linux does, with Reno.
    fn default() -> Settings {
        Settings {
            control: Control::Reno,
            divisions: 1,
            mss: MSS,
            initial_window: 10,
            receive_window: u64::MAX,
            ecn: false,
            rack: RackUse::Always,
            rack_window: Nanos(1_000_000),
            tail_probe: true,
            min_probe: Nanos(0),
            lone_probe: Nanos(40_000_000),
            restart_after_idle: true,
            initial_timeout: Nanos::SECOND,
            min_timeout: Nanos(200_000_000),
            max_timeout: Nanos(120_000_000_000),
            ack_every: 2,
            ack_delay: Nanos(40_000_000),
        }
    }
}

/// What no connection can be told.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// A number that must be above 0.
    #[error("{name}: 0: must be above 0")]
    Zero {
        /// Which.
        name: &'static str,
    },
    /// A factor of reTCP that is outside of its range.
    #[error("{name}: {value}: must be {expected}")]
    Factor {
        /// Which.
        name: &'static str,
        /// As it was given.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// The largest timeout is below another.
    #[error("max_timeout: {max}: must not be below {name}, which is {other}")]
    Timeouts {
        /// The largest.
        max: Nanos,
        /// The name of the other.
        name: &'static str,
        /// The other.
        other: Nanos,
    },
}

impl Settings {
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let zeros = [
            ("divisions", self.divisions == 0),
            ("mss", self.mss == 0),
            ("initial_window", self.initial_window == 0),
            ("receive_window", self.receive_window == 0),
            ("initial_timeout", self.initial_timeout == Nanos(0)),
            ("min_timeout", self.min_timeout == Nanos(0)),
            ("ack_every", self.ack_every == 0),
        ];
        if let Some(&(name, _)) = zeros.iter().find(|(_, zero)| *zero) {
            return Err(SettingsError::Zero { name });
        }
        let timeouts = [("min_timeout", self.min_timeout), ("initial_timeout", self.initial_timeout)];
        if let Some(&(name, other)) = timeouts.iter().find(|(_, timeout)| *timeout > self.max_timeout) {
            return Err(SettingsError::Timeouts { max: self.max_timeout, name, other });
        }
        self.control.check()
    }
}
