//! Bodies of responses: enforcers, and workloads with the enforcement of their promises.

use std::net::IpAddr;

use leeward_agreements::{Grant, GrantedSlo, GrantedStage};
use leeward_records::schema::{Id, Time};
use leeward_records::{AppliedState, Clock, DecisionRecord, EnforcerKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bodies::AppliedWord;
use crate::burn::{BurnAlert, WINDOWS};
use crate::enforcers::EnforcerState;
use crate::seen::RequestCounters;
use crate::status::{PlaceState, PlaceStatus, PromiseState, PromiseStatus};

/// An enforcer.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Enforcer")]
pub struct EnforcerView {
    /// Name of the enforcer.
    pub enforcer: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves; null for all of the host.
    pub device: Option<String>,
    /// Addresses of the host.
    pub addresses: Vec<String>,
    /// `live` while its lease holds, else `expired`.
    #[schemars(extend("enum" = ["live", "expired"]))]
    pub state: &'static str,
    /// Start of this state.
    #[schemars(with = "Time")]
    pub since: String,
    /// Its last acknowledgement; null if this service has received none since it leads.
    #[schemars(with = "Option<Time>")]
    pub heard: Option<String>,
    /// Length of its lease, in seconds.
    pub lease_s: f64,
    /// Identifies the set of promises.
    #[schemars(with = "Id")]
    pub set: String,
    /// Number of the version that it has applied; null if it has applied none since it began.
    pub version: Option<u64>,
    /// Number of the version of the last change of its promises. It should apply this one.
    pub current: u64,
    /// Workloads that it applies.
    pub workloads: Vec<EnforcedWorkload>,
}

/// A workload at an enforcer.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct EnforcedWorkload {
    /// Name of the workload.
    pub workload: String,
    /// State of its priorities and limits.
    pub state: AppliedWord,
    /// Reason of a refusal, or the difference of a drift; null otherwise.
    pub detail: Option<String>,
    /// Counters since the enforcer began, as of its last acknowledgement.
    pub counters: RequestCounters,
}

impl EnforcerView {
    /// Converts an enforcer. `current` is the version of its promises.
    pub fn of(state: &EnforcerState, set: u64, current: u64, clock: &Clock) -> EnforcerView {
        let record = &state.record;
        let workload = |(name, applied): (&String, &AppliedState)| {
            let (word, detail) = match applied {
                AppliedState::Applied => (AppliedWord::Applied, None),
                AppliedState::Refused(reason) => (AppliedWord::Refused, Some(reason.clone())),
                AppliedState::Drifted(difference) => (AppliedWord::Drifted, Some(difference.clone())),
            };
            let counters = state.counters.get(name).copied().unwrap_or_default();
            EnforcedWorkload { workload: name.clone(), state: word, detail, counters }
        };
        EnforcerView {
            enforcer: record.name.clone(),
            kind: record.kind,
            host: record.host.clone(),
            device: record.device.clone(),
            addresses: record.addresses.iter().map(IpAddr::to_string).collect(),
            state: if record.expired { "expired" } else { "live" },
            since: clock.text(record.since),
            heard: state.heard.map(|at| clock.text(at)),
            lease_s: record.ttl.as_secs_f64(),
            set: set.to_string(),
            version: record.applied,
            current,
            workloads: record.workloads.iter().map(workload).collect(),
        }
    }
}

/// The response to an acknowledgement.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "AcknowledgedEnforcer")]
pub struct AcknowledgedView {
    /// The enforcer.
    #[serde(flatten)]
    pub enforcer: EnforcerView,
    /// Acknowledged workloads without a promise at this enforcer: it may have ended meanwhile.
    pub unknown: Vec<String>,
}

/// Enforcement of a promise at a place.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "EnforcementPlace")]
pub struct PlaceView {
    /// Kind of the enforcer that the place needs.
    pub kind: EnforcerKind,
    /// Host of the enforcer.
    pub host: String,
    /// Stage of the path that is enforced there.
    pub stage: String,
    /// State of the promise there; `absent` if no enforcer has registered.
    pub state: PlaceState,
    /// Enforcer in this state; null without one.
    pub enforcer: Option<String>,
    /// Number of the version that it has applied; null if it has applied none.
    pub version: Option<u64>,
    /// Reason of a refusal, or the difference of a drift; null otherwise.
    pub detail: Option<String>,
}

impl PlaceView {
    fn of(status: &PlaceStatus) -> PlaceView {
        let PlaceStatus { place, state, enforcer, applied, detail } = status.clone();
        let (kind, host, stage) = (place.kind, place.host, place.stage);
        PlaceView { kind, host, stage, state, enforcer, version: applied, detail }
    }
}

