//! The numbers that readers derive from the same sums. There is no single "headroom". Best effort, admission and each
//! paper's estimator need different numbers, and the subtractions for one would be wrong for another.

use leeward_fabric::Load;

/// All known sums of one resource at one time, including a view's what-if.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// C: assumed capacity.
    pub capacity: f64,
    /// M: measured load; `None` where it is unknown.
    pub measured: Option<f64>,
    /// M_g: the part of M in guaranteed classes, where counters separate them.
    pub measured_guaranteed: Option<f64>,
    /// P - P_g: committed best-effort work that M does not show yet.
    pub pending: Unmeasured,
    /// P_g: promised work that M does not show yet.
    pub pending_guaranteed: Unmeasured,
    /// N: elastic flows, committed and measured.
    pub flows: f64,
    /// Rates committed to streams and envelopes.
    pub inelastic: i64,
    /// G: mean rates of reservations.
    pub reserved_mean: i64,
    /// R: rates of reservations.
    pub reserved_rate: i64,
}

/// Displayed numbers of a resource, in its native unit of work per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// Value of [`crate::View::measured`].
    pub measured: Option<Load>,
    /// L: current or expected load; `None` where it is unknown.
    pub load: Option<Load>,
    /// Value of [`crate::View::reserved`].
    pub reserved: Load,
    /// Value of [`crate::View::residual`].
    pub residual: Load,
    /// Value of [`crate::View::expected_capacity`].
    pub expected: Option<Load>,
}

/// Committed changes of load that telemetry does not show yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unmeasured {
    /// Work that has not started, or is held.
    pub held: f64,
    /// Work that starts or ends; negative where more ends.
    pub settling: f64,
}

impl Unmeasured {
    /// The expected load when the measured load is `measured`.
    fn on(self, measured: f64) -> f64 {
        (measured + self.settling).max(0.0) + self.held
    }
}

impl Sums {
    /// L: current or expected load. `None` where M is unknown.
    ///
    /// P contains a reserved workload until telemetry shows it in M. G covers reserved workloads that are currently
    /// quiet, and only where counters separate the classes.
    #[inline]
    pub fn load(&self) -> Option<f64> {
        let measured = self.measured?;
        Some(match self.measured_guaranteed {
            None => {
                let (best_effort, promised) = (self.pending, self.pending_guaranteed);
                let held = best_effort.held + promised.held;
                Unmeasured { held, settling: best_effort.settling + promised.settling }.on(measured)
            }
            Some(guaranteed) => {
                let guaranteed = guaranteed.min(measured);
                let promised = self.pending_guaranteed.on(guaranteed).max(self.reserved_mean as f64);
                self.pending.on(measured - guaranteed) + promised
            }
        })
    }

    /// max(0, limit C - L): the rate left for best-effort work. A resource with unknown load has no residual.
    pub fn residual(&self, limit: f64) -> f64 {
        self.load().map_or(0.0, |load| (limit * self.capacity - load).max(0.0))
    }

    /// max(residual, n/(N+n) (C - inelastic)): the rate that `n` new elastic flows would get beside the present ones
    /// (Choreo section 3.2).
    pub fn share(&self, flows: u32, limit: f64) -> f64 {
        let new = f64::from(flows.max(1));
        let elastic = (self.capacity - self.inelastic as f64).max(0.0);
        self.residual(limit).max(new / (self.flows.max(0.0) + new) * elastic)
    }

    /// (L + x) / C. `None` where L is unknown; infinite on a resource without capacity.
    #[inline]
    pub fn utilization_with(&self, extra: f64) -> Option<f64> {
        let load = (self.load()? + extra).max(0.0);
        Some(if self.capacity > 0.0 { load / self.capacity } else { f64::INFINITY })
    }

    /// limit C - R: the rate that may still be promised. Telemetry has no effect, because best effort yields to
    /// promises. Negative if the promised rates exceed the assumed capacity.
    pub fn unreserved(&self, reservable: f64) -> f64 {
        reservable * self.capacity - self.reserved_rate as f64
    }
}

/// C - min(C, M + pressure): the capacity that Sinbad expects to remain on a link (Sinbad pseudocode 2, line 30). The
/// result is clamped here and not where pressure is added. Entries may therefore leave in any order.
pub(crate) fn expected_capacity(capacity: f64, measured: f64, pressure: i64) -> f64 {
    (capacity - (measured + pressure as f64)).clamp(0.0, capacity)
}

/// The nearest whole number of units. (`f64::round` is a function call when compiled for old processors.)
pub(crate) fn whole(value: f64) -> Load {
    Load((value + 0.5f64.copysign(value)) as i64)
}
