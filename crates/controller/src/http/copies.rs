//! Choices among the copies of a block: the copy to read, and the copies to delete. They commit nothing.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_fabric::{Fabric, HostId};
use leeward_ledger::Epoch;
use leeward_placement::replicas::RatedCopy;
use leeward_records::schema::Name;
use leeward_records::text_digest;
use leeward_service::{ChooseDelete, ChooseRead, RankedCopies};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::state::{ApiResult, SharedState};
use leeward_problems::Problem;

/// Largest number of copies of a block.
const MOST_COPIES: usize = 255;

/// The body of `POST /v1/choose/read`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadBody {
    /// Hosts with a copy.
    #[schemars(length(min = 1, max = MOST_COPIES), extend("uniqueItems" = true))]
    hosts: Vec<String>,
    /// Host of the reader. Without it, the reader is outside the cluster.
    reader: Option<String>,
    /// Text that seeds the draw, such as the id of the block with the number of the read. The same text with the same
    /// copies draws the same two copies.
    #[schemars(with = "Option<Name>")]
    key: Option<String>,
}

/// The body of `POST /v1/choose/delete`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteBody {
    /// Hosts with a copy.
    #[schemars(length(min = 1, max = MOST_COPIES), extend("uniqueItems" = true))]
    hosts: Vec<String>,
    /// Number of copies to delete; default 1.
    #[schemars(range(min = 1, max = MOST_COPIES))]
    count: Option<u8>,
    /// Text that breaks ties, such as the id of the block.
    #[schemars(with = "Option<Name>")]
    key: Option<String>,
}

/// Copies of a block in the order of preference.
#[derive(Serialize, JsonSchema)]
pub struct ChosenCopies {
    /// The copies: to try in this order, or to delete.
    copies: Vec<ChosenCopy>,
    /// Epoch of the ledger.
    epoch: Epoch,
    /// Age of the oldest telemetry used, in seconds; null if none was used.
    telemetry_age_s: Option<f64>,
}

/// A copy of a block.
#[derive(Serialize, JsonSchema)]
pub struct ChosenCopy {
    /// Name of its host.
    host: String,
    /// Reason of its position.
    because: &'static str,
    /// Least capacity left on the resources of its way whose load is known, in bit/s; null if there is none, or if the copy
    /// was not examined.
    left_bps: Option<i64>,
    /// The link or device with this capacity.
    limit: Option<String>,
    /// Number of links and devices on its way whose load is unknown; null if the copy was not examined.
    unknown: Option<u32>,
}

/// Ids of the named hosts.
fn resolve(fabric: &Fabric, names: &[String]) -> Result<Vec<HostId>, Problem> {
    if names.is_empty() || names.len() > MOST_COPIES {
        return Err(Problem::field("hosts", format!("expected 1 to {MOST_COPIES} hosts")));
    }
    let mut hosts = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let field = || format!("hosts[{at}]");
        let host = fabric.host(name).ok_or_else(|| Problem::field(field(), fabric.no_host(name)))?;
        if hosts.contains(&host) {
            return Err(Problem::field(field(), "the host is named twice"));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Number that seeds the hash for a request with this key.
fn number(key: Option<&str>) -> Result<u64, Problem> {
    match key {
        Some(key) if !Name::fits(key) => Err(Problem::name("key")),
        key => Ok(text_digest(key.unwrap_or_default())),
    }
}

impl ChosenCopies {
    fn of(fabric: &Fabric, RankedCopies { copies, epoch, age }: RankedCopies) -> ChosenCopies {
        let copy = |(RatedCopy { host, path, because }, limit)| ChosenCopy {
            host: fabric.host_name(host).to_owned(),
            because: because.text(),
            left_bps: path.and_then(|path| path.left),
            limit,
            unknown: path.map(|path| path.unknown),
        };
        let copies = copies.into_iter().map(copy).collect();
        ChosenCopies { copies, epoch, telemetry_age_s: age.map(|age| age.as_secs_f64()) }
    }
}

/// Orders the copies of a block for a reader.
pub async fn read(State(app): SharedState, Body(body): Body<ReadBody>) -> ApiResult {
    let request = number(body.key.as_deref())?;
    let (fabric, ranked) = app
        .call_with_fabric(|fabric| {
            let unknown = |name: &String| Problem::field("reader", fabric.no_host(name));
            let reader = body.reader.as_ref().map(|name| fabric.host(name).ok_or_else(|| unknown(name)));
            let copies = resolve(fabric, &body.hosts)?;
            Ok(ChooseRead { copies, reader: reader.transpose()?, request })
        })
        .await?;
    if ranked.copies.is_empty() {
        return Err(Problem::refused("no host in `hosts` is up"));
    }
    Ok(Json(ChosenCopies::of(&fabric, ranked)).into_response())
}

/// Chooses copies of a block to delete.
pub async fn delete(State(app): SharedState, Body(body): Body<DeleteBody>) -> ApiResult {
    let request = number(body.key.as_deref())?;
    let count = usize::from(body.count.unwrap_or(1));
    if count == 0 || count > body.hosts.len() {
        let detail = format!("{count}: expected at least 1, and at most the number of hosts");
        return Err(Problem::field("count", detail));
    }
    let (fabric, ranked) = app
        .call_with_fabric(|fabric| Ok(ChooseDelete { copies: resolve(fabric, &body.hosts)?, count, request }))
        .await?;
    Ok(Json(ChosenCopies::of(&fabric, ranked)).into_response())
}
