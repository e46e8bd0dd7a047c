//! Workloads with promised SLOs.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use leeward_slo::online::{Agreed, AgreedSlo, AgreedStage};
use schemars::JsonSchema;
use serde::Serialize;

use super::network::Part;
use super::problem::Problem;
use super::shapes::Page;
use super::{Answer, Asked, Edge, Named, Shared};
use crate::described::{Id, Time};
use crate::desk::{Message, Record, Reply};

/// A workload with a current or past promise.
#[derive(Serialize, JsonSchema)]
pub struct Workload {
    /// Name of the workload.
    name: String,
    /// Priority at the first stage with a queue; 0 is served first.
    priority: u32,
    /// The promised SLO.
    slo: AgreedSlo,
    /// Upper bound on the latency of a request in seconds; for a stochastic bound, on the SLO's percentile.
    /// Null if there is no bound.
    bound_s: Option<f64>,
    /// Method of the bound; null if there is no bound.
    by: Option<String>,
    /// Last reported latency at the SLO's percentile, in seconds; null without a report.
    seen_s: Option<f64>,
    /// Host that sends the requests.
    client: String,
    /// Device of its volume; the host if no device is known.
    volume: String,
    /// Links and device that requests pass, in order.
    path: Vec<String>,
    /// The path by stages, with priorities and limits to enforce.
    stages: Vec<AgreedStage>,
    /// Decision that made the promise.
    #[schemars(with = "Id")]
    decision: String,
    /// Time of the decision.
    #[schemars(with = "Time")]
    time: String,
    /// End of the promise; null while it holds.
    #[schemars(with = "Option<Time>")]
    released: Option<String>,
}

impl Workload {
    fn of(edge: &Edge, record: &Record, seen: Option<f64>) -> Option<Workload> {
        let Agreed { workload, client, volume, slo, bound_s, by, stages, .. } =
            record.shown.promise.clone()?;
        Some(Workload {
            name: workload,
            priority: stages.iter().find(|stage| !stage.queues.is_empty()).map_or(0, |stage| stage.priority),
            slo,
            bound_s,
            by,
            seen_s: seen,
            client,
            volume,
            path: stages.iter().flat_map(|stage| stage.queues.clone()).collect(),
            stages,
            decision: record.id.to_string(),
            time: edge.clock.text(record.at),
            released: record.released.map(|at| edge.clock.text(at)),
        })
    }
}

pub async fn list(State(edge): Shared, Asked(Query(part)): Asked<Query<Part>>) -> Answer {
    let (limit, before) = (part.limit()?, part.after()?);
    let list = Message::Workloads { before, limit: limit + 1 };
    let Reply::Workloads(mut found) = edge.reply(|_| Ok(list.clone())).await? else {
        return Err(Problem::broken());
    };
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(last, _)| last.id.to_string());
    let items = found.iter().filter_map(|(record, seen)| Workload::of(&edge, record, *seen)).collect();
    Ok(Json(Page::<Workload> { items, next }).into_response())
}

pub async fn one(State(edge): Shared, Asked(Path(name)): Named) -> Answer {
    let Reply::Workloads(found) = edge.reply(|_| Ok(Message::Workload(name.clone()))).await? else {
        return Err(Problem::broken());
    };
    let workload = found.first().and_then(|(record, seen)| Workload::of(&edge, record, *seen));
    Ok(Json(workload.ok_or_else(|| Problem::none_kept("workload", &name))?).into_response())
}
