//! CUBIC: the window is a cubic function of the time since the last reduction, and at least as large as Reno's (RFC
//! 9438).

use leeward_fabric::Nanos;

use super::{Acked, Algorithm, Cause, Window};

/// Constant C, in segments per cubed second (RFC 9438, section 5).
const C: f64 = 0.4;

/// Factor by which a reduction multiplies the window (section 4.6).
const BETA: f64 = 0.7;

/// Segments by which the window grows per round trip. With this value, a Reno that multiplies its window by `BETA` gets
/// the rate of a Reno that halves its window (section 4.3).
const RENO_GAIN: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC state. Windows are in segments here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// Window before the last reduction, where the cubic levels off. It is lower if the window did not reach the
    /// previous value (fast convergence, section 4.7).
    largest: f64,
    /// Window directly before the last reduction.
    prior: f64,
    /// Current epoch of congestion avoidance; `None` until the next growth starts one.
    epoch: Option<Epoch>,
    /// Part of the window below a whole byte, in segments.
    fraction: f64,
    /// Time at which the window last grew, or could not grow.
    last: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Nanos,
    /// Seconds until the cubic reaches `largest` again.
    k: f64,
    /// Reno's window in this epoch.
    reno: f64,
}

impl Cubic {
    /// Returns the cubic at `seconds` since the epoch began (equation 1).
    fn at(&self, epoch: &Epoch, seconds: f64) -> f64 {
        C * (seconds - epoch.k).powi(3) + self.largest
    }

    fn epoch(&mut self, now: Nanos, size: f64) -> Epoch {
        if let Some(epoch) = self.epoch {
            return epoch;
        }
        if self.largest < size {
            self.largest = size;
        }
        // Equation 2.
        let k = ((self.largest - size) / C).cbrt();
        Epoch { began: now, k, reno: size }
    }

    /// Returns the window after `acked` segments, in segments.
    fn next(&mut self, size: f64, acked: f64, now: Nanos, trip: Nanos) -> f64 {
        let mut epoch = self.epoch(now, size);
        let passed = now.since(epoch.began);
        let gain = if epoch.reno < self.prior { RENO_GAIN } else { 1.0 };
        epoch.reno += gain * acked / size;
        self.epoch = Some(epoch);
        if self.at(&epoch, passed.as_secs_f64()) < epoch.reno {
            return epoch.reno.max(size);
        }
        // The target is one round trip ahead. In that time, the window grows by at most half (section 4.2).
        let target = self.at(&epoch, passed.plus(trip).as_secs_f64()).clamp(size, 1.5 * size);
        size + (target - size) / size * acked
    }
}

impl Algorithm for Cubic {
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        self.last = acked.now;
        let mut beyond = acked.bytes;
        if window.is_slow_start() {
            beyond = window.slow_start(beyond);
        }
        if beyond == 0 {
            return;
        }
        let mss = window.mss as f64;
        let size = window.size as f64 / mss + self.fraction;
        let next = self.next(size, beyond as f64 / mss, acked.now, acked.trip.unwrap_or_default());
        window.size = (next * mss) as u64;
        self.fraction = next - window.size as f64 / mss;
    }

    fn idle(&mut self, now: Nanos) {
        // Idle time does not count in the epoch (section 5.8).
        if let Some(epoch) = &mut self.epoch {
            epoch.began = epoch.began.plus(now.since(self.last.max(epoch.began)));
        }
        self.last = now;
    }

    fn reduce(&mut self, window: &Window, cause: Cause) -> u64 {
        let size = window.size as f64 / window.mss as f64;
        self.prior = size;
        self.largest = match cause {
            // The next epoch then starts with its own window as `largest`, and with k = 0 (section 4.8).
            Cause::Timeout => 0.0,
            // The window stayed below the previous `largest`: other flows have started, so this flow makes room
            // (section 4.7).
            _ if size < self.largest => size * (1.0 + BETA) / 2.0,
            _ => size,
        };
        self.epoch = None;
        self.fraction = 0.0;
        ((window.size as f64 * BETA) as u64).max(window.floor())
    }
}
