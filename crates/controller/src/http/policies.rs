//! Available policies, by kind of decision.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_placement::{moves, replicas, tasks};
use leeward_registry::{Registration, Registry};
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
    /// Summary in one sentence.
    summary: &'static str,
    /// Source: paper and section.
    source: &'static str,
}

impl Policy {
    fn of<T: ?Sized>(registration: &Registration<T>, label: Option<&str>) -> Policy {
        let Registration { name, summary, source, .. } = *registration;
        let own = label.filter(|label| label.split(':').next() == Some(name));
        Policy { name, label: own.unwrap_or(name).to_owned(), decides: own.is_some(), summary, source }
    }
}

fn all<T: ?Sized>(registry: &Registry<T>, label: Option<&str>) -> Vec<Policy> {
    registry.iter().map(|registration| Policy::of(registration, label)).collect()
}

pub async fn list(State(app): SharedState) -> ApiResult {
    let (labels, admission_policies) = (&app.about.labels, &app.about.admission_policies);
    let admission = Some(admission_policies.admission.label.as_str());
    let volumes = Some(admission_policies.volumes.label.as_str());
    let policies = Policies {
        replicas: all(&replicas::REGISTRY, Some(&labels.replicas)),
        tasks: all(&tasks::REGISTRY, Some(&labels.tasks)),
        moves: all(&moves::REGISTRY, labels.moves.as_deref()),
        workload: admit::without_own_rates().map(|one| Policy::of(one, admission)).collect(),
        volumes: all(&limits::REGISTRY, volumes),
    };
    Ok(Json(policies).into_response())
}
