//! Estimates that leave a ledger, for a ledger that continues with them: after a restart, or after a change of the cluster.
//!
//! A ledger that continues has its entries first. Windows that the estimates already contain also cover work that started
//! within them, so the rates of this work fade as those windows would have faded them. The series of windows is not
//! stored; it counts as one window an interval, the last of which is the estimate's. Work that ended lately is missing,
//! so its link looks fuller than it is for a few intervals, and never emptier.

use leeward_fabric::{Nanos, ResourceId};

use crate::Ledger;
use crate::pending::MissedReports;
use crate::state::Source;
use crate::telemetry::MOST_MISSED;

/// State of one resource from telemetry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The link or device.
    pub resource: ResourceId,
    /// The values.
    pub values: EstimateValues,
}

/// Values of an estimate, without the name of the resource.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EstimateValues {
    /// Estimated load after the last window, in the resource's native unit of work per second.
    pub measured: f64,
    /// The part of the load in guaranteed classes, where counters separate classes.
    pub guaranteed: Option<f64>,
    /// The last window.
    pub window: (Nanos, Nanos),
    /// The last sample, without the filter.
    pub latest: i64,
    /// Start of the series of hot windows, if the last window was hot.
    pub hot_since: Option<Nanos>,
    /// True if the load is the sum of the loads below, for a link without a counter.
    pub derived: bool,
}

impl Ledger {
    /// The estimate of a resource; `None` without a report, and for a host that is down.
    pub fn estimate(&self, resource: ResourceId) -> Option<Estimate> {
        let gauge = self.gauges.get(resource.index())?;
        let derived = match gauge.source {
            Source::Direct => false,
            Source::Derived => true,
            Source::None | Source::Down => return None,
        };
        let commitments = &self.commitments[resource.index()];
        let values = EstimateValues {
            measured: gauge.measured,
            guaranteed: commitments.measured_guaranteed,
            window: (commitments.from, gauge.until),
            latest: commitments.latest,
            hot_since: commitments.hot_since,
            derived,
        };
        Some(Estimate { resource, values })
    }

    /// Continues with the estimates of another ledger that are newer than those of this ledger. Returns the resources of
    /// the estimates that count now. An estimate that no report can give is ignored.
    pub fn restore(&mut self, estimates: &[Estimate], now: Nanos) -> Vec<ResourceId> {
        self.advance(now);
        let mut restored = Vec::new();
        for Estimate { resource, values } in estimates {
            if self.accepts(*resource, values, now) {
                self.continue_with(*resource, values);
                restored.push(*resource);
            }
        }
        self.derive_all(now);
        self.epoch.0 += 1;
        restored
    }

    /// True if the values are possible and newer than those of the resource.
    fn accepts(&self, resource: ResourceId, values: &EstimateValues, now: Nanos) -> bool {
        let Some(gauge) = self.gauges.get(resource.index()) else { return false };
        let &EstimateValues { measured, guaranteed, window: (from, until), latest, hot_since, derived } =
            values;
        let is_load = |load: f64| load.is_finite() && load >= 0.0;
        let is_possible = is_load(measured)
            && guaranteed.is_none_or(|load| is_load(load) && load <= measured.max(latest as f64))
            && latest >= 0
            && hot_since.is_none_or(|since| since < until)
            // A sum has no window before its parts have one.
            && (from < until || (derived && until == Nanos(0)))
            && until <= now.plus(self.settings.interval);
        let is_newer = match gauge.source {
            Source::Down => false,
            Source::Direct => !derived && until > gauge.until,
            Source::None | Source::Derived => !derived || until >= gauge.until,
        };
        is_possible && is_newer
    }

    fn continue_with(&mut self, resource: ResourceId, values: &EstimateValues) {
        let interval = self.settings.interval;
        let alpha = self.settings.alpha;
        let gauge = &mut self.gauges[resource.index()];
        let commitments = &mut self.commitments[resource.index()];
        let (from, until) = values.window;
        // Under `missing: sinbad` the windows of a sum pass without reports.
        let passed = if gauge.source == Source::Derived { gauge.until } else { Nanos(0) };
        gauge.measured = values.measured;
        gauge.until = until;
        gauge.source = if values.derived { Source::Derived } else { Source::Direct };
        commitments.measured_guaranteed = values.guaranteed;
        (commitments.from, commitments.latest) = (from, values.latest);
        (commitments.hot_since, commitments.hot_until) = (values.hot_since, until);
        let count = (until.since(passed).0 / interval.0).min(MOST_MISSED);
        if count > 0 {
            let since = until.since(Nanos(interval.0.saturating_mul(count)));
            let windows = MissedReports { since, count: count as i32, interval, alpha };
            commitments.pending.miss(&windows);
            commitments.pending_guaranteed.miss(&windows);
        }
        commitments.drop_until_window(gauge, |item| item.committed < until);
    }
}
