//! Committed rates at a resource that its telemetry does not show yet.
//!
//! The recursion: a report with weight a covers a window, and a share phi of the window lies after the start of work of
//! rate x. The estimate moves to (1 - a) M + a (old + phi x). The pending rate p therefore moves to (1 - a) p + a (1 -
//! phi) x, and M + p = old + x at every step. No attribution is needed. The sum over all entries fades as one number;
//! only entries that a window may still cover in part (`young`) stay apart. Work that ends is work of rate -x that
//! starts then.
//!
//! Between two windows all changes are sums of integers, so the order of commits and releases does not matter.

use leeward_fabric::Nanos;

/// A fading sum below this many units of work per second counts as zero.
const NOTHING: f64 = 1e-6;

/// Rates committed to one resource, in its native unit.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Pending {
    /// Future work that does not fade now: not started, or held. Never negative.
    pub held: i64,
    /// Work that will leave but still runs.
    pub leaving: i64,
    /// Remainder, after the last window, of all work that had started by its end. Negative where work ended and
    /// telemetry still shows it.
    fading: f64,
    /// Sum of starts and ends since then.
    fresh: i64,
    /// Starts (and ends, as negative rates) that a window may still cover in part, by time; never zero.
    young: Vec<(Nanos, i64)>,
}

impl Pending {
    /// Started or ended work that telemetry does not show correctly yet. Negative where more leaves than comes. Readers
    /// add it to the measured load, clamp at zero, and then add `held`.
    pub fn settling(&self) -> f64 {
        self.fading + (self.fresh + self.leaving) as f64
    }

    /// `settling` after `missed` windows without a report, each counted as a report of weight `alpha`.
    pub fn settling_after(&self, missed: &MissedReports) -> f64 {
        missed.left(self.fading + self.fresh as f64, &self.young) + self.leaving as f64
    }

    /// Adds work of rate `x` that will start (positive) or leave (negative).
    pub fn hold(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } += x;
    }

    /// Reverts `hold` of `x`.
    pub fn cancel_hold(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } -= x;
    }

    /// Starts work of rate `x` at `at`.
    pub fn start(&mut self, at: Nanos, x: i64) {
        self.fresh += x;
        match self.young.binary_search_by_key(&at, |&(at, _)| at) {
            Ok(same) if self.young[same].1 + x == 0 => {
                self.young.remove(same);
            }
            Ok(same) => self.young[same].1 += x,
            Err(place) if x != 0 => self.young.insert(place, (at, x)),
            Err(_) => {}
        }
    }

    /// Applies a report of `weight` over `window`.
    pub fn fade(&mut self, window: (Nanos, Nanos), weight: f64) {
        if self.fading == 0.0 && self.fresh == 0 && self.young.is_empty() {
            return;
        }
        // Rate times the part of the window before the start, which the window could not show.
        let unseen = |&(at, x): &(Nanos, i64)| i128::from(x) * i128::from(at.min(window.1).since(window.0).0);
        let unseen = self.young.iter().map(unseen).sum::<i128>() as f64 / window.1.since(window.0).0 as f64;
        let left = (1.0 - weight) * (self.fading + self.fresh as f64) + weight * unseen;
        self.settle(left, window.0);
    }

    /// Applies missing reports that count as reports.
    pub fn miss(&mut self, missed: &MissedReports) {
        let left = missed.left(self.fading + self.fresh as f64, &self.young);
        self.settle(left, missed.last_window().0);
    }

    /// Resets for an estimate that restarts at zero: it no longer contains earlier starts and ends, so they need not
    /// fade.
    pub fn forget(&mut self, now: Nanos) {
        self.young.retain(|&(at, _)| at > now);
        (self.fading, self.fresh) = (0.0, self.young.iter().map(|&(_, x)| x).sum());
    }

    /// Drops work that started by `from`, the beginning of a window, from `young`. If a later window reaches farther
    /// back, that work still counts as fully covered.
    fn settle(&mut self, left: f64, from: Nanos) {
        (self.fading, self.fresh) = (left, 0);
        let old = self.young.partition_point(|&(at, _)| at <= from);
        self.young.drain(..old);
        if self.young.is_empty() && self.fading.abs() < NOTHING {
            self.fading = 0.0;
        }
    }
}

/// Consecutive windows without a report. Each counts as a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissedReports {
    /// Start of the first window.
    pub since: Nanos,
    /// Number of windows, at least one.
    pub count: i32,
    /// Length of each window.
    pub interval: Nanos,
    /// Weight of each window.
    pub alpha: f64,
}

impl MissedReports {
    /// Rest of a sum after `count` steps of the recursion. Work that starts within the windows fades from its own
    /// start.
    fn left(&self, sum: f64, young: &[(Nanos, i64)]) -> f64 {
        let keep = 1.0 - self.alpha;
        let all = keep.powi(self.count);
        let unseen = |&(at, x): &(Nanos, i64)| {
            let begins = at.since(self.since).0 as f64 / self.interval.0 as f64;
            if begins >= f64::from(self.count) {
                return x as f64 * (1.0 - all);
            }
            // Windows before the start show nothing of the work; the window that contains the start shows a part.
            let before = begins as i32;
            let rest = keep.powi(self.count - 1 - before);
            x as f64 * (rest * keep * (1.0 - keep.powi(before)) + rest * self.alpha * begins.fract())
        };
        all * sum + young.iter().map(unseen).sum::<f64>()
    }

    /// The last window.
    pub fn last_window(&self) -> (Nanos, Nanos) {
        let after = |count: i32| self.since.plus(Nanos(self.interval.0.saturating_mul(count as u64)));
        (after(self.count - 1), after(self.count))
    }
}
