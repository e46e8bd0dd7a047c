//! Policies `snc`, `dnc`, `best` and `none`: admission by a bound on every workload (SLO section 4.3), or
//! without any bound.

use leeward_fabric::input::InputError;
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::join::{best_effort, joined};
use super::{Admission, AdmissionError, Arrival, Outcome};
use crate::bound::{BoundSettings, Bounds, Method, Miss, SystemError, Unbounded, Unit, attainable};
use crate::priorities::{LEVELS, by_slo, merge, priority_meister};
use crate::{Promise, System};

/// Settings of `snc`, `dnc`, `best` and `none`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BoundedSettings {
    /// Settings of the bounds.
    pub bounds: BoundSettings,
    /// Number of priorities that networks distinguish; if there are more, neighbouring ones are merged. Default 7.
    pub levels: u32,
    /// Method of the bound of policy `dnc`, and of the search of `best`: `dnc` (curves), `priority-meister` or `plp`.
    /// Default `dnc`.
    pub method: Method,
    /// For `dnc` and `best`: PriorityMeister searches for priorities if the order by SLO does not suffice. The search
    /// computes up to n bounds for each of n workloads, `best` those of `method`. Default true.
    pub search: bool,
}

impl Default for BoundedSettings {
    fn default() -> Self {
        BoundedSettings {
            bounds: BoundSettings::default(),
            levels: LEVELS,
            method: Method::Dnc,
            search: true,
        }
    }
}

/// Admission by bounds. Priorities follow the SLOs, the tightest first. The policy admits an arrival if the bounds of
/// the arrival, and of all workloads that it may disturb, are within their SLOs. Workloads that had no bound before the
/// arrival, because a link lost capacity, do not count.
#[derive(Clone, Debug)]
pub struct Bounded {
    name: &'static str,
    /// Method of the bound; `None` admits all.
    method: Option<Method>,
    settings: BoundedSettings,
}

pub(super) const SNC: Registration<dyn Admission> = Registration {
    name: "snc",
    aliases: &[],
    summary: "admits a workload if percentiles of latency, by stochastic network calculus, stay within all SLOs",
    source: "Zhu et al., SNC-Meister (SoCC 2016); SLO section 4.2",
    schema: schema::<BoundedSettings>,
    make: |text| Ok(Box::new(Bounded::new("snc", Some(Method::Snc), settings("snc", text)?)?)),
};

pub(super) const DNC: Registration<dyn Admission> = Registration {
    name: "dnc",
    aliases: &[],
    summary: "admits a workload if PriorityMeister finds priorities that keep all SLOs in the worst case",
    source: "Zhu et al., PriorityMeister (SoCC 2014); SLO section 3.2",
    schema: schema::<BoundedSettings>,
    make: |text| {
        let settings = searching("dnc", text)?;
        Ok(Box::new(Bounded::new("dnc", Some(settings.method), settings)?))
    },
};

pub(super) const BEST: Registration<dyn Admission> = Registration {
    name: "best",
    aliases: &[],
    summary: "admits a workload if, in some order that it tries, each SLO has a bound, worst-case or stochastic, within it",
    source: "this project; SLO sections 3.2 and 4.2",
    schema: schema::<BoundedSettings>,
    make: |text| Ok(Box::new(Bounded::new("best", Some(Method::Best), searching("best", text)?)?)),
};

pub(super) const NONE: Registration<dyn Admission> = Registration {
    name: "none",
    aliases: &[],
    summary: "admits every workload, without any bound",
    source: "SLO section 4.4",
    schema: schema::<BoundedSettings>,
    make: |text| Ok(Box::new(Bounded::new("none", None, settings("none", text)?)?)),
};

/// Settings of a policy that searches for priorities.
fn searching(name: &'static str, text: &str) -> Result<BoundedSettings, InputError> {
    let settings: BoundedSettings = settings(name, text)?;
    if !matches!(settings.method, Method::Dnc | Method::PriorityMeister | Method::Plp) {
        return Err(setting_error(name, "method", "must be dnc, priority-meister or plp"));
    }
    Ok(settings)
}

impl Bounded {
    fn new(
        name: &'static str,
        method: Option<Method>,
        settings: BoundedSettings,
    ) -> Result<Bounded, InputError> {
        if settings.levels == 0 {
            return Err(setting_error(name, "levels", "must be at least 1"));
        }
        settings.bounds.check().map_err(|error| setting_error(name, "bounds", error.to_string()))?;
        Ok(Bounded { name, method, settings })
    }

