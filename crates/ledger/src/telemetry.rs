//! Converts samples to estimates: the filter, the meaning of a missing report, and the effect of a new window on
//! pending rates.
//!
//! The filter is Sinbad's (section 6.2), with two additions. A report's weight depends on the time since the last one,
//! so that gaps do not slow the filter. A missing report makes a resource unknown. In the paper, a missing report
//! counts as a report of a full link; `missing: sinbad` selects this rule. The ledger never stores such reports. It
//! counts them on reading, so a late report replaces them.

use leeward_fabric::{Nanos, ResourceId, ResourceKind};

use crate::Ledger;
use crate::numbers::{Sums, Unmeasured};
use crate::pending::{MissedReports, Pending};
use crate::sample::{DiscardedSamples, Sample};
use crate::settings::{Initial, Missing};
use crate::state::{Gauge, Source};

/// Number of consecutive missing reports after which another one changes nothing.
pub(crate) const MOST_MISSED: u64 = 1 << 12;

impl Ledger {
    /// Accepts samples. The order of reports, and of samples within one, does not matter: only their windows do.
    pub fn report(&mut self, samples: &[Sample], now: Nanos) -> DiscardedSamples {
        self.advance(now);
        let mut discarded = DiscardedSamples::default();
        if samples.is_sorted_by_key(|sample| sample.window.1) {
            samples.iter().for_each(|sample| self.accept(sample, now, &mut discarded));
        } else {
            let mut order: Vec<&Sample> = samples.iter().collect();
            order.sort_by_key(|sample| sample.window.1);
            order.into_iter().for_each(|sample| self.accept(sample, now, &mut discarded));
        }
        self.derive_touched(now);
        self.epoch.0 += 1;
        discarded
    }

    fn accept(&mut self, sample: &Sample, now: Nanos, discarded: &mut DiscardedSamples) {
        match self.rejection(sample, now) {
            Some(count) => *count(discarded) += 1,
            None => {
                self.touch(sample.resource, sample.window, now);
                self.update_estimate(sample);
            }
        }
    }

    /// True if a report of this sample changes the estimate of its resource.
    pub fn is_news(&self, sample: &Sample, now: Nanos) -> bool {
        self.rejection(sample, now).is_none()
    }

    /// Count of the reason why a sample is rejected; `None` for an acceptable sample.
    fn rejection(&self, sample: &Sample, now: Nanos) -> Option<fn(&mut DiscardedSamples) -> &mut u64> {
        let (from, until) = sample.window;
        let Some(gauge) = self.gauges.get(sample.resource.index()) else {
            return Some(|discarded| &mut discarded.unknown);
        };
        // A clock that is ahead must not make every later window stale.
        let ahead = until > now.plus(self.settings.interval);
        if from >= until || ahead || sample.load.0 < 0 || sample.guaranteed.is_some_and(|load| load.0 < 0) {
            Some(|discarded| &mut discarded.invalid)
        } else if gauge.source == Source::Down {
            Some(|discarded| &mut discarded.down)
        } else if gauge.source != Source::Derived && until <= gauge.until {
            Some(|discarded| &mut discarded.stale)
        } else {
            None
        }
    }

