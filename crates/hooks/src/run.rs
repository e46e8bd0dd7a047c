//! The loop that posts advised moves.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leeward_records::{Clock, Migration, MigrationAnswer, MigrationState};
use leeward_service::{Handle, LeaderState, MigrationQuery};
use tokio::task::JoinSet;

use super::Hook;
use super::posts::Posts;

/// Longest time between two looks for advised moves.
const EVERY: Duration = Duration::from_secs(1);

/// Posts advised moves to the hook that `current` returns, forever. A reload may change the hook. Moves are read again
/// before each request, so no move is posted that has expired or was undone, and only the leader posts.
pub async fn carry_out(
    current: impl Fn() -> Option<Arc<Hook>> + Send,
    handle: Handle,
    clock: Clock,
) -> Infallible {
    let mut posts = Posts::default();
    let mut requests: JoinSet<(u64, Result<MigrationAnswer, String>)> = JoinSet::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            Some(done) = requests.join_next() => {
                let (id, result) = done.expect("a request neither panics nor is cancelled");
                posts.end(id, result, clock.now());
            }
        }
        if !matches!(*handle.leader_state().borrow(), LeaderState::Leader) {
            continue;
        }
        posts.store_answers(&handle).await;
        let Some(hook) = current() else { continue };
        let query = MigrationQuery { state: Some(MigrationState::Advised), before: None, limit: usize::MAX };
        let fabric = handle.last_snapshot().fabric.clone();
        // If the cluster or the leader has just changed, the next look is soon.
        let Ok(advised) = handle.call(query, fabric).await else { continue };
        for migration in posts.begin(advised, &hook, clock.now()) {
            requests.spawn(post(hook.clone(), migration, clock.clone()));
        }
    }
}

/// Posts a move. Returns its id and the hook's answer, or the reason for which the hook did not accept the move.
async fn post(hook: Arc<Hook>, migration: Migration, clock: Clock) -> (u64, Result<MigrationAnswer, String>) {
    let id = migration.id;
    let response = tokio::task::spawn_blocking(move || hook.post(&migration, &clock)).await;
    (id, response.unwrap_or_else(|error| Err(error.to_string())))
}
