//! Reno: the window grows by one segment per round trip, and halves after a loss (RFC 5681, section 3).
//!
//! As in Linux, half a window is a whole number of segments. A window of 2.5 segments would admit no more than 2, and
//! would take longer to become 3.

use super::{Acked, Algorithm, Cause, Window};

/// Reno state. It counts acknowledged bytes until they fill a window (RFC 3465, section 2.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reno {
    counted: u64,
}

impl Algorithm for Reno {
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        let mut beyond = acked.bytes;
        if window.is_slow_start() {
            beyond = window.slow_start(beyond);
        }
        self.counted += beyond;
        while self.counted >= window.size {
            self.counted -= window.size;
            window.size += window.mss;
        }
    }

    fn reduce(&mut self, window: &Window, _: Cause) -> u64 {
        self.counted = 0;
        (window.size / window.mss / 2 * window.mss).max(window.floor())
    }
}