    /// Promises that the last promise of a system may disturb, in reverse order. `reordered` is true if priorities of
    /// other promises changed.
    fn disturbed(&self, system: &System, reordered: bool) -> Vec<usize> {
        let last = system.promises.len() - 1;
        let own = &system.promises[last];
        let is_dependency = |system: &System| {
            system.promises.iter().any(|promise| promise.workload.dependencies.contains(&own.workload.name))
        };
        let all = reordered || !own.workload.dependencies.is_empty() || is_dependency(system);
        // In fluid service, lower priorities cause no delay.
        let only_after = self.settings.bounds.unit == Unit::Fluid;
        let groups = system.queue_groups();
        let touched = |at: &usize| {
            all || system.promises[*at].route.iter().zip(&system.promises[*at].priorities).any(
                |(route, &priority)| {
                    own.route.iter().zip(&own.priorities).any(|(own_route, &own_priority)| {
                        groups[own_route[0]] == groups[route[0]] && (!only_after || priority >= own_priority)
                    })
                },
            )
        };
        std::iter::once(last).chain((0..last).filter(touched)).collect()
    }

    /// True if a promise had no bound before the arrival, because its path is overloaded: a link lost
    /// capacity. The promise's SLO is lost until the link is repaired, and the promise blocks no admission.
    fn is_lost(&self, system: &System, promise: usize, method: Method) -> bool {
        let before =
            Bounds::new(system, self.settings.bounds).map(|mut bounds| bounds.bound(promise, method));
        matches!(before, Ok(Err(Unbounded::Overload { .. } | Unbounded::Unstable { .. })))
    }
}

/// Ranks of the priorities of all stages.
fn priority_ranks(promises: &[Promise]) -> Vec<usize> {
    let all: Vec<u32> = promises.iter().flat_map(|promise| promise.priorities.iter().copied()).collect();
    let mut ranks = all.clone();
    ranks.sort_unstable();
    ranks.dedup();
    all.iter().map(|own| ranks.partition_point(|rank| rank < own)).collect()
}

impl Admission for Bounded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn by(&self) -> Option<(Method, BoundSettings)> {
        self.method.map(|method| (method, self.settings.bounds))
    }

    fn sets_rates(&self) -> bool {
        false
    }

    fn arrive(&self, system: &System, arrival: Arrival) -> Result<Outcome, SystemError> {
        let mut with = joined(system, &arrival);
        Bounds::new(&with, self.settings.bounds)?;
        let by = self.by();
        if arrival.workload.slo.is_none() {
            return best_effort(system, &arrival, None, by);
        }
        let Some(method) = self.method else {
            by_slo(&mut with);
            let merged = merge(&mut with, self.settings.levels);
            return Ok(Outcome::promised(with, merged));
        };
        if let Err(error) = attainable(&arrival.workload) {
            return best_effort(system, &arrival, Some(error.into()), by);
        }
        by_slo(&mut with);
        let merged = merge(&mut with, self.settings.levels);
        let reordered =
            priority_ranks(&system.promises) != priority_ranks(&with.promises[..system.promises.len()]);
        let which = self.disturbed(&with, reordered);
        let mut bounds = Bounds::new(&with, self.settings.bounds)?;
        let last = with.promises.len() - 1;
        let counts = |miss: &Miss| miss.promise == last || !self.is_lost(system, miss.promise, method);
        let mut misses = which.into_iter().filter_map(|promise| bounds.miss(promise, method));
        let Some(miss) = misses.find(counts) else {
            return Ok(Outcome::promised(with, merged));
        };
        let own = miss.promise == last;
        let refused = AdmissionError::of(miss, &bounds);
        if !matches!(method, Method::Best) && self.name != "dnc" || !self.settings.search {
            return best_effort(system, &arrival, Some(refused), by);
        }
        let mut bound = |system: &System, promise: usize| {
            Bounds::new(system, self.settings.bounds)?.bound(promise, self.settings.method)
        };
        let mut ordered = priority_meister(&with, self.settings.levels, &mut bound);
        if method == Method::Best && !ordered.missed.is_empty() {
            // The order that the search found may keep all SLOs by other bounds.
            let mut bounds = Bounds::new(&ordered.system, self.settings.bounds)?;
            ordered.missed = bounds.misses(0..ordered.system.promises.len(), Method::Best);
        }
        ordered.missed.retain(counts);
        // A miss of the arriving workload is more informative for the caller than a miss that the search caused for
        // another workload.
        let own_of_search = ordered.missed.iter().find(|miss| miss.promise == last);
        let refused = match own_of_search.or(ordered.missed.first()) {
            None => {
                let promised = Outcome::promised(ordered.system, ordered.merged);
                return Ok(Outcome { searched: true, ..promised });
            }
            Some(_) if own => refused,
            Some(miss) => AdmissionError::of(miss.clone(), &bounds),
        };
        best_effort(system, &arrival, Some(refused), by)
    }
}
