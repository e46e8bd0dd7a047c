//! Recent history of links and hosts, over the last hour.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use leeward_fabric::Nanos;
use leeward_ledger::find_link;
use leeward_records::Clock;
use leeward_records::schema::Time;
use leeward_service::{HistoryBuckets, LinkState, NetworkSnapshot, STEP};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};

/// Longest step in seconds: the whole history.
const LONGEST_STEP: u64 = 3_600;
/// Largest number of values of a response: one hour of more than a thousand links.
const LONGEST_HISTORY: usize = 1_000_000;

/// Range of the history of one link or host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Only steps that end after this time. One hour is stored.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Length of a step in seconds; default 10.
    #[schemars(range(min = STEP, max = LONGEST_STEP), extend("multipleOf" = STEP))]
    step_s: Option<u64>,
}

/// Range of the history of many links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// Only steps that end after this time. One hour is stored.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Length of a step in seconds; default 10.
    #[schemars(range(min = STEP, max = LONGEST_STEP), extend("multipleOf" = STEP))]
    step_s: Option<u64>,
    /// Links of racks (default) or of hosts.
    kind: Option<LinkOwner>,
}

/// Owner of a link.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Whose")]
enum LinkOwner {
    Rack,
    Host,
}

/// Start of the requested range, and the number of stored steps in each requested step. All steps of the range end
/// after its start.
fn steps(clock: &Clock, since: Option<&str>, step_s: Option<u64>) -> Result<(Nanos, u64), Problem> {
    let since = since.map_or(Ok(Nanos(0)), |since| clock.parse(since));
    let since = since.map_err(|detail| Problem::field("since", detail))?;
    match step_s {
        None => Ok((since, 1)),
        Some(step) if (STEP..=LONGEST_STEP).contains(&step) && step.is_multiple_of(STEP) => {
            Ok((since, step / STEP))
        }
        Some(step) => {
            let detail = format!("{step}: expected a multiple of {STEP} up to {LONGEST_STEP}");
            Err(Problem::field("step_s", detail))
        }
    }
}

impl SeriesQuery {
    /// Start of the requested range, and the number of stored steps in each requested step. All steps of the range end
    /// after its start.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub fn steps(&self, clock: &Clock) -> Result<(Nanos, u64), Problem> {
        steps(clock, self.since.as_deref(), self.step_s)
    }
}

impl HistoryQuery {
    /// Start of the requested range, and the number of stored steps in each requested step. All steps of the range end
    /// after its start.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub fn steps(&self, clock: &Clock) -> Result<(Nanos, u64), Problem> {
        steps(clock, self.since.as_deref(), self.step_s)
    }
}

/// Times of a history's steps.
#[derive(Serialize, JsonSchema)]
pub struct Steps {
    /// Start of the first step; null without data.
    #[schemars(with = "Option<Time>")]
    pub from: Option<String>,
    /// Length of a step, in seconds.
    pub step_s: u64,
}

impl Steps {
    fn of(buckets: &HistoryBuckets, clock: &Clock) -> Steps {
        Steps { from: buckets.from().map(|from| clock.text(from)), step_s: buckets.step() }
    }
}

/// History of a link.
#[derive(Serialize, JsonSchema)]
pub struct Series {
    /// Name of the link.
    pub link: String,
    /// Average utilization of each step; null if unknown.
    pub utilization: Vec<Option<f32>>,
}

/// History of links.
#[derive(Serialize, JsonSchema)]
pub struct History {
    /// The steps.
    #[serde(flatten)]
    pub steps: Steps,
    /// The links.
    pub series: Vec<Series>,
}

fn links_response(
    app: &AppState,
    snapshot: &NetworkSnapshot,
    buckets: &HistoryBuckets,
    links: &[&LinkState],
) -> ApiResult {
    let numbers = buckets.count().saturating_mul(links.len());
    if numbers > LONGEST_HISTORY {
        let detail = format!(
            "{} links in {} steps each: expected at most {LONGEST_HISTORY} numbers; request longer steps, or a \
             shorter range with `since`",
            links.len(),
            buckets.count()
        );
        return Err(Problem::field("step_s", detail));
    }
    let series = |state: &&LinkState| {
        let utilization = buckets.utilization(&snapshot.fabric, snapshot.position(state.link));
        Series { link: snapshot.fabric.resource_name(state.link), utilization }
    };
    let history =
        History { steps: Steps::of(buckets, &app.clock), series: links.iter().map(series).collect() };
    Ok(Json(history).into_response())
}

