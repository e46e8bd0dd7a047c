//! How a window grows and shrinks: one file for each algorithm.

mod cubic;
mod dctcp;
mod reno;
mod retcp;

use leeward_fabric::Nanos;

use self::cubic::Cubic;
use self::dctcp::Dctcp;
use self::reno::Reno;
use self::retcp::Retcp;
use super::settings::SettingsError;

/// Which algorithm controls a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Control {
    /// NewReno's additive increase and halving (RFC 5681).
    Reno,
    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// Reductions by the share of marked bytes (RFC 8257).
    Dctcp,
    /// Reno that multiplies its window when the ECN echo begins and when it ends (Etalon, section 4.4).
    Retcp {
        /// By this at its beginning; 1 or more, 2 in the paper.
        alpha: f64,
        /// By this at its end; from 0 to 1, 0.5 in the paper.
        beta: f64,
    },
}

impl Control {
    /// reTCP with the factors of the paper.
    pub const RETCP: Control = Control::Retcp { alpha: 2.0, beta: 0.5 };

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let &Control::Retcp { alpha, beta } = self else { return Ok(()) };
        // More than a thousandfold is no window.
        if !(1.0..=1000.0).contains(&alpha) {
            return Err(SettingsError::Factor { name: "alpha", value: alpha, expected: "from 1 to 1000" });
        }
        if !(0.0..=1.0).contains(&beta) {
            return Err(SettingsError::Factor { name: "beta", value: beta, expected: "from 0 to 1" });
        }
        Ok(())
    }

    /// Whether its segments say that queues may mark them, where `settings` asks for ECN or not.
    pub(super) fn is_capable(&self, asked: bool) -> bool {
        match self {
            Control::Reno | Control::Cubic => asked,
            Control::Dctcp => true,
            Control::Retcp { .. } => false,
        }
    }

    /// Whether its receivers echo which segments were marked, rather than that any was.
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
    /// How much may be in flight.
    pub(super) size: u64,
    /// Below it the window is in slow start.
    pub(super) threshold: u64,
    /// The segment it counts in.
    pub(super) mss: u64,
}

impl Window {
    /// No reduction goes below it (RFC 5681, equation 4).
    pub(super) fn floor(&self) -> u64 {
        2 * self.mss
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Slow start by the bytes that are acknowledged, up to the threshold. Returns those that are beyond it. A delayed
    /// acknowledgement counts with all it covers (RFC 3465, with no limit, as Linux does).
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        let used = acked.min(self.threshold.saturating_sub(self.size));
        self.size += used;
        acked - used
    }
}

/// An acknowledgement as an algorithm sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Nanos,
    /// Bytes that it is the first to acknowledge, selectively or not.
    pub(super) bytes: u64,
    /// The ECN echo.
    pub(super) ece: bool,
    /// All bytes before it have arrived.
    pub(super) cumulative: u64,
    /// The next byte that was never sent.
    pub(super) next: u64,
    /// The smoothed round-trip time.
    pub(super) trip: Option<Nanos>,
}

/// Why a window is reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    Loss,
    Mark,
    Timeout,
}

/// What each algorithm answers. The sender asks; it alone knows of losses and recovery.
pub(super) trait Algorithm {
    /// Sees every acknowledgement, before anything is done about it.
    fn observe(&mut self, _acked: &Acked) {}

    /// The factor by which the window is to be multiplied at once.
    fn rescale(&mut self, _acked: &Acked) -> Option<f64> {
        None
    }

    /// Grows the window: nothing is lost and it was in full use.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// Time has passed in which the window was not in full use.
    fn idle(&mut self, _now: Nanos) {}

    /// The threshold after a reduction of a window of which `used` bytes were in use.
    fn reduce(&mut self, window: &Window, used: u64, cause: Cause) -> u64;
}

/// An algorithm at work.
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

    /// DCTCP's estimate of the share of bytes that are marked.
    pub(super) fn marked_share(&self) -> Option<f64> {
        match self {
            Running::Dctcp(dctcp) => Some(dctcp.share()),
            _ => None,
        }
    }
}
