//! Observability of a running service: metrics for scrapers, and events for clients. Both stay off the
//! critical path: nothing is rendered without a request.

mod clock;
mod events;
mod kept;
mod metrics;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use leeward_service::{Handle, Position, World};

pub use self::clock::watch_clock;
pub use self::events::{Events, Happening, Hot, Told};
pub use self::kept::Watched;
pub use self::metrics::{Metrics, Request};
pub use self::tokens::watch_tokens;

/// Shortest time between two load events.
const TICK: Duration = Duration::from_millis(900);

/// Publishes load events for every new snapshot, at most one set per tick, and an event for every change of
/// leader. Runs until dropped or until the service is gone.
pub async fn watch(handle: Handle, events: Arc<Events>) {
    tokio::select! {
        () = watch_leader(&handle, &events) => {}
        () = watch_worlds(&handle, &events) => {}
    }
}

async fn watch_leader(handle: &Handle, events: &Events) {
    let mut position = handle.position();
    position.mark_unchanged();
    while position.changed().await.is_ok() {
        let now = position.borrow_and_update().clone();
        match &now {
            Position::Leads => tracing::info!("this service leads"),
            Position::Follows { leader } => {
                tracing::info!(leader = leader.as_deref().unwrap_or("unknown"), "this service follows");
            }
            Position::Stalls { problem } => {
                tracing::warn!(%problem, "nothing can be kept, so nothing is decided")
            }
        }
        events.tell(Happening::Leader(now));
    }
}

async fn watch_worlds(handle: &Handle, events: &Events) {
    let (mut last, mut made) = (handle.last_world(), handle.made());
    while made.changed().await.is_ok() {
        let world = handle.last_world();
        for hot in changes(&last, &world) {
            events.tell(Happening::Hotspot(hot));
        }
        events.tell(Happening::Racks(world.clone()));
        last = world;
        tokio::time::sleep(TICK).await;
    }
}

/// Links that became hot or cooled down between two snapshots, in order of ids. Empty after a change of the
/// cluster, which has its own event.
fn changes(last: &World, world: &World) -> Vec<Hot> {
    if !Arc::ptr_eq(&last.fabric, &world.fabric) {
        return Vec::new();
    }
    let mut changed = Vec::new();
    for (before, now) in last.links.iter().zip(&world.links) {
        let (since, until) = match (before.hot_since, now.hot_since) {
            (before, Some(since)) if before != Some(since) => (since, None),
            (Some(since), None) => (since, Some(world.at)),
            _ => continue,
        };
        let (link, utilization) = (world.fabric.resource_name(now.link), now.utilization());
        changed.push(Hot { link, utilization, since, at: world.at, until });
    }
    changed
}
