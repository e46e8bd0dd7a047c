//! The loop that posts advised moves.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_records::{Clock, Migration, MigrationState};
use leeward_service::{AnswerMigration, Handle, LeaderState, MigrationAnswer, MigrationQuery};

use super::Hook;

/// Time between two looks for advised moves.
const EVERY: Duration = Duration::from_secs(1);
/// Time after which a move that the hook did not accept is posted again.
const RETRY: Nanos = Nanos(5 * Nanos::SECOND.0);
/// Largest number of moves in one look.
const AT_ONCE: usize = 100;

/// Posts advised moves to the hook that `current` returns, forever. A reload may change the hook.
pub async fn carry_out(
    current: impl Fn() -> Option<Arc<Hook>> + Send,
    handle: Handle,
    clock: Clock,
) -> Infallible {
    // Times of the next requests for moves that the hook did not accept.
    let mut later: BTreeMap<u64, Nanos> = BTreeMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(hook) = current() else { continue };
        if !matches!(*handle.leader_state().borrow(), LeaderState::Leader) {
            continue;
        }
        let fabric = handle.last_snapshot().fabric.clone();
        let query = MigrationQuery { state: Some(MigrationState::Advised), before: None, limit: AT_ONCE };
        // A service without a cluster or a store advises no moves.
        let Ok(moves) = handle.call(query, fabric.clone()).await else { continue };
        later.retain(|id, _| moves.iter().any(|one| one.id == *id));
        for one in moves.into_iter().rev() {
            let id = one.id;
            if later.get(&id).is_some_and(|&at| clock.now() < at) {
                continue;
            }
            match post(&hook, one, &clock).await {
                Ok(answer) => {
                    // The move may have expired, or another executor may have taken it.
                    if let Err(error) = handle.call(AnswerMigration(id, answer), fabric.clone()).await {
                        tracing::warn!(id, ?error, "move: the hook's answer came too late");
                    }
                }
                Err(reason) => {
                    tracing::warn!(id, reason, "move: the hook did not accept it");
                    later.insert(id, clock.now().plus(RETRY));
                }
            }
        }
    }
}

async fn post(hook: &Arc<Hook>, migration: Migration, clock: &Clock) -> Result<MigrationAnswer, String> {
    let (hook, clock) = (hook.clone(), clock.clone());
    let post = tokio::task::spawn_blocking(move || hook.post(&migration, &clock));
    post.await.unwrap_or_else(|error| Err(error.to_string()))
}