/// Burn rate in a window.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "BurnRate")]
pub struct BurnView {
    /// Length of the window, in seconds.
    pub window_s: f64,
    /// Share of late requests relative to the share that the SLO's percentile permits; null without requests.
    pub rate: Option<f64>,
}

/// Enforcement of a promise that holds, and what its requests experience.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Enforcement")]
pub struct EnforcementView {
    /// State of the promise.
    pub state: PromiseState,
    /// Places that it needs.
    pub places: Vec<PlaceView>,
    /// Counters of all enforcers, since the promise began or this service began to lead. Bytes and requests are those that
    /// the server sees.
    pub total: RequestCounters,
    /// Time since which requests and burn rates count: a new leader begins again. Null before the first acknowledgement of an
    /// enforcer at the server.
    #[schemars(with = "Option<Time>")]
    pub counted_since: Option<String>,
    /// Source of `seen_s`: an enforcer; null for a client, or without a latency.
    pub seen_by: Option<String>,
    /// Burn rates, the shortest window first.
    pub burn: Vec<BurnView>,
    /// Alerts about burn rates, the most urgent first.
    pub alerts: Vec<BurnAlert>,
}

impl EnforcementView {
    /// Converts the state of a promise.
    pub fn of(status: &PromiseStatus, clock: &Clock) -> EnforcementView {
        let burn = WINDOWS.iter().zip(status.rates);
        let burn = burn.map(|(window, rate)| BurnView { window_s: window.as_secs_f64(), rate });
        EnforcementView {
            state: status.state,
            places: status.places.iter().map(PlaceView::of).collect(),
            total: status.total,
            counted_since: status.counted_since.map(|at| clock.text(at)),
            seen_by: status.seen.as_ref().and_then(|seen| seen.enforcer.clone()),
            burn: burn.collect(),
            alerts: status.alerts.clone(),
        }
    }
}

/// A workload with a current or past guarantee.
#[derive(Serialize, JsonSchema)]
pub struct Workload {
    /// Name of the workload.
    name: String,
    /// Priority at the first stage with a queue; 0 is served first.
    priority: u32,
    /// The guaranteed SLO.
    slo: GrantedSlo,
    /// Upper bound on the latency of a request, in seconds. A stochastic bound limits the SLO's percentile of latency.
    /// Null if there is no bound.
    bound_s: Option<f64>,
    /// Method of the bound; null if there is no bound.
    by: Option<String>,
    /// Last latency at the SLO's percentile that a client or an enforcer reported, in seconds; null without a report.
    seen_s: Option<f64>,
    /// Host that sends the requests.
    client: String,
    /// Device of its volume; the host if no device is known.
    volume: String,
    /// Links and device that requests pass, in order.
    path: Vec<String>,
    /// The path by stages, with priorities and limits to enforce.
    stages: Vec<GrantedStage>,
    /// Number of the version of the promises in which its priorities or limits last changed.
    version: u64,
    /// Enforcement of the guarantee; null if it has ended, or if the default policy decided.
    enforcement: Option<EnforcementView>,
    /// Decision that made the guarantee.
    #[schemars(with = "Id")]
    decision: String,
    /// Time of the decision.
    #[schemars(with = "Time")]
    time: String,
    /// End of the guarantee; null while it holds.
    #[schemars(with = "Option<Time>")]
    released: Option<String>,
}

impl Workload {
    /// Converts a decision about a workload; `None` for other decisions. `status` is the state of a promise that holds, and
    /// `latency_s` the last latency that a client reported.
    pub fn of(
        record: &DecisionRecord,
        status: Option<&PromiseStatus>,
        latency_s: Option<f64>,
        clock: &Clock,
    ) -> Option<Workload> {
        let Grant { workload, client, volume, slo, bound_s, by, stages, .. } =
            record.details.promise.clone()?;
        let seen = status.and_then(|status| status.seen.as_ref()).map(|seen| seen.seconds);
        Some(Workload {
            name: workload,
            priority: stages.iter().find(|stage| !stage.queues.is_empty()).map_or(0, |stage| stage.priority),
            slo,
            bound_s,
            by,
            seen_s: seen.or(latency_s),
            client,
            volume,
            path: stages.iter().flat_map(|stage| stage.queues.clone()).collect(),
            stages,
            version: record.details.promise_version,
            enforcement: status.map(|status| EnforcementView::of(status, clock)),
            decision: record.id.to_string(),
            time: clock.text(record.at),
            released: record.released.map(|at| clock.text(at)),
        })
    }
}
