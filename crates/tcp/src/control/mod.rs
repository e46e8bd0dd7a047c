//! Congestion control: growth and reduction of a window, one file per algorithm.

mod cubic;
mod dctcp;
mod reno;
mod retcp;

use leeward_fabric::Nanos;

use self::cubic::Cubic;
use self::dctcp::Dctcp;
use self::reno::Reno;
use self::retcp::Retcp;
use super::error::SettingsError;

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Control {
    /// NewReno's additive increase and halving (RFC 5681).
    Reno,
    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// Reductions by the share of marked bytes (RFC 8257).
    Dctcp,
    /// Reno that scales its window when the ECN echo begins and when it ends (Etalon, section 4.4).
    Retcp {
        /// Factor when the echo begins; 1 or more, 2 in the paper.
        alpha: f64,
        /// Factor when the echo ends; from 0 to 1, 0.5 in the paper.
        beta: f64,
    },
}

impl Control {
    /// reTCP with the factors of the paper.
    pub const RETCP: Control = Control::Retcp { alpha: 2.0, beta: 0.5 };

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let &Control::Retcp { alpha, beta } = self else { return Ok(()) };
        // A factor above a thousand is useless for a window.
        if !(1.0..=1000.0).contains(&alpha) {
            return Err(SettingsError::Factor { name: "alpha", value: alpha, expected: "from 1 to 1000" });
        }
        if !(0.0..=1.0).contains(&beta) {
            return Err(SettingsError::Factor { name: "beta", value: beta, expected: "from 0 to 1" });
        }
        Ok(())
    }

    /// Returns true if segments are ECN-capable, given the ECN setting.
    pub fn is_capable(&self, ecn_setting: bool) -> bool {
        match self {
            Control::Reno | Control::Cubic => ecn_setting,
            Control::Dctcp => true,
            Control::Retcp { .. } => false,
        }
    }

    /// Returns true if receivers echo marks segment by segment.
    pub(super) fn echoes_exactly(&self) -> bool {
        matches!(self, Control::Dctcp)
    }

    pub(super) fn start(&self) -> Running {
        match *self {
            Control::Reno => Running::Reno(Reno::default()),
            Control::Cubic => Running::Cubic(Cubic::default()),
            Control::Dctcp => Running::Dctcp(Dctcp::default()),
            Control::Retcp { alpha, beta } => Running::Retcp(Retcp::new(alpha, beta)),
        }
    }
}

/// A congestion window, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    /// Largest number of bytes in flight.
    pub(super) size: u64,
    /// Slow start threshold: below it the window is in slow start.
    pub(super) threshold: u64,
    /// Segment size, in bytes.
    pub(super) mss: u64,
}

impl Window {
    /// The window times a factor, in whole segments and at least one. An unlimited threshold stays so.
    pub(super) fn scaled(self, factor: f64) -> Window {
        let scale = |bytes: u64| ((bytes as f64 * factor) as u64 / self.mss * self.mss).max(self.mss);
        let threshold = if self.threshold < u64::MAX { scale(self.threshold) } else { u64::MAX };
        Window { size: scale(self.size), threshold, ..self }
    }

    /// Smallest window after a reduction (RFC 5681, equation 4).
    pub(super) fn floor(&self) -> u64 {
        2 * self.mss
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows the window in slow start by the acknowledged bytes, up to the threshold. Returns the bytes
    /// beyond it. A delayed acknowledgement counts all bytes that it covers (RFC 3465, without a limit, as
    /// Linux does).
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        let used = acked.min(self.threshold.saturating_sub(self.size));
        self.size += used;
        acked - used
    }
}

/// An acknowledgement, as the algorithms use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Nanos,
    /// Bytes that this acknowledgement is the first to report, selectively or not.
    pub(super) bytes: u64,
    /// True if it acknowledges bytes cumulatively.
    pub(super) advances: bool,
    /// The ECN echo.
    pub(super) ece: bool,
    /// Sequence number before which all bytes have arrived.
    pub(super) cumulative: u64,
    /// The next byte that was never sent.
    pub(super) next: u64,
    /// The smoothed round-trip time.
    pub(super) trip: Option<Nanos>,
}

/// Cause of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    Loss,
    Mark,
    Timeout,
}

/// Interface of an algorithm. The sender calls it, and handles losses and recovery itself.
pub(super) trait Algorithm {
    /// Observes every acknowledgement, before any other step.
    fn observe(&mut self, _acked: &Acked) {}

    /// Returns a factor by which the window is scaled at once.
    fn rescale(&mut self, _acked: &Acked) -> Option<f64> {
        None
    }

    /// Grows the window. Called only if the window was fully used, and not in a recovery.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// Records that the window was not fully used at this time.
    fn idle(&mut self, _now: Nanos) {}

    /// Returns the threshold after a reduction. As in Linux, it follows from the window, and not from the bytes in
    /// flight (RFC 5681, equation 4).
    fn reduce(&mut self, window: &Window, cause: Cause) -> u64;
}

/// State of a running algorithm.
#[derive(Clone, Debug)]
pub(super) enum Running {
    Reno(Reno),
    Cubic(Cubic),
    Dctcp(Dctcp),
    Retcp(Retcp),
}

impl Running {
    pub(super) fn get(&mut self) -> &mut dyn Algorithm {
        match self {
            Running::Reno(algorithm) => algorithm,
            Running::Cubic(algorithm) => algorithm,
            Running::Dctcp(algorithm) => algorithm,
            Running::Retcp(algorithm) => algorithm,
        }
    }

    /// DCTCP's estimate of the share of marked bytes.
    pub(super) fn marked_share(&self) -> Option<f64> {
        match self {
            Running::Dctcp(dctcp) => Some(dctcp.share()),
            _ => None,
        }
    }
}
