//! `GET /v1/snapshot`: the network in columns, whole or as the difference from an earlier snapshot.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use leeward_frames::{RESOLUTIONS, Selection, pattern};
use leeward_ledger::Epoch;
use leeward_records::schema::Name;
use schemars::JsonSchema;
use serde::Deserialize;

use super::compression::{accepted, set_headers};
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_problems::Problem;

/// Longest wait for a change, and longest least interval.
pub(super) const LONGEST_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Shortest time between two snapshots for a reader that follows them.
const LEAST_INTERVAL: Nanos = Nanos(Nanos::SECOND.0 / 10);

/// Choice of tables and columns, and the snapshot to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotQuery {
    /// Columns of the links, separated by commas. Without `links`, `racks`, `hosts` and `devices`, the links have the
    /// columns `link,capacity_bps,measured_bps,until,residual_bps,expected_capacity_bps`.
    #[schemars(extend("pattern" = pattern("links")))]
    links: Option<String>,
    /// Columns of the racks, separated by commas.
    #[schemars(extend("pattern" = pattern("racks")))]
    racks: Option<String>,
    /// Columns of the hosts, separated by commas.
    #[schemars(extend("pattern" = pattern("hosts")))]
    hosts: Option<String>,
    /// Columns of the devices, separated by commas.
    #[schemars(extend("pattern" = pattern("devices")))]
    devices: Option<String>,
    /// Unit of the columns that end in `_steps`, as a share of the capacity; default 0.01.
    #[schemars(range(min = RESOLUTIONS[0], max = RESOLUTIONS[1]))]
    resolution: Option<f64>,
    /// Id of an earlier snapshot with the same columns and resolution. The response is the difference from it, or a
    /// whole snapshot if the service no longer stores it.
    #[schemars(length(min = 1, max = Name::LONGEST))]
    since: Option<String>,
    /// Waits for an epoch of the ledger after this one.
    after: Option<Epoch>,
    /// Longest wait for an epoch after `after`, or after that of `since`; at most one minute. After it, the response is
    /// the current snapshot.
    wait: Option<Nanos>,
    /// Least time between the snapshot `since` and the response; without `since`, between the request and the response.
    /// At most one minute.
    interval: Option<Nanos>,
}

impl SnapshotQuery {
    fn selection(&self) -> Result<Selection, Problem> {
        let columns = [&self.links, &self.racks, &self.hosts, &self.devices];
        let selection = Selection::new(columns.map(|names| names.as_deref()), self.resolution);
        selection.map_err(|invalid| Problem::field(invalid.parameter, invalid.detail))
    }

    fn check(&self) -> Result<(), Problem> {
        if let (Some(_), Some(_)) = (&self.since, self.after) {
            return Err(Problem::field(
                "after",
                "expected `since` or `after`, not both: `since` knows its epoch",
            ));
        }
        if let Some(since) = self.since.as_ref().filter(|since| !Name::fits(since)) {
            let detail = format!("`{}`: expected the `id` of a snapshot", excerpt(since));
            return Err(Problem::field("since", detail));
        }
        match self.interval {
            Some(interval) if interval > LONGEST_WAIT => {
                Err(Problem::field("interval", format!("{interval}: expected at most 60s")))
            }
            _ => Ok(()),
        }
    }
}

pub async fn snapshot(
    State(app): SharedState,
    headers: HeaderMap,
    Params(Query(query)): Params<Query<SnapshotQuery>>,
) -> ApiResult {
    query.check()?;
    let selection = query.selection()?;
    let wait = query.wait.unwrap_or(Nanos(0)).min(LONGEST_WAIT);
    let since = match query.since {
        Some(id) => app.snapshots.base(&selection, &id).await.map(|base| (id, base)),
        None => None,
    };
    match &since {
        Some((_, base)) => {
            // A published snapshot is at most a second old, and its copy is already paid for.
            let interval = query.interval.unwrap_or(Nanos(0)).max(LEAST_INTERVAL.min(wait));
            pause(base.at.plus(interval).since(app.clock.now())).await;
            if wait > Nanos(0) && app.handle.last_snapshot().epoch == base.epoch {
                app.wait_for_epoch_after(base.epoch, wait).await?;
            }
        }
        None => {
            pause(query.interval.unwrap_or(Nanos(0))).await;
            let epoch = app.snapshot().await?.epoch;
            if let Some(after) = query.after.filter(|&after| epoch <= after) {
                app.wait_for_epoch_after(after, wait).await?;
            }
        }
    }
    let encoding = accepted(&headers);
    let body = app.snapshots.body(selection, since.map(|(id, _)| id), encoding).await;
    let body = body.map_err(|error| {
        tracing::error!(%error, "a snapshot could not be encoded");
        Problem::broken()
    })?;
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    set_headers(encoding, response.headers_mut());
    Ok(response)
}

async fn pause(time: Nanos) {
    if time > Nanos(0) {
        tokio::time::sleep(Duration::from_nanos(time.0)).await;
    }
}

impl AppState {
    /// Waits for a snapshot of another epoch, which is later or of another ledger; at most for `wait`, and then for the
    /// current snapshot.
    async fn wait_for_epoch_after(&self, epoch: Epoch, wait: Nanos) -> Result<(), Problem> {
        let newer = self.handle.newer(epoch);
        match tokio::time::timeout(Duration::from_nanos(wait.0), newer).await {
            Ok(newer) => newer.map(drop).map_err(|_| Problem::broken()),
            Err(_) => self.snapshot().await.map(drop),
        }
    }
}