pub async fn history(
    State(app): SharedState,
    Params(Query(query)): Params<Query<HistoryQuery>>,
) -> ApiResult {
    let (snapshot, (since, join)) = (app.snapshot().await?, query.steps(&app.clock)?);
    let buckets = app.handle.history(since, join);
    let fabric = &snapshot.fabric;
    let of_racks =
        || fabric.all_racks().flat_map(|rack| [fabric.out_of_domain(rack), fabric.into_domain(rack)]);
    let links: Vec<&LinkState> = match query.kind {
        None | Some(LinkOwner::Rack) => of_racks().flatten().filter_map(|link| snapshot.link(link)).collect(),
        Some(LinkOwner::Host) => {
            let host = |&host: &_| [fabric.egress(host), fabric.ingress(host)];
            fabric
                .all_hosts()
                .flat_map(|id| host(&id))
                .flatten()
                .filter_map(|link| snapshot.link(link))
                .collect()
        }
    };
    links_response(&app, &snapshot, &buckets, &links)
}

pub async fn link_history(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<SeriesQuery>>,
) -> ApiResult {
    let (snapshot, (since, join)) = (app.snapshot().await?, query.steps(&app.clock)?);
    let buckets = app.handle.history(since, join);
    let link = find_link(&snapshot.fabric, &name).ok().and_then(|link| snapshot.link(link));
    let link = link.ok_or_else(|| Problem::none_such("link", &name))?;
    links_response(&app, &snapshot, &buckets, &[link])
}

/// History of a host.
#[derive(Serialize, JsonSchema)]
pub struct HostHistory {
    /// The steps.
    #[serde(flatten)]
    pub steps: Steps,
    /// Links of the host.
    pub links: Vec<LinkSeries>,
    /// Devices of the host.
    pub devices: Vec<DeviceSeries>,
}

/// History of a host's link.
#[derive(Serialize, JsonSchema)]
pub struct LinkSeries {
    /// Name of the link.
    pub link: String,
    /// Average utilization of each step; null if unknown.
    pub utilization: Vec<Option<f32>>,
    /// Average bytes waiting to be sent, over the reports of each step; null without reports.
    pub queue_bytes: Vec<Option<f32>>,
}

/// History of a device.
#[derive(Serialize, JsonSchema)]
pub struct DeviceSeries {
    /// Name of the device.
    pub device: String,
    /// Share of each step in which the device was busy; null if unknown.
    pub busy: Vec<Option<f32>>,
    /// Average number of requests at the device; null without reports.
    pub queue: Vec<Option<f32>>,
}

pub async fn host_history(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<SeriesQuery>>,
) -> ApiResult {
    let (snapshot, (since, join)) = (app.snapshot().await?, query.steps(&app.clock)?);
    let buckets = app.handle.history(since, join);
    let fabric = &snapshot.fabric;
    let host = fabric.host(&name).ok_or_else(|| Problem::none_such("host", &name))?;
    let links = [fabric.egress(host), fabric.ingress(host)].into_iter().flatten();
    let devices = (0..=u16::MAX).map_while(|index| fabric.device(host, index));
    let history = HostHistory {
        steps: Steps::of(&buckets, &app.clock),
        links: links
            .map(|link| LinkSeries {
                link: fabric.resource_name(link),
                utilization: buckets.utilization(fabric, snapshot.position(link)),
                queue_bytes: buckets.queue(fabric, link),
            })
            .collect(),
        devices: devices
            .map(|device| DeviceSeries {
                device: fabric.resource_name(device),
                busy: buckets.busy(fabric, device),
                queue: buckets.queue(fabric, device),
            })
            .collect(),
    };
    Ok(Json(history).into_response())
}
