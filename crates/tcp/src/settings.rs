//! Settings of a connection.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::control::Control;
use super::error::SettingsError;
use super::segment::MSS;

/// Settings of both ends of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Congestion control of the window.
    pub control: Control,
    /// Number of path kinds with their own window (TDTCP); 1 is a TCP without divisions.
    pub divisions: u8,
    /// Largest payload of a segment, in bytes.
    pub mss: u32,
    /// Size of the first window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Largest number of unacknowledged bytes, regardless of the window: the receiver's buffer.
    pub receive_window: u64,
    /// If true, segments are ECN-capable and an echoed mark reduces the window (RFC 3168). Segments of DCTCP are always
    /// ECN-capable, and segments of reTCP never are.
    pub ecn: bool,
    /// Loss detection by send times (RFC 8985, section 6), instead of by three later arrivals.
    pub rack: RackUse,
    /// For [`RackUse::Repairs`]: minimum difference of send times. A segment is lost if a segment that was sent later
    /// by more than this difference has arrived. Linux 4.4 uses 1 ms.
    pub rack_window: Nanos,
    /// If true, a reduction of the window is undone after an acknowledgement that answers a segment sent before the first
    /// retransmission, since nothing was lost then (RFC 3522, RFC 4015). Linux does so.
    pub undo: bool,
    /// If true, a tail probe is sent after two round trips without an acknowledgement. The probe reveals a loss of the
    /// last segments (RFC 8985, section 7).
    pub tail_probe: bool,
    /// Minimum wait before a tail probe. RFC 8985 has no minimum; Linux 4.4 uses 10 ms.
    pub min_probe: Nanos,
    /// Additional wait before a tail probe if a single segment is outstanding. The receiver may delay the
    /// acknowledgement of this segment by up to this time. Linux assumes 200 ms.
    pub lone_probe: Nanos,
    /// If true, the window shrinks to the first window after the sender was idle for more than a retransmission timeout
    /// (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// Retransmission timeout before the first round-trip sample (RFC 6298, section 2.1).
    pub initial_timeout: Nanos,
    /// Smallest margin of the retransmission timeout above the round trip. RFC 6298 requires 1 s in total; Linux uses
    /// 200 ms above the smoothed round trip. A network under time dilation divides the margin by its factor.
    pub min_timeout: Nanos,
    /// Largest retransmission timeout, regardless of the backoff.
    pub max_timeout: Nanos,
    /// Segments per acknowledgement (RFC 5681, section 4.2: at most 2).
    pub ack_every: u32,
    /// Number of segments that are acknowledged one by one, at the beginning of a connection and after a repeated
    /// segment. 16 in Linux.
    pub quick_acks: u32,
    /// Number of segments in order at the beginning of a connection with which the receiver raises its window. Each is
    /// acknowledged at once. Linux raises the window by two segments with each one, up to its buffer
    /// (`tcp_grow_window`).
    pub growth_acks: u32,
    /// Longest delay of an acknowledgement.
    pub ack_delay: Nanos,
}

/// Use of loss detection by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RackUse {
    /// Never: a segment is lost after three later arrivals (RFC 6675).
    Never,
    /// Only during recovery, also for lost retransmissions. The first loss is detected by three later arrivals. All
    /// segments before the last arrival count as arrived for this rule (FACK). Linux used this rule from 4.4 on. Since
    /// 4.18, Linux uses time alone.
    Repairs,
    /// Always.
    Always,
}

impl Default for Settings {
    /// Linux's settings, with Reno.
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
            undo: false,
            tail_probe: true,
            min_probe: Nanos(0),
            lone_probe: Nanos(40_000_000),
            restart_after_idle: true,
            initial_timeout: Nanos::SECOND,
            min_timeout: Nanos(200_000_000),
            max_timeout: Nanos(120_000_000_000),
            ack_every: 2,
            quick_acks: 0,
            growth_acks: 0,
            ack_delay: Nanos(40_000_000),
        }
    }
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error for the first setting that is out of its range.
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
