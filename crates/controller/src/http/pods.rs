//! Jobs of pods, and their observed traffic. Agents report the rates of pods, and know them by UID alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use leeward_engine::Observed;
use leeward_fabric::Fabric;
use leeward_fabric::input::excerpt;
use leeward_records::schema::Name;
use leeward_service::{GetPeaks, NamePods, PodId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::pages::{LARGEST_PAGE, PageQuery};
use super::state::{ApiResult, Params, SharedState};
use leeward_problems::Problem;

/// Schema of the UID of a pod.
pub(super) fn uid(_: &mut SchemaGenerator) -> Schema {
    let pattern = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$";
    json_schema!({ "type": "string", "pattern": pattern })
}

/// Parses the UID of a pod.
///
/// # Errors
/// [`Problem`] with the field.
pub(super) fn read_uid(field: impl FnOnce() -> String, text: &str) -> Result<PodId, Problem> {
    let detail = || format!("`{}`: expected the UID of a pod, 32 hexadecimal digits", excerpt(text));
    PodId::read(text).ok_or_else(|| Problem::field(field(), detail()))
}

/// The body of `POST /v1/pods`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodsBody {
    /// Pods with their jobs. Pods without reported rates are skipped.
    #[schemars(length(max = LARGEST_PAGE))]
    #[serde(default)]
    pods: Vec<PodName>,
    /// Largest number of unnamed pods in the response; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
}

/// Job of a pod.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodName {
    /// UID of the pod.
    #[schemars(schema_with = "uid")]
    pod: String,
    /// Host of the pod.
    host: String,
    /// Job whose history has the traffic of the pod: for Kubernetes `NAMESPACE/KIND/NAME` of the owner.
    #[schemars(with = "Name")]
    job: String,
}

/// A pod without a job.
#[derive(Serialize, JsonSchema)]
pub struct UnnamedPod {
    /// UID of the pod.
    #[schemars(schema_with = "uid")]
    pod: String,
    /// Host whose agent reports the pod.
    host: String,
}

/// The response to `POST /v1/pods`.
#[derive(Serialize, JsonSchema)]
pub struct NamedPods {
    /// Number of pods that got a job. A pod that has one keeps it.
    named: usize,
    /// Pods with reported rates and without a job. The next request lists further ones, and after the last one the first
    /// ones again.
    unnamed: Vec<UnnamedPod>,
}

impl PodsBody {
    fn operation(&self, fabric: &Fabric) -> Result<NamePods, Problem> {
        if self.pods.len() > LARGEST_PAGE {
            let detail = format!("{} pods: expected at most {LARGEST_PAGE}", self.pods.len());
            return Err(Problem::field("pods", detail));
        }
        let mut pods = Vec::with_capacity(self.pods.len());
        for (at, PodName { pod, host, job }) in self.pods.iter().enumerate() {
            let pod = read_uid(|| format!("pods[{at}].pod"), pod)?;
            if !Name::fits(job) {
                let detail = format!("`{}`: expected 1 to {} characters", excerpt(job), Name::LONGEST);
                return Err(Problem::field(format!("pods[{at}].job"), detail));
            }
            // The cluster may not have a new node yet.
            pods.extend(fabric.host(host).map(|host| (pod, host, Arc::from(job.as_str()))));
        }
        let limit = PageQuery { limit: self.limit, after: None }.limit()?;
        Ok(NamePods { pods, limit })
    }
}

pub async fn name(State(app): SharedState, Body(body): Body<PodsBody>) -> ApiResult {
    let (fabric, reply) = app.call_with_fabric(|fabric| body.operation(fabric)).await?;
    let unnamed = reply
        .unnamed
        .iter()
        .map(|&(host, pod)| UnnamedPod { pod: pod.to_string(), host: fabric.host_name(host).to_owned() });
    Ok(Json(NamedPods { named: reply.named, unnamed: unnamed.collect() }).into_response())
}

/// Page of a list of jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeaksQuery {
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    after: Option<String>,
}

/// Observed traffic of the tasks of a job, each by itself.
#[derive(Serialize, JsonSchema)]
pub struct Peak {
    /// Name of the job.
    job: String,
    /// Average traffic out of a task, in bit/s.
    egress_mean_bps: u64,
    /// Peak traffic out of a task, in bit/s.
    egress_peak_bps: u64,
    /// Average traffic into a task, in bit/s.
    ingress_mean_bps: u64,
    /// Peak traffic into a task, in bit/s.
    ingress_peak_bps: u64,
    /// Number of observations in the window; a task has at most one in five minutes.
    observations: u64,
}

impl From<(String, Observed)> for Peak {
    fn from((job, Observed { egress, ingress, count }): (String, Observed)) -> Peak {
        Peak {
            job,
            egress_mean_bps: egress.mean_bps,
            egress_peak_bps: egress.peak_bps,
            ingress_mean_bps: ingress.mean_bps,
            ingress_peak_bps: ingress.peak_bps,
            observations: count,
        }
    }
}

/// A page of jobs by name. A page may have fewer items than the limit, also before the last one.
#[derive(Serialize, JsonSchema)]
pub struct Peaks {
    /// Jobs with observations.
    items: Vec<Peak>,
    /// Value for `after` to get the next page; null at the end.
    next: Option<String>,
    /// Time for which observations count, in seconds; null if the settings of the service have no history.
    window_s: Option<f64>,
    /// Percentile of the observations that is the peak, as a share; null likewise.
    percentile: Option<f64>,
}

pub async fn peaks(State(app): SharedState, Params(Query(query)): Params<Query<PeaksQuery>>) -> ApiResult {
    let limit = PageQuery { limit: query.limit, after: None }.limit()?;
    let reply = app.call(|_| Ok(GetPeaks { after: query.after.clone(), limit })).await?;
    let settings = reply.settings;
    let page = Peaks {
        items: reply.jobs.into_iter().map(Peak::from).collect(),
        next: reply.next,
        window_s: settings.map(|settings| settings.window.as_secs_f64()),
        percentile: settings.map(|settings| settings.percentile),
    };
    Ok(Json(page).into_response())
}
