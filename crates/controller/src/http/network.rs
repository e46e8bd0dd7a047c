//! Current state of the network: links, hosts, racks.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use leeward_fabric::{DomainId, Fabric};
use leeward_ledger::find_link;
use leeward_records::schema::Id;
use leeward_records::{DecisionId, DecisionRecord};
use leeward_service::{GetHolding, GetRack, LinkState, NetworkSnapshot};
use schemars::JsonSchema;
use serde::Deserialize;

use super::pages::{LARGEST_PAGE, PageQuery, page};
use super::shapes::{Hold, Host, Link, LinkPage, Rack, RackPage, Replica, Reservation, Task};
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::Problem;

pub async fn racks(State(app): SharedState, Params(query): Params<Query<PageQuery>>) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let racks: Vec<DomainId> = snapshot.fabric.all_racks().collect();
    Ok(Json(page(&racks, &query, |&rack| Rack::of(&snapshot, &app.clock, rack))?).into_response())
}

pub async fn rack(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let fabric = &snapshot.fabric;
    let rack = fabric.domain(&name).filter(|rack| rack.index() < fabric.rack_count());
    let rack = rack.ok_or_else(|| Problem::none_such("rack", &name))?;
    let content = app.call(|_| Ok(GetRack(rack))).await?;
    let links = [fabric.out_of_domain(rack), fabric.into_domain(rack)];
    let replica = |(decision, host, size): (DecisionId, String, _)| Replica {
        decision: decision.to_string(),
        host,
        size,
    };
    let page = RackPage {
        rack: name,
        pod: fabric.parent(rack).map(|pod| fabric.domain_name(pod).to_owned()),
        links: links.into_iter().filter_map(|link| Link::at(&snapshot, &app.clock, link)).collect(),
        hosts: snapshot.hosts_of(rack).iter().map(|host| Host::of(&snapshot, &app.clock, host)).collect(),
        tasks: content.tasks.into_iter().map(|task| Task::of(&snapshot, task)).collect(),
        replicas: content.replicas.into_iter().map(replica).collect(),
        reservations: content.reservations.into_iter().map(Reservation::from).collect(),
    };
    Ok(Json(page).into_response())
}

/// Filter, order and page of a list of links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinksQuery {
    /// True for hot links only, false for the other links only.
    hot: Option<bool>,
    /// Order: by name (default), or by utilization, the highest first.
    sort: Option<Sort>,
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
}

impl LinksQuery {
    /// Page of the list.
    pub fn page(&self) -> PageQuery {
        PageQuery { limit: self.limit, after: self.after.clone() }
    }
}

/// Order of links.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Name,
    Utilization,
}

pub async fn links(State(app): SharedState, Params(Query(query)): Params<Query<LinksQuery>>) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let hot = |state: &&LinkState| query.hot.is_none_or(|hot| hot == state.hot_since.is_some());
    let mut links: Vec<&LinkState> = snapshot.links.iter().filter(hot).collect();
    match query.sort {
        None | Some(Sort::Name) => {}
        Some(Sort::Utilization) => links.sort_by(|a, b| {
            let utilization = |state: &LinkState| state.utilization().unwrap_or(-1.0);
            utilization(b).total_cmp(&utilization(a)).then(a.link.cmp(&b.link))
        }),
    }
    Ok(Json(page(&links, &query.page(), |state| Link::of(&snapshot, &app.clock, state))?).into_response())
}

pub async fn link(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let find = |fabric: &Fabric| find_link(fabric, &name).map_err(|_| Problem::none_such("link", &name));
    let link = Link::at(&snapshot, &app.clock, Some(find(&snapshot.fabric)?));
    let link = link.ok_or_else(|| Problem::none_such("link", &name))?;
    let holding = app.call(|fabric| Ok(GetHolding { link: find(fabric)?, limit: LARGEST_PAGE })).await?;
    let hold = |record: &Arc<DecisionRecord>| Hold {
        decision: record.id.to_string(),
        kind: record.details.spec.kind(),
        time: app.clock.text(record.at),
    };
    Ok(Json(LinkPage { link, holds: holding.iter().map(hold).collect() }).into_response())
}

pub async fn hosts(State(app): SharedState, Params(query): Params<Query<PageQuery>>) -> ApiResult {
    let snapshot = app.snapshot().await?;
    Ok(Json(page(&snapshot.hosts, &query, |host| Host::of(&snapshot, &app.clock, host))?).into_response())
}

pub async fn host(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let host = snapshot.fabric.host(&name).and_then(|host| snapshot.hosts.get(host.index()));
    let host = host.ok_or_else(|| Problem::none_such("host", &name))?;
    Ok(Json(Host::of(&snapshot, &app.clock, host)).into_response())
}

/// Snapshots for handlers.
impl AppState {
    pub(super) async fn snapshot(&self) -> Result<Arc<NetworkSnapshot>, Problem> {
        self.handle.snapshot().await.map_err(|_| Problem::broken())
    }
}
