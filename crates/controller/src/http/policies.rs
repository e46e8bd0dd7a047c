//! Available policies, by kind of decision.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_moves as moves;
use leeward_placement::{replicas, tasks};
use leeward_registry::{PolicySpec, Registration, Registry};
use leeward_slo::{admit, limits};
use schemars::JsonSchema;
use serde::Serialize;

use super::state::{ApiResult, SharedState};

/// Available policies, by kind of decision.
#[derive(Serialize, JsonSchema)]
pub struct Policies {
    /// Placement of copies of blocks.
    replicas: Vec<Policy>,
    /// Placement of tasks.
    tasks: Vec<Policy>,
    /// Moves of tasks from hot racks.
    moves: Vec<Policy>,
    /// Admission of workloads.
    workload: Vec<Policy>,
    /// Choice of limits for volumes that need a place.
    volumes: Vec<Policy>,
}

/// A policy.
#[derive(Serialize, JsonSchema)]
pub struct Policy {
    /// Name of the policy.
    name: &'static str,
    /// Value for requests: the name, plus the settings if this service uses the policy.
    label: String,
    /// True if this service uses the policy.
    decides: bool,
    /// True if it is the default policy, which decides in the modes `off` and `shadow`.
    is_default: bool,
    /// Summary in one sentence.
    summary: &'static str,
    /// Source: paper and section.
    source: &'static str,
}

impl Policy {
    fn of<T: ?Sized>(registration: &Registration<T>, [own, default]: [Option<&str>; 2]) -> Policy {
        let Registration { name, summary, source, .. } = *registration;
        let names = |label: &&str| label.split(':').next() == Some(name);
        let (own, default) = (own.filter(names), default.filter(names));
        let label = own.or(default).unwrap_or(name).to_owned();
        Policy { name, label, decides: own.is_some(), is_default: default.is_some(), summary, source }
    }
}

fn all<T: ?Sized>(registry: &Registry<T>, labels: [Option<&str>; 2]) -> Vec<Policy> {
    registry.iter().map(|registration| Policy::of(registration, labels)).collect()
}

pub async fn list(State(app): SharedState) -> ApiResult {
    let configured = app.configured.load();
    let (labels, policies) = (&configured.labels, &configured.admission);
    let label = |policy: &'_ PolicySpec| Some(policy.label.clone());
    let [admission, default_admission] = [label(&policies.admission), label(&policies.default_admission)];
    let [volumes, default_volumes] = [label(&policies.volumes), label(&policies.default_volumes)];
    let admission = [admission.as_deref(), default_admission.as_deref()];
    let volumes = [volumes.as_deref(), default_volumes.as_deref()];
    let policies = Policies {
        replicas: all(&replicas::REGISTRY, [Some(&labels.replicas), labels.default_replicas.as_deref()]),
        tasks: all(&tasks::REGISTRY, [Some(&labels.tasks), labels.default_tasks.as_deref()]),
        moves: all(&moves::REGISTRY, [labels.moves.as_deref(), None]),
        workload: admit::without_own_rates().map(|one| Policy::of(one, admission)).collect(),
        volumes: all(&limits::REGISTRY, volumes),
    };
    Ok(Json(policies).into_response())
}
