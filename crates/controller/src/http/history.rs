//! History of links and hosts over the last hour, from memory.

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

use super::search::time;
use super::series::{History, LONGEST_HISTORY, Series, Steps};
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use super::stored_history::{LONGEST_STEP, StoredRange};
use leeward_problems::Problem;

/// Range of the history of one link or host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Only steps that end after this time. For the time before the last hour, steps are at least ten minutes long,
    /// and an hour for the time before the last two days; 31 days are stored.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Length of a step in seconds; default 10, or the shortest possible one.
    #[schemars(range(min = STEP, max = LONGEST_STEP), extend("multipleOf" = STEP))]
    step_s: Option<u64>,
}

/// Range of the history of many links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// Only steps that end after this time. For the time before the last hour, steps are at least ten minutes long,
    /// and an hour for the time before the last two days; 31 days are stored.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Length of a step in seconds; default 10, or the shortest possible one.
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
    let since = time(clock, "since", since)?.unwrap_or(Nanos(0));
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
    /// The stored history that answers the query; `None` if the last hour does.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    fn stored(&self, clock: &Clock) -> Result<Option<StoredRange>, Problem> {
        StoredRange::of(clock.now(), time(clock, "since", self.since.as_deref())?, self.step_s)
    }

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
    /// The stored history that answers the query; `None` if the last hour does.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    fn stored(&self, clock: &Clock) -> Result<Option<StoredRange>, Problem> {
        StoredRange::of(clock.now(), time(clock, "since", self.since.as_deref())?, self.step_s)
    }

    /// Start of the requested range, and the number of stored steps in each requested step. All steps of the range end
    /// after its start.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub fn steps(&self, clock: &Clock) -> Result<(Nanos, u64), Problem> {
        steps(clock, self.since.as_deref(), self.step_s)
    }
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
    let (snapshot, stored) = (app.snapshot().await?, query.stored(&app.clock)?);
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
    match stored {
        Some(range) => range.response(&app, names(&snapshot, &links)).await,
        None => {
            let (since, join) = query.steps(&app.clock)?;
            links_response(&app, &snapshot, &app.handle.history(since, join), &links)
        }
    }
}

pub async fn link_history(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<SeriesQuery>>,
) -> ApiResult {
    let (snapshot, stored) = (app.snapshot().await?, query.stored(&app.clock)?);
    let link = find_link(&snapshot.fabric, &name).ok().and_then(|link| snapshot.link(link));
    let link = link.ok_or_else(|| Problem::none_such("link", &name))?;
    match stored {
        Some(range) => range.response(&app, names(&snapshot, &[link])).await,
        None => {
            let (since, join) = query.steps(&app.clock)?;
            links_response(&app, &snapshot, &app.handle.history(since, join), &[link])
        }
    }
}

fn names(snapshot: &NetworkSnapshot, links: &[&LinkState]) -> Vec<String> {
    links.iter().map(|state| snapshot.fabric.resource_name(state.link)).collect()
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
