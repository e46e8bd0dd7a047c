//! What is committed to a resource and not yet in its telemetry.
//!
//! The recursion. A report with weight a covers a window of which a share phi lies after the start of work of
//! rate x. The estimate moves to (1 - a) M + a (old + phi x), so what is still pending moves to
//! (1 - a) p + a (1 - phi) x, and M + p = old + x at every step. Nothing needs to be attributed: the sum over all
//! entries fades as one number, and only those that a window may still cover in part (`young`) are told apart.
//! Work that ends is work of rate -x that starts then.
//!
//! Everything between two windows is a sum of integers, so it does not depend on the order of commits and releases.

use leeward_fabric::Nanos;

/// Below a millionth of a unit of work per second a fading sum is nothing.
const NOTHING: f64 = 1e-6;

/// Rates committed to one resource, in its native unit.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Pending {
    /// Work to come that does not fade now: not started, or held. Not negative.
    pub held: i64,
    /// Work that is to leave and has not begun to. Not positive.
    pub leaving: i64,
    /// What the last window left of all that had started by its end; negative where work ended and telemetry
    /// still shows it.
    fading: f64,
    /// What started or ended since.
    fresh: i64,
    /// Starts (and ends, as negative rates) that a window may still cover in part, by time; none is zero.
    young: Vec<(Nanos, i64)>,
}

impl Pending {
    /// What starts, started or ends and is not in telemetry as it should be. Negative where more leaves than comes:
    /// readers add it to what is measured and stop at zero before they add `held`.
    pub fn settling(&self) -> f64 {
        self.fading + (self.fresh + self.leaving) as f64
    }

    /// `settling`, if nothing was reported for `missed` windows that each count as one of weight `alpha`.
    pub fn settling_after(&self, missed: &Missed) -> f64 {
        missed.left(self.fading + self.fresh as f64, &self.young) + self.leaving as f64
    }

    /// Work of rate `x` is to come (positive) or to leave (negative).
    pub fn hold(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } += x;
    }

    /// Takes back what `hold` of `x` noted.
    pub fn let_go(&mut self, x: i64) {
        *if x < 0 { &mut self.leaving } else { &mut self.held } -= x;
    }

    /// Work of rate `x` starts at `at`.
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

    /// A report of `weight` over `window` was taken in.
    pub fn fade(&mut self, window: (Nanos, Nanos), weight: f64) {
        if self.fading == 0.0 && self.fresh == 0 && self.young.is_empty() {
            return;
        }
        // Rate times the part of the window before the start: what the window could not see.
        let unseen = |&(at, x): &(Nanos, i64)| i128::from(x) * i128::from(at.min(window.1).since(window.0).0);
        let unseen = self.young.iter().map(unseen).sum::<i128>() as f64 / window.1.since(window.0).0 as f64;
        let left = (1.0 - weight) * (self.fading + self.fresh as f64) + weight * unseen;
        self.settle(left, window.0);
    }

    /// Reports that did not come were counted.
    pub fn miss(&mut self, missed: &Missed) {
        let left = missed.left(self.fading + self.fresh as f64, &self.young);
        self.settle(left, missed.last_window().0);
    }

    /// The estimate starts anew at nothing: what started or ended before is not in it any more and need not fade.
    pub fn forget(&mut self, now: Nanos) {
        self.young.retain(|&(at, _)| at > now);
        (self.fading, self.fresh) = (0.0, self.young.iter().map(|&(_, x)| x).sum());
    }

    /// What started by `from`, where a window began, is not young any more: should a later window reach farther back,
    /// it counts as seen all the same.
    fn settle(&mut self, left: f64, from: Nanos) {
        (self.fading, self.fresh) = (left, 0);
        let old = self.young.partition_point(|&(at, _)| at <= from);
        self.young.drain(..old);
        if self.young.is_empty() && self.fading.abs() < NOTHING {
            self.fading = 0.0;
        }
    }
}

/// Windows in a row whose reports did not come and count as reports all the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    /// Where the first of them begins.
    pub since: Nanos,
    /// How many, at least one.
    pub count: i32,
    /// How long each is.
    pub interval: Nanos,
    /// The weight of each.
    pub alpha: f64,
}

impl Missed {
    /// What `count` steps of the recursion leave of a sum; of work that starts within, by its own start.
    fn left(&self, sum: f64, young: &[(Nanos, i64)]) -> f64 {
        let keep = 1.0 - self.alpha;
        let all = keep.powi(self.count);
        let unseen = |&(at, x): &(Nanos, i64)| {
            let begins = at.since(self.since).0 as f64 / self.interval.0 as f64;
            if begins >= f64::from(self.count) {
                return x as f64 * (1.0 - all);
            }
            // Nothing of it is seen in the windows before its start, and a part in the one it starts in.
            let before = begins as i32;
            let rest = keep.powi(self.count - 1 - before);
            x as f64 * (rest * keep * (1.0 - keep.powi(before)) + rest * self.alpha * begins.fract())
        };
        all * sum + young.iter().map(unseen).sum::<f64>()
    }

    /// The last of them.
    pub fn last_window(&self) -> (Nanos, Nanos) {
        let after = |count: i32| self.since.plus(Nanos(self.interval.0.saturating_mul(count as u64)));
        (after(self.count - 1), after(self.count))
    }
}