    /// Moves the estimate of one resource by a sample newer than the last.
    fn update_estimate(&mut self, sample: &Sample) {
        let settings = &self.settings;
        let gauge = &mut self.gauges[sample.resource.index()];
        let commitments = &mut self.commitments[sample.resource.index()];
        let (from, until) = sample.window;
        let first = gauge.source != Source::Direct;
        if gauge.source == Source::Derived || (first && settings.missing == Missing::Strict) {
            // The resource's own counter starts here; earlier silence has no effect.
            gauge.until = from;
        } else if settings.missing == Missing::Sinbad {
            let gap = from.since(gauge.until).0;
            let windows = (gap as f64 / settings.interval.0 as f64).round() as u64;
            if let Some(missed) = settings.missed(gauge.until, windows) {
                // The missing windows fill the gap exactly, so their length may differ from the interval.
                let missed = MissedReports { interval: Nanos(gap / missed.count as u64), ..missed };
                gauge.measured = after_full_reports(gauge.measured, gauge.capacity as f64, &missed);
                commitments.pending.miss(&missed);
                commitments.pending_guaranteed.miss(&missed);
                gauge.until = from;
            }
        }
        let weight = match (first, settings.initial) {
            (true, Initial::First) => 1.0,
            _ => settings.weight(until.since(gauge.until)),
        };
        gauge.measured = (1.0 - weight) * gauge.measured + weight * sample.load.0 as f64;
        (gauge.until, gauge.source) = (until, Source::Direct);
        commitments.measured_guaranteed = sample.guaranteed.map(|load| {
            let load = load.min(sample.load).0 as f64;
            match (commitments.measured_guaranteed, settings.initial) {
                (None, Initial::First) => load,
                (before, _) => (1.0 - weight) * before.unwrap_or(0.0) + weight * load,
            }
        });
        self.window_passed(sample.resource, sample.window, weight, sample.load.0);
    }

    /// Effect of every new window on the pending rates of a resource, for own and derived estimates.
    pub(crate) fn window_passed(
        &mut self,
        resource: ResourceId,
        window: (Nanos, Nanos),
        weight: f64,
        latest: i64,
    ) {
        let gauge = &mut self.gauges[resource.index()];
        let commitments = &mut self.commitments[resource.index()];
        commitments.pending.fade(window, weight);
        commitments.pending_guaranteed.fade(window, weight);
        if !commitments.until_window.is_empty() {
            commitments.drop_until_window(gauge, |item| item.committed < window.1);
        }
        let hot = latest as f64 > self.settings.hot * gauge.capacity as f64;
        // A gap of more than half an interval ends the series: nothing measured the gap.
        let joins = window.0 <= commitments.hot_until.plus(Nanos(self.settings.interval.0 / 2));
        let since = commitments.hot_since.filter(|_| joins);
        commitments.hot_since = hot.then(|| since.unwrap_or(window.0));
        commitments.hot_until = window.1;
        (commitments.from, commitments.latest) = (window.0, latest);
    }

    /// Records that the sums above a resource change by a sample over `window`. Samples arrive in order of their ends.
    /// If one begins a new window of a sum, the previous window is complete and is summed first.
    fn touch(&mut self, resource: ResourceId, window: (Nanos, Nanos), now: Nanos) {
        let domain = match self.fabric.kind(resource) {
            ResourceKind::HostEgress | ResourceKind::HostIngress => {
                self.fabric.host_of(resource).map(|host| self.fabric.rack_of(host))
            }
            ResourceKind::RackUplink | ResourceKind::RackDownlink => {
                self.fabric.domain_of_link(resource).and_then(|rack| self.fabric.parent(rack))
            }
            _ => None,
        };
        let Some(domain) = domain else { return };
        if self.below[domain.index()].touched.is_some_and(|until| until <= window.0) {
            self.derive_touched(now);
        }
        let touched = &mut self.below[domain.index()].touched;
        if touched.is_none() {
            *touched = Some(window.1);
            self.touched.push(domain);
        }
    }

    // ---- reading --------------------------------------------------------------------------------------

    /// Number of reports missing by `now` that count as full ones. Only under `missing: sinbad`, for a resource with
    /// its own counter.
    #[inline]
    pub(crate) fn missed(&self, gauge: &Gauge, now: Nanos) -> Option<MissedReports> {
        if self.settings.missing == Missing::Strict || matches!(gauge.source, Source::Derived | Source::Down)
        {
            return None;
        }
        let late = now.since(gauge.until.plus(self.settings.grace()));
        self.settings.missed(gauge.until, late.0 / self.settings.interval.0)
    }

