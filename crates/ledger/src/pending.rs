//! Rates that are committed to a resource and that its telemetry does not show yet.
//!
//! Suppose that work of rate x starts at a resource whose other load is a constant v. A report with weight a covers a
//! window, and a share phi of the window lies after the start. The report moves the estimate M to
//! (1 - a) M + a (v + phi x). It also moves the pending rate p to (1 - a) p + a (1 - phi) x. So M + p = v + x at every
//! step. The end of work of rate x is a start of work of rate -x.
//!
//! A report does not need to say which work causes a load, because the rates of all work fade as one sum. Only work
//! that a window may still cover in part (`young`) is also stored with its start.
//!
//! Between two windows all changes are sums of integers, so the order of commits and releases does not matter.

use leeward_fabric::Nanos;

/// A fading sum below this many units of work per second counts as zero.
const NEGLIGIBLE: f64 = 1e-6;

/// Rates committed to one resource, in its native unit.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Pending {
    /// Sum of rates that do not fade: of work that has not started, of held work, and of the lasting part of started
    /// work. Never negative.
    pub held: i64,
    /// Sum of the rates, as negative numbers, of work that still runs and will leave.
    pub leaving: i64,
    /// Part of the started and ended rates that the estimate lacked after the last report. Negative if the estimate
    /// still contains work that has ended.
    fading: f64,
    /// Sum of starts and ends recorded since the last report.
    fresh: i64,
    /// Starts (and ends, as negative rates) that a window may still cover in part, by time; never zero.
    young: Vec<(Nanos, i64)>,
}

impl Pending {
    /// Correction of the measured load for starts and ends that telemetry does not show yet. Work that will leave
    /// counts as ended. Readers add the correction, clamp the sum at zero, and then add `held`.
    pub fn settling(&self) -> f64 {
        self.fading + (self.fresh + self.leaving) as f64
    }

    /// [`Pending::settling`] after missed reports.
    pub fn settling_after(&self, missed: &MissedReports) -> f64 {
        missed.remainder(self.fading + self.fresh as f64, &self.young) + self.leaving as f64
    }

    /// Adds work of rate `x` that will start (positive) or leave (negative).
    pub fn hold(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } += x;
    }

    /// Reverts `hold` of `x`.
    pub fn cancel_hold(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } -= x;
    }

    /// Starts work of rate `x` at time `at`, or ends work of rate `-x`.
    pub fn start(&mut self, at: Nanos, x: i64) {
        self.fresh += x;
        match self.young.binary_search_by_key(&at, |&(at, _)| at) {
            Ok(index) if self.young[index].1 + x == 0 => {
                self.young.remove(index);
            }
            Ok(index) => self.young[index].1 += x,
            Err(index) if x != 0 => self.young.insert(index, (at, x)),
            Err(_) => {}
        }
    }

    /// Part of the starts and ends that a window does not show: rate times the part of the window before the start.
    pub fn unseen(&self, window: (Nanos, Nanos)) -> f64 {
        let unseen = |&(at, x): &(Nanos, i64)| i128::from(x) * i128::from(at.min(window.1).since(window.0).0);
        let length = window.1.since(window.0).0;
        if length == 0 { 0.0 } else { self.young.iter().map(unseen).sum::<i128>() as f64 / length as f64 }
    }

    /// Applies a report of `weight` over `window`.
    pub fn fade(&mut self, window: (Nanos, Nanos), weight: f64) {
        if self.fading == 0.0 && self.fresh == 0 && self.young.is_empty() {
            return;
        }
        let remaining = (1.0 - weight) * (self.fading + self.fresh as f64) + weight * self.unseen(window);
        self.settle(remaining, window.0);
    }

    /// Applies missed reports.
    pub fn miss(&mut self, missed: &MissedReports) {
        let remaining = missed.remainder(self.fading + self.fresh as f64, &self.young);
        self.settle(remaining, missed.last_window().0);
    }

    /// Drops all starts and ends up to `now`. The estimate restarts at zero and contains none of that work.
    pub fn forget(&mut self, now: Nanos) {
        self.young.retain(|&(at, _)| at > now);
        (self.fading, self.fresh) = (0.0, self.young.iter().map(|&(_, x)| x).sum());
    }

    /// Sets the fading sum after a window that begins at `from`. Work that started by then leaves `young`: if a later
    /// window reaches farther back, that work still counts as fully covered.
    fn settle(&mut self, remaining: f64, from: Nanos) {
        (self.fading, self.fresh) = (remaining, 0);
        let old = self.young.partition_point(|&(at, _)| at <= from);
        self.young.drain(..old);
        if self.young.is_empty() && self.fading.abs() < NEGLIGIBLE {
            self.fading = 0.0;
        }
    }
}

/// Consecutive windows without a report. Each counts as a report of weight `alpha`.
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
    /// Fading sum after `count` reports, as the module describes. `sum` includes `young`; work that starts within the
    /// windows fades only from its start.
    fn remainder(&self, sum: f64, young: &[(Nanos, i64)]) -> f64 {
        let keep = 1.0 - self.alpha;
        let keep_all = keep.powi(self.count);
        let unseen = |&(at, x): &(Nanos, i64)| {
            // Start of the work, in windows after the first began.
            let start = at.since(self.since).0 as f64 / self.interval.0 as f64;
            if start >= f64::from(self.count) {
                return x as f64 * (1.0 - keep_all);
            }
            // Windows before the start show nothing of the work; the window that contains the start shows a part.
            let before = start as i32;
            let after = keep.powi(self.count - 1 - before);
            x as f64 * (after * keep * (1.0 - keep.powi(before)) + after * self.alpha * start.fract())
        };
        keep_all * sum + young.iter().map(unseen).sum::<f64>()
    }

    /// The last window.
    pub fn last_window(&self) -> (Nanos, Nanos) {
        let after = |count: i32| self.since.plus(Nanos(self.interval.0.saturating_mul(count as u64)));
        (after(self.count - 1), after(self.count))
    }
}
