//! Observability of a running service: metrics for scrapers, events for clients, log lines about the leader and the
//! clock, and messages to systemd. All stay off the critical path: the service renders only on request.

mod clock;
mod events;
mod exposition;
mod hosts;
mod labels;
mod metrics;
mod observed_store;
mod process;
mod reporters;
mod systemd;

use std::sync::Arc;
use std::time::Duration;

use leeward_promises::{PromiseChange, PromiseState};
use leeward_service::{Handle, LeaderState, NetworkSnapshot, in_background};

pub use self::clock::{direction, unsettled_step, watch_clock};
pub use self::events::{Event, EventRecord, Events, Hot};
pub use self::exposition::Exposition;
pub use self::hosts::{HostCounts, silent_hosts};
pub use self::metrics::{Active, Metrics};
pub use self::observed_store::ObservedStore;
pub use self::reporters::Reporters;
pub use self::systemd::ServiceNotifier;

/// Shortest time between two load events.
const TICK: Duration = Duration::from_millis(900);

/// Publishes load events for every new snapshot, at most one set per tick, and an event for every change of leader. The
/// function runs until it is dropped or the service ends.
pub async fn watch(handle: Handle, events: Arc<Events>) {
    tokio::select! {
        () = watch_leader(&handle, &events) => {}
        () = watch_snapshots(&handle, &events) => {}
    }
}

async fn watch_leader(handle: &Handle, events: &Events) {
    let mut leader_state = handle.leader_state();
    leader_state.mark_unchanged();
    while leader_state.changed().await.is_ok() {
        let now = leader_state.borrow_and_update().clone();
        match &now {
            LeaderState::Leader => tracing::info!("this service leads"),
            LeaderState::Follower { leader } => {
                tracing::info!(leader = leader.as_deref().unwrap_or("unknown"), "this service follows");
            }
            LeaderState::Unavailable { problem } => {
                tracing::warn!(%problem, "store unavailable: the service makes no decisions")
            }
        }
        events.publish(Event::Leader(now));
    }
}

async fn watch_snapshots(handle: &Handle, events: &Events) {
    let (mut last, mut epochs) = (handle.last_snapshot(), handle.epochs());
    while epochs.changed().await.is_ok() {
        let snapshot = handle.last_snapshot();
        // In a large cluster the comparison takes milliseconds, in which this thread could not serve requests.
        let (before, now) = (last, snapshot.clone());
        let compare =
            move || (changes(&before, &now), PromiseChange::between(&before.promises, &now.promises, now.at));
        match in_background(compare).await {
            Ok((links, promises)) => {
                links.into_iter().for_each(|hot| events.publish(Event::Hotspot(hot)));
                for change in promises {
                    log_promise(&change);
                    events.publish(Event::Promise(Arc::new(change)));
                }
            }
            Err(error) => tracing::error!(%error, "the comparison of two snapshots ended"),
        }
        events.publish(Event::Racks(snapshot.clone()));
        last = snapshot;
        tokio::time::sleep(TICK).await;
    }
}

/// Logs a promise that is enforced no longer, and a new alert.
fn log_promise(change: &PromiseChange) {
    let (workload, state) = (change.status.workload.as_str(), change.status.state);
    let (was, is) = (change.before.map_or("unknown", PromiseState::name), state.name());
    match (change.before == Some(PromiseState::Unenforced), state == PromiseState::Unenforced) {
        (false, true) => tracing::warn!(workload, was, "promise not enforced"),
        (true, false) => tracing::info!(workload, is, "promise no longer unenforced"),
        _ => {}
    }
    for alert in change.new_alerts() {
        tracing::warn!(workload, alert = alert.name(), "the SLO is used up too fast");
    }
}

/// Links that became hot or cooled down between two snapshots, in order of ids. Empty after a change of the cluster,
/// because that change has its own event.
fn changes(last: &NetworkSnapshot, snapshot: &NetworkSnapshot) -> Vec<Hot> {
    if !Arc::ptr_eq(&last.fabric, &snapshot.fabric) {
        return Vec::new();
    }
    let mut changed = Vec::new();
    for (before, now) in last.links.iter().zip(&snapshot.links) {
        let (since, until) = match (before.hot_since, now.hot_since) {
            (before, Some(since)) if before != Some(since) => (since, None),
            (Some(since), None) => (since, Some(snapshot.at)),
            _ => continue,
        };
        let (link, utilization) = (snapshot.fabric.resource_name(now.link), now.utilization());
        changed.push(Hot { link, utilization, since, at: snapshot.at, until });
    }
    changed
}
