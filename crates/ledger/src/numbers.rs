//! The numbers that readers derive from the same sums. There is no single "headroom": best effort, admission and
//! each paper's estimator ask different questions, and one answer's subtractions would be wrong in another.

use leeward_fabric::Load;

/// Everything the ledger knows about one resource at one moment, a view's what-if included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// C: what is believed to be its capacity.
    pub capacity: f64,
    /// M: what telemetry shows; `None` where it cannot be seen.
    pub measured: Option<f64>,
    /// M_g: the part of M in classes with a promise, where counters tell.
    pub measured_guaranteed: Option<f64>,
    /// P - P_g: best-effort work committed and not yet in M.
    pub pending: Unseen,
    /// P_g: promised work committed and not yet in M.
    pub pending_guaranteed: Unseen,
    /// N: elastic flows, committed and measured.
    pub flows: f64,
    /// Rates committed to streams and envelopes.
    pub inelastic: i64,
    /// G: mean rates of reservations.
    pub reserved_mean: i64,
    /// R: rates of reservations.
    pub reserved_rate: i64,
}

/// What readers are shown of a resource, in its native unit of work a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// As [`crate::View::measured`] says.
    pub measured: Option<Load>,
    /// L: what is, or soon will be, carried; `None` where it cannot be seen.
    pub load: Option<Load>,
    /// As [`crate::View::reserved`] says.
    pub reserved: Load,
    /// As [`crate::View::residual`] says.
    pub residual: Load,
    /// As [`crate::View::expected_capacity`] says.
    pub expected: Option<Load>,
}

/// Work that telemetry does not show as it will be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unseen {
    /// Not started, or held.
    pub held: f64,
    /// Starting or ending; negative where more ends.
    pub settling: f64,
}

impl Unseen {
    /// What `measured` will be. No more work can leave than is there, and what is yet to come does not make up for
    /// it.
    fn on(self, measured: f64) -> f64 {
        (measured + self.settling).max(0.0) + self.held
    }
}

impl Sums {
    /// L: what is, or soon will be, carried. `None` where it cannot be seen.
    ///
    /// Reserved workloads are in M already, or in P until M shows them; G covers those that happen to be quiet,
    /// and only where counters tell the classes apart.
    #[inline]
    pub fn load(&self) -> Option<f64> {
        let measured = self.measured?;
        Some(match self.measured_guaranteed {
            None => {
                let (best_effort, promised) = (self.pending, self.pending_guaranteed);
                let held = best_effort.held + promised.held;
                Unseen { held, settling: best_effort.settling + promised.settling }.on(measured)
            }
            Some(guaranteed) => {
                let guaranteed = guaranteed.min(measured);
                let promised = self.pending_guaranteed.on(guaranteed).max(self.reserved_mean as f64);
                self.pending.on(measured - guaranteed) + promised
            }
        })
    }

    /// max(0, limit C - L): what best-effort work may still use. What cannot be seen takes none.
    pub fn residual(&self, limit: f64) -> f64 {
        self.load().map_or(0.0, |load| (limit * self.capacity - load).max(0.0))
    }

    /// max(residual, n/(N+n) (C - inelastic)): what `n` new elastic flows would get beside those there
    /// (Choreo section 3.2).
    pub fn share(&self, flows: u32, limit: f64) -> f64 {
        let new = f64::from(flows.max(1));
        let elastic = (self.capacity - self.inelastic as f64).max(0.0);
        self.residual(limit).max(new / (self.flows.max(0.0) + new) * elastic)
    }

    /// (L + x) / C. `None` where L cannot be seen; infinite on a resource without capacity.
    #[inline]
    pub fn utilization_with(&self, extra: f64) -> Option<f64> {
        let load = (self.load()? + extra).max(0.0);
        Some(if self.capacity > 0.0 { load / self.capacity } else { f64::INFINITY })
    }

    /// limit C - R: what may still be promised. Telemetry plays no part; best effort yields. Negative where more is
    /// promised than the resource is now believed to carry.
    pub fn unreserved(&self, reservable: f64) -> f64 {
        reservable * self.capacity - self.reserved_rate as f64
    }
}

/// C - min(C, M + pressure): what Sinbad expects a link to have left (Sinbad pseudocode 2, line 30).
/// Clamped here and not where pressure is added, so that it stays right in whatever order entries leave.
pub(crate) fn expected_capacity(capacity: f64, measured: f64, pressure: i64) -> f64 {
    (capacity - (measured + pressure as f64)).clamp(0.0, capacity)
}

/// A number as a whole one of units, the nearest. (`f64::round` is a call where the processor may be old.)
pub(crate) fn whole(value: f64) -> Load {
    Load((value + 0.5f64.copysign(value)) as i64)
}