    /// M of a resource; `None` where it is unknown.
    #[inline]
    pub(crate) fn measured(&self, resource: ResourceId, now: Nanos) -> Option<f64> {
        let gauge = &self.gauges[resource.index()];
        match (gauge.source, self.settings.missing) {
            (Source::Down | Source::Derived, _) => Some(gauge.measured),
            (Source::None, Missing::Strict) => None,
            (Source::Direct, Missing::Strict) => {
                (now <= gauge.until.plus(self.unknown_after)).then_some(gauge.measured)
            }
            (Source::None | Source::Direct, Missing::Sinbad) => {
                let full = gauge.capacity as f64;
                let estimate = |missed| after_full_reports(gauge.measured, full, &missed);
                Some(self.missed(gauge, now).map_or(gauge.measured, estimate))
            }
        }
    }

    /// End of the window of the next report, which removes pressure.
    pub(crate) fn next_window(&self, resource: ResourceId, now: Nanos) -> Nanos {
        let (until, interval) = (self.gauges[resource.index()].until, self.settings.interval.0);
        let passed = now.since(until).0 / interval;
        until.plus(Nanos(interval.saturating_mul(passed.saturating_add(1))))
    }

    /// Time at which the estimate of a measured resource changes next without a report; `None` if never.
    pub(crate) fn changes_at(&self, resource: ResourceId, now: Nanos) -> Option<Nanos> {
        let gauge = &self.gauges[resource.index()];
        match (gauge.source, self.settings.missing) {
            (Source::Down | Source::Derived, _) | (Source::None, Missing::Strict) => None,
            (Source::Direct, Missing::Strict) => {
                let known_until = gauge.until.plus(self.unknown_after);
                (now <= known_until).then(|| known_until.plus(Nanos(1)))
            }
            (_, Missing::Sinbad) => {
                let count = self.missed(gauge, now).map_or(0, |missed| missed.count as u64);
                let next = Nanos(self.settings.interval.0.saturating_mul(count + 1));
                (count < MOST_MISSED).then(|| gauge.until.plus(self.settings.grace()).plus(next))
            }
        }
    }

    /// The last window of a measured resource, including missed windows that count as full.
    pub(crate) fn last_window(&self, resource: ResourceId, now: Nanos) -> (Nanos, Nanos) {
        let gauge = &self.gauges[resource.index()];
        match self.missed(gauge, now) {
            Some(missed) => missed.last_window(),
            None => (self.commitments[resource.index()].from, gauge.until),
        }
    }

    /// The sums of a resource. Every decision reads them for each rack, mostly for one number.
    #[inline]
    pub(crate) fn sums(&self, resource: ResourceId, now: Nanos) -> Sums {
        let gauge = &self.gauges[resource.index()];
        let commitments = &self.commitments[resource.index()];
        let missed = self.missed(gauge, now);
        let unmeasured = |pending: &Pending| Unmeasured {
            held: pending.held as f64,
            settling: match &missed {
                Some(missed) => pending.settling_after(missed),
                None => pending.settling(),
            },
        };
        Sums {
            capacity: gauge.capacity as f64,
            measured: self.measured(resource, now),
            measured_guaranteed: commitments.measured_guaranteed,
            pending: unmeasured(&commitments.pending),
            pending_guaranteed: unmeasured(&commitments.pending_guaranteed),
            flows: commitments.flows as f64 + commitments.cross_flows,
            inelastic: commitments.inelastic,
            reserved_mean: commitments.reserved_mean,
            reserved_rate: commitments.reserved_rate,
        }
    }
}

impl crate::LedgerSettings {
    /// `count` missed windows, starting at `since`.
    fn missed(&self, since: Nanos, count: u64) -> Option<MissedReports> {
        let count = count.min(MOST_MISSED) as i32;
        (count > 0).then_some(MissedReports { since, count, interval: self.interval, alpha: self.alpha })
    }
}

/// The estimate after missing reports that each counted as full: C - (C - v)(1 - alpha)^count.
pub(crate) fn after_full_reports(measured: f64, full: f64, missed: &MissedReports) -> f64 {
    full - (full - measured) * (1.0 - missed.alpha).powi(missed.count)
}
