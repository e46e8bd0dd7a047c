//! What a connection is told before it starts.

use leeward_fabric::Nanos;

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
    /// Losses are found by the time at which segments were sent, those of retransmissions too (RFC 8985, section 6), instead of by
    /// three later ones.
    pub rack: bool,
    /// When nothing was heard for two round trips, a segment is sent to find out whether the last ones are lost (RFC 8985, section 7).
    pub tail_probe: bool,
    /// A window that was not used for a retransmission timeout starts anew (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// The retransmission timeout before any round trip (RFC 6298, section 2.1).
    pub initial_timeout: Nanos,
    /// The least retransmission timeout. RFC 6298 asks for 1 s, Linux has 200 ms; a network under time dilation has that over
    /// the factor.
    pub min_timeout: Nanos,
    /// The largest, whatever the backoff.
    pub max_timeout: Nanos,
    /// A receiver acknowledges every so many segments (RFC 5681, section 4.2: 2 at most).
    pub ack_every: u32,
    /// It waits no longer than this with an acknowledgement.
    pub ack_delay: Nanos,
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
            rack: true,
            tail_probe: true,
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
