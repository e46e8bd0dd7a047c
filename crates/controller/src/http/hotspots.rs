//! Hot links, the work that loads them, and the reason for which no task moves.

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use leeward_engine::NoMove;
use leeward_fabric::{Bytes, Nanos};
use leeward_moves::Stays;
use leeward_records::Clock;
use leeward_records::schema::{Id, Time};
use leeward_service::{GetHotLinks, HeavyWork, HotLinkCause, LinkState};
use schemars::JsonSchema;
use serde::Serialize;

use super::pages::{Page, PageQuery, page};
use super::shapes::stays_values;
use super::state::{ApiResult, Params, SharedState};

/// A hot link.
#[derive(Serialize, JsonSchema)]
pub struct Hotspot {
    /// Name of the link.
    pub link: String,
    /// Time since which the link is hot.
    #[schemars(with = "Time")]
    pub since: String,
    /// Seconds since that time.
    pub age_s: f64,
    /// Measured load, as a share of the capacity.
    pub utilization: Option<f64>,
}

impl Hotspot {
    /// A link as seen at time `seen`, hot since `since`.
    pub fn of(link: String, utilization: Option<f64>, since: Nanos, seen: Nanos, clock: &Clock) -> Hotspot {
        Hotspot { link, since: clock.text(since), age_s: seen.since(since).as_secs_f64(), utilization }
    }
}

/// A hot link with the causes of its load.
#[derive(Serialize, JsonSchema)]
pub struct HotLink {
    #[serde(flatten)]
    hotspot: Hotspot,
    /// The heaviest tasks on the link by rate, and after them the largest transfers of blocks; at most three.
    heaviest: Vec<Heavy>,
    /// Measured load in bit/s; null if the link is not seen.
    measured_bps: Option<u64>,
    /// Measured load beyond the rates of all tasks that the service knows, in bit/s; null if the link is not seen.
    unexplained_bps: Option<u64>,
    /// Reason for which no task moves off the link; null if an advised or taken move is under way.
    #[schemars(extend("enum" = NO_MOVES))]
    no_move: Option<&'static str>,
}

/// A task on a hot link, or a transfer of a block.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HeavyWork")]
pub struct Heavy {
    /// Decision that placed it.
    #[schemars(with = "Id")]
    decision: String,
    /// Job of the task; null without one.
    job: Option<String>,
    /// Name of the task; null for a transfer.
    task: Option<String>,
    /// Host of the task, or receiver of the transfer; null if the transfer has no receiver with a link.
    host: Option<String>,
    /// Rate of the task over the link in bit/s; null for a transfer, which uses the rate that it gets.
    rate_bps: Option<u64>,
    /// Reason for which the task may not be moved now; null if it may, and for a transfer.
    #[schemars(extend("enum" = stays_values()))]
    stays: Option<&'static str>,
    /// Size of the block of a transfer; null for a task.
    size: Option<Bytes>,
}

impl From<HeavyWork> for Heavy {
    fn from(work: HeavyWork) -> Heavy {
        let HeavyWork { decision, job, task, host, rate_bps, stays, size } = work;
        let stays = stays.map(Stays::word);
        Heavy { decision: decision.to_string(), job, task, host, rate_bps, stays, size }
    }
}

/// All reasons for which no task moves off a link.
const NO_MOVES: [Option<&str>; 10] = [
    Some("off"),
    Some("shadow"),
    Some("canary"),
    Some("other-link"),
    Some("cooling"),
    Some("recent"),
    Some("others"),
    Some("fixed"),
    Some("no-target"),
    None,
];

fn word(reason: NoMove) -> &'static str {
    match reason {
        NoMove::Off => "off",
        NoMove::Shadow => "shadow",
        NoMove::Canary => "canary",
        NoMove::OtherLink => "other-link",
        NoMove::Cooling => "cooling",
        NoMove::Recent => "recent",
        NoMove::Others => "others",
        NoMove::Fixed => "fixed",
        NoMove::NoTarget => "no-target",
    }
}

pub async fn hotspots(State(app): SharedState, Params(query): Params<Query<PageQuery>>) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let mut hot: Vec<(Nanos, &LinkState)> =
        snapshot.links.iter().filter_map(|state| Some((state.hot_since?, state))).collect();
    hot.sort_by_key(|&(since, state)| (since, state.link));
    let convert = |&(since, state): &(Nanos, &LinkState)| {
        let link = snapshot.fabric.resource_name(state.link);
        Hotspot::of(link, state.utilization(), since, snapshot.at, &app.clock)
    };
    let page = page(&hot, &query, convert)?;
    let names: Vec<String> = page.items.iter().map(|one| one.link.clone()).collect();
    let causes = app.call(|_| Ok(GetHotLinks(names.clone()))).await?;
    // A link of an earlier cluster has no cause and is no longer hot.
    let items = page.items.into_iter().zip(causes).filter_map(|(hotspot, cause)| {
        let HotLinkCause { heaviest, measured_bps, unexplained_bps, no_move } = cause?;
        let heaviest = heaviest.into_iter().map(Heavy::from).collect();
        Some(HotLink { hotspot, heaviest, measured_bps, unexplained_bps, no_move: no_move.map(word) })
    });
    Ok(Json(Page { items: items.collect(), next: page.next }).into_response())
}
