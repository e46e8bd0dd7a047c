//! State of a promise: where it is enforced, and what its requests experience.

use leeward_agreements::{Grant, GrantedSlo};
use leeward_fabric::Nanos;
use leeward_records::{AppliedState, Enforcer, EnforcerKind, PromisesVersion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::burn::{BurnAlert, Rates};
use crate::seen::RequestCounters;

/// A place where an enforcer applies a promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host of the enforcer.
    pub host: String,
    /// Device of the volume, for a place of kind `nfs` whose device is known.
    pub device: Option<String>,
    /// Stage of the path that is enforced there.
    pub stage: String,
}

impl Place {
    /// True if an enforcer of this kind at this host applies promises here. `device` is that of the enforcer; `None` for all
    /// of the host.
    pub fn is_of(&self, kind: EnforcerKind, host: &str, device: Option<&str>) -> bool {
        (self.kind, self.host.as_str()) == (kind, host)
            && device.is_none_or(|device| self.device.as_deref() == Some(device))
    }
}

/// Places where a promise is enforced: the network of the client for requests, the server, and the network of the server
/// for replies. Stages without queues need no enforcer.
pub fn places(grant: &Grant) -> Vec<Place> {
    let place = |stage: &leeward_agreements::GrantedStage| {
        let (kind, host, device) = match stage.stage.as_str() {
            "network-in" => (EnforcerKind::Net, &grant.client, None),
            "network-out" => (EnforcerKind::Net, &grant.server, None),
            _ => {
                let device = (grant.volume != grant.server).then(|| grant.volume.clone());
                (EnforcerKind::Nfs, &grant.server, device)
            }
        };
        Place { kind, host: host.clone(), device, stage: stage.stage.clone() }
    };
    grant.stages.iter().filter(|stage| !stage.queues.is_empty()).map(place).collect()
}

/// State of a promise at a place; the first one that an enforcer of the place has is that of the place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlaceState {
    /// An enforcer has applied the version of the promise or a later one.
    Applied,
    /// Another program has changed the priorities or limits.
    Drifted,
    /// The enforcer cannot apply the promise.
    Refused,
    /// The enforcer has not yet acknowledged this version of the promise.
    Pending,
    /// The lease of the enforcer has run out.
    Expired,
    /// No enforcer has registered for this place.
    Absent,
}

impl PlaceState {
    /// State at an enforcer of a promise with this version.
    pub fn at(enforcer: &Enforcer, workload: &str, version: u64) -> PlaceState {
        if enforcer.expired {
            return PlaceState::Expired;
        }
        match enforcer.workloads.get(workload) {
            Some(AppliedState::Refused(_)) => PlaceState::Refused,
            Some(AppliedState::Drifted(_)) => PlaceState::Drifted,
            Some(AppliedState::Applied) if enforcer.applied.is_some_and(|applied| applied >= version) => {
                PlaceState::Applied
            }
            Some(AppliedState::Applied) | None => PlaceState::Pending,
        }
    }
}

/// State of a promise at one of its places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceStatus {
    /// The place.
    pub place: Place,
    /// State of the promise there.
    pub state: PlaceState,
    /// Enforcer in this state; `None` without one.
    pub enforcer: Option<String>,
    /// Number of the version that it has applied.
    pub applied: Option<u64>,
    /// Reason of a refusal, or the difference of a drift.
    pub detail: Option<String>,
}

/// State of a promise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromiseState {
    /// It was decided, and no enforcer has applied it yet.
    Decided,
    /// Some of its places are enforced, and the others have no enforcer or wait for it.
    Partial,
    /// All of its places are enforced.
    Enforced,
    /// All of its places are enforced, and the latency of its requests is known.
    Seen,
    /// At one of its places, the lease of the enforcer has run out, or the enforcer reports a drift or a refusal.
    Unenforced,
}

impl PromiseState {
    /// All states.
    pub const ALL: [PromiseState; 5] = [
        PromiseState::Decided,
        PromiseState::Partial,
        PromiseState::Enforced,
        PromiseState::Seen,
        PromiseState::Unenforced,
    ];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            PromiseState::Decided => "decided",
            PromiseState::Partial => "partial",
            PromiseState::Enforced => "enforced",
            PromiseState::Seen => "seen",
            PromiseState::Unenforced => "unenforced",
        }
    }

    /// State of a promise with these places. A promise without places, such as that of a client on its server without a
    /// device, is enforced: nothing has to apply it.
    pub fn of(places: &[PlaceStatus], is_seen: bool) -> PromiseState {
        let count =
            |states: &[PlaceState]| places.iter().filter(|place| states.contains(&place.state)).count();
        if count(&[PlaceState::Drifted, PlaceState::Refused, PlaceState::Expired]) > 0 {
            return PromiseState::Unenforced;
        }
        match count(&[PlaceState::Applied]) {
            0 if !places.is_empty() => PromiseState::Decided,
            applied if applied < places.len() => PromiseState::Partial,
            _ if is_seen => PromiseState::Seen,
            _ => PromiseState::Enforced,
        }
    }
}

/// A latency at the percentile of an SLO.
#[derive(Clone, PartialEq, Debug)]
pub struct Reported {
    /// Time of the report.
    pub at: Nanos,
    /// Latency in seconds.
    pub seconds: f64,
    /// Enforcer that reported it; `None` for a client.
    pub enforcer: Option<String>,
}

/// Everything about a promise in force.
#[derive(Clone, PartialEq, Debug)]
pub struct PromiseStatus {
    /// Name of the workload.
    pub workload: String,
    /// Number of the version in which its priorities or limits last changed.
    pub version: u64,
    /// The SLO.
    pub slo: GrantedSlo,
    /// Bound on the latency of a request, in seconds; `None` without one.
    pub bound_s: Option<f64>,
    /// State of the promise.
    pub state: PromiseState,
    /// Its places.
    pub places: Vec<PlaceStatus>,
    /// Last latency at the percentile of the SLO.
    pub seen: Option<Reported>,
    /// Counters of all enforcers, since the promise began or this service began to lead. Bytes and requests are those that
    /// the server sees.
    pub total: RequestCounters,
    /// Time since which requests and burn rates count; `None` before the first acknowledgement of an enforcer at the server.
    pub counted_since: Option<Nanos>,
    /// Burn rates by window.
    pub rates: Rates,
    /// Alerts about burn rates.
    pub alerts: Vec<BurnAlert>,
}

impl PromiseStatus {
    /// Upper estimate of the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let place = |status: &PlaceStatus| {
            let texts = [&status.place.device, &status.enforcer, &status.detail];
            512 + status.place.host.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
        };
        1_024 + self.workload.len() + self.places.iter().map(place).sum::<usize>()
    }
}

/// Promises and enforcers at one time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PromisesTable {
    /// Version of the set.
    pub version: PromisesVersion,
    /// Promises by name of the workload.
    pub promises: Vec<PromiseStatus>,
    /// Number of enforcers with a lease.
    pub live: usize,
    /// Number of enforcers whose lease has run out.
    pub expired: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_places_is_enforced() {
        assert_eq!(PromiseState::of(&[], false), PromiseState::Enforced);
        assert_eq!(PromiseState::of(&[], true), PromiseState::Seen);
        let place =
            Place { kind: EnforcerKind::Net, host: "c".to_owned(), device: None, stage: String::new() };
        let (state, enforcer, applied, detail) = (PlaceState::Absent, None, None, None);
        let absent = PlaceStatus { place, state, enforcer, applied, detail };
        assert_eq!(PromiseState::of(&[absent], true), PromiseState::Decided);
    }
}
