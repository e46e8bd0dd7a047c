//! DCTCP: a window is reduced by the share of its marked bytes (RFC 8257, section 3.3).

use super::reno::Reno;
use super::{Acked, Algorithm, Cause, Window};

/// Weight of the newest window's share of marks in the estimate (RFC 8257, section 4.2).
const GAIN: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    reno: Reno,
    /// Estimated share of marked bytes, `DCTCP.Alpha`.
    share: f64,
    acked: u64,
    marked: u64,
    /// Byte at which the observed window ends.
    window_end: u64,
}

impl Default for Dctcp {
    fn default() -> Dctcp {
        // The initial value is 1: a mark before the first estimate halves the window, as with any ECN.
        Dctcp { reno: Reno::default(), share: 1.0, acked: 0, marked: 0, window_end: 0 }
    }
}

impl Dctcp {
    pub(super) fn share(&self) -> f64 {
        self.share
    }
}

impl Algorithm for Dctcp {
    fn observe(&mut self, acked: &Acked) {
        self.acked += acked.bytes;
        if acked.ece {
            self.marked += acked.bytes;
        }
        if acked.cumulative <= self.window_end {
            return;
        }
        if self.acked > 0 {
            self.share += GAIN * (self.marked as f64 / self.acked as f64 - self.share);
        }
        (self.acked, self.marked, self.window_end) = (0, 0, acked.next);
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        self.reno.grow(window, acked);
    }

    fn reduce(&mut self, window: &Window, cause: Cause) -> u64 {
        let reno = self.reno.reduce(window, cause);
        match cause {
            Cause::Mark => {
                let left = window.size as f64 * (1.0 - self.share / 2.0);
                (left as u64).max(window.floor())
            }
            Cause::Loss | Cause::Timeout => reno,
        }
    }
}
