//! Changes of promises and of enforcers, and their events.

use std::collections::BTreeMap;

use leeward_fabric::Nanos;
use leeward_records::schema::Time;
use leeward_records::{Clock, Enforcer, EnforcerKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::burn::BurnAlert;
use crate::status::{PromiseState, PromiseStatus, PromisesTable};
use crate::views::EnforcementView;

/// A promise with another state, another version, or other alerts than before.
#[derive(Clone, PartialEq, Debug)]
pub struct PromiseChange {
    /// Time of the observation.
    pub at: Nanos,
    /// State before; `None` if the promise is new, or if this service did not know it.
    pub before: Option<PromiseState>,
    /// Alerts before.
    pub alerts_before: Vec<BurnAlert>,
    /// The promise now.
    pub status: PromiseStatus,
}

impl PromiseChange {
    /// Changes from one table to another, by name of the workload. Promises that have ended are none of them: their
    /// decisions were released.
    pub fn between(last: &PromisesTable, table: &PromisesTable, at: Nanos) -> Vec<PromiseChange> {
        let before: BTreeMap<&str, &PromiseStatus> =
            last.promises.iter().map(|status| (status.workload.as_str(), status)).collect();
        let parts = |status: &PromiseStatus| (status.state, status.version, status.alerts.clone());
        let change = |status: &PromiseStatus| {
            let before = before.get(status.workload.as_str()).copied();
            (before.map(parts) != Some(parts(status))).then(|| PromiseChange {
                at,
                before: before.map(|before| before.state),
                alerts_before: before.map(|before| before.alerts.clone()).unwrap_or_default(),
                status: status.clone(),
            })
        };
        table.promises.iter().filter_map(change).collect()
    }

    /// Alerts that were not there before.
    pub fn new_alerts(&self) -> impl Iterator<Item = BurnAlert> {
        self.status.alerts.iter().copied().filter(move |alert| !self.alerts_before.contains(alert))
    }
}

/// The lease of an enforcer began, or ran out. This has few values of the enforcer, because an acknowledgement may have
/// many workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnforcerChange {
    /// Name of the enforcer.
    pub enforcer: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host of the enforcer.
    pub host: String,
    /// True if its lease ran out.
    pub expired: bool,
    /// Time of the change.
    pub since: Nanos,
}

impl EnforcerChange {
    /// The last change of an enforcer.
    pub fn of(enforcer: &Enforcer) -> EnforcerChange {
        EnforcerChange {
            enforcer: enforcer.name.clone(),
            kind: enforcer.kind,
            host: enforcer.host.clone(),
            expired: enforcer.expired,
            since: enforcer.since,
        }
    }
}

/// A promise has another state, another version, or other alerts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PromiseEvent {
    /// Name of the workload.
    pub workload: String,
    /// Time of the observation.
    #[schemars(with = "Time")]
    pub at: String,
    /// State before; null if the promise is new, or if this service did not know it.
    pub before: Option<PromiseState>,
    /// Number of the version of the promises in which its priorities or limits last changed.
    pub version: u64,
    /// Last latency at the percentile of the SLO, in seconds; null without one.
    pub seen_s: Option<f64>,
    /// Enforcement of the promise now.
    pub enforcement: EnforcementView,
}

impl PromiseEvent {
    /// Converts a change.
    pub fn of(change: &PromiseChange, clock: &Clock) -> PromiseEvent {
        let PromiseChange { at, before, status, .. } = change;
        PromiseEvent {
            workload: status.workload.clone(),
            at: clock.text(*at),
            before: *before,
            version: status.version,
            seen_s: status.seen.as_ref().map(|seen| seen.seconds),
            enforcement: EnforcementView::of(status, clock),
        }
    }
}

/// The lease of an enforcer began, or ran out.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct EnforcerEvent {
    /// Name of the enforcer.
    pub enforcer: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// `live` while its lease holds, else `expired`.
    #[schemars(extend("enum" = ["live", "expired"]))]
    pub state: &'static str,
    /// Start of this state.
    #[schemars(with = "Time")]
    pub since: String,
}

impl EnforcerEvent {
    /// Converts a change.
    pub fn of(change: &EnforcerChange, clock: &Clock) -> EnforcerEvent {
        let EnforcerChange { enforcer, kind, host, expired, since } = change;
        EnforcerEvent {
            enforcer: enforcer.clone(),
            kind: *kind,
            host: host.clone(),
            state: if *expired { "expired" } else { "live" },
            since: clock.text(*since),
        }
    }
}

#[cfg(test)]
mod tests {
    use leeward_agreements::GrantedSlo;

    use super::*;
    use crate::seen::RequestCounters;

    fn table(promises: &[(&str, PromiseState, &[BurnAlert])]) -> PromisesTable {
        let status = |&(workload, state, alerts): &(&str, PromiseState, &[BurnAlert])| PromiseStatus {
            workload: workload.to_owned(),
            version: 1,
            slo: GrantedSlo { percentile: 99.0, latency_s: 0.05 },
            bound_s: None,
            state,
            places: Vec::new(),
            seen: None,
            total: RequestCounters::default(),
            counted_since: None,
            rates: [None; 5],
            alerts: alerts.to_vec(),
        };
        PromisesTable { promises: promises.iter().map(status).collect(), ..PromisesTable::default() }
    }

    #[test]
    fn states_and_alerts_that_differ_are_changes() {
        let last = table(&[
            ("a", PromiseState::Seen, &[]),
            ("b", PromiseState::Seen, &[]),
            ("c", PromiseState::Seen, &[BurnAlert::Slow]),
            ("gone", PromiseState::Seen, &[]),
        ]);
        let now = table(&[
            ("a", PromiseState::Seen, &[]),
            ("b", PromiseState::Unenforced, &[]),
            ("c", PromiseState::Seen, &[BurnAlert::Fast, BurnAlert::Slow]),
            ("new", PromiseState::Decided, &[]),
        ]);
        let changes = PromiseChange::between(&last, &now, Nanos(5));
        let parts = |change: &PromiseChange| (change.status.workload.clone(), change.before);
        let expected = [("b", Some(PromiseState::Seen)), ("c", Some(PromiseState::Seen)), ("new", None)];
        assert_eq!(
            changes.iter().map(parts).collect::<Vec<_>>(),
            expected.map(|(workload, before)| (workload.to_owned(), before))
        );
        assert_eq!(PromiseChange::between(&now, &now, Nanos(6)), []);
    }
}
