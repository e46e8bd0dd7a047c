//! What is committed to a resource and not yet in its telemetry.
//!
//! The recursion. A report with weight a covers a window of which a share phi lies after the start of work of
//! rate x. The estimate moves to (1 - a) M + a (old + phi x), so what is still pending moves to
//! (1 - a) p + a (1 - phi) x, and M + p = old + x at every step. Nothing needs to be attributed: the sum over all
//! entries fades as one number, and only those that started since the last window (`young`) are told apart.
//! Work that leaves is work of rate -x.

use leeward_fabric::Nanos;

/// Below half a unit of work per second a fading sum is nothing.
const NOTHING: f64 = 0.5;

/// Rates committed to one resource, in its native unit.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Pending {
    /// What does not fade now: not started, or held. Integers, so that order does not matter.
    pub held: i64,
    /// What started and telemetry does not show yet; negative where work left and telemetry still shows it.
    fading: f64,
    /// Starts (and ends, as negative rates) that no window has covered from its beginning.
    young: Vec<(Nanos, i64)>,
}

impl Pending {
    /// All that is committed and not in telemetry.
    pub fn total(&self) -> f64 {
        self.fading + self.held as f64
    }

    /// Work of rate `x` starts at `at`.
    pub fn start(&mut self, at: Nanos, x: i64) {
        self.fading += x as f64;
        self.young.push((at, x));
    }

    /// A report of `weight` over `window` was taken in.
    pub fn fade(&mut self, window: (Nanos, Nanos), weight: f64) {
        if self.fading == 0.0 && self.young.is_empty() {
            return;
        }
        let length = window.1.since(window.0).0 as f64;
        let mut unseen = 0.0;
        for &(at, x) in &self.young {
            let phi = window.1.since(at.max(window.0)).0 as f64 / length;
            unseen += x as f64 * (1.0 - phi);
        }
        self.fading = (1.0 - weight) * self.fading + weight * unseen;
        self.young.retain(|&(at, _)| at >= window.1);
        if self.young.is_empty() && self.fading.abs() < NOTHING {
            self.fading = 0.0;
        }
    }
}
