//! The moves to post now, and the answers of the hook that the service has not stored yet.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::Nanos;
use leeward_records::{Migration, MigrationAnswer};
use leeward_service::{AnswerMigration, CallError, Handle};

use super::Hook;

/// Time after which a move that the hook did not accept is posted again.
const RETRY: Nanos = Nanos(5 * Nanos::SECOND.0);
/// Largest number of requests at a time, so that a slow response does not hold up the other moves.
const AT_ONCE: usize = 4;

/// Requests to the hook.
#[derive(Default)]
pub struct Posts {
    /// Moves whose request has no response yet.
    running: BTreeSet<u64>,
    /// Times of the next requests for moves that the hook did not accept.
    later: BTreeMap<u64, Nanos>,
    /// Answers that the service has not stored yet.
    answers: BTreeMap<u64, MigrationAnswer>,
}

impl Posts {
    /// Moves to post now, of all advised moves, the oldest first.
    pub fn begin(&mut self, mut advised: Vec<Migration>, hook: &Hook, now: Nanos) -> Vec<Migration> {
        advised.sort_by_key(|migration| migration.id);
        let ids: BTreeSet<u64> = advised.iter().map(|migration| migration.id).collect();
        self.later.retain(|id, _| ids.contains(id));
        let is_due = |migration: &Migration| {
            let id = &migration.id;
            !self.running.contains(id)
                && !self.answers.contains_key(id)
                && self.later.get(id).is_none_or(|&at| now >= at)
                && hook.has_time(migration, now)
        };
        let room = AT_ONCE.saturating_sub(self.running.len());
        let due: Vec<Migration> = advised.into_iter().filter(is_due).take(room).collect();
        self.running.extend(due.iter().map(|migration| migration.id));
        due
    }

    /// Takes the result of a request.
    pub fn end(&mut self, id: u64, result: Result<MigrationAnswer, String>, now: Nanos) {
        self.running.remove(&id);
        match result {
            Ok(answer) => drop(self.answers.insert(id, answer)),
            Err(reason) => {
                tracing::warn!(id, reason, "move: the hook did not accept it");
                self.later.insert(id, now.plus(RETRY));
            }
        }
    }

    /// Gives the service the answers. An answer that the service cannot store now stays.
    pub async fn store_answers(&mut self, handle: &Handle) {
        for (id, answer) in std::mem::take(&mut self.answers) {
            let fabric = handle.last_snapshot().fabric.clone();
            match handle.call(AnswerMigration(id, answer.clone()), fabric).await {
                Ok(_) => {}
                // The move expired, moves were turned off, or another client answered.
                Err(CallError::Failed(error)) => {
                    tracing::warn!(id, ?error, ?answer, "move: the service rejected the hook's answer");
                }
                Err(CallError::Unavailable(reason)) => {
                    tracing::warn!(id, ?reason, "move: the hook's answer is not stored yet");
                    self.answers.insert(id, answer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leeward_records::{DecisionId, MigrationState, MoveOutcome};
    use leeward_settings::HookSettings;

    use super::*;

    const SECOND: u64 = Nanos::SECOND.0;

    /// An advised move with this id, advised at this second.
    fn advised(id: u64, second: u64) -> Migration {
        Migration {
            id,
            at: Nanos(second * SECOND),
            decision: DecisionId(id),
            index: 0,
            task: "t".to_owned(),
            job: None,
            from: "r0h0".to_owned(),
            to: "r1h0".to_owned(),
            link: "r0:uplink".to_owned(),
            state: MigrationState::Advised,
            executor: None,
            reason: None,
        }
    }

    /// Ids of the moves that are posted at a second.
    fn begin(posts: &mut Posts, advised: &[Migration], second: u64) -> Vec<u64> {
        let settings = HookSettings { url: "http://scheduler/moves".to_owned(), ..HookSettings::default() };
        let hook = Hook::new(&settings, Nanos(300 * SECOND)).expect("valid settings");
        let due = posts.begin(advised.to_vec(), &hook, Nanos(second * SECOND));
        due.iter().map(|migration| migration.id).collect()
    }

    #[test]
    fn the_oldest_moves_are_posted_first_and_a_few_at_a_time() {
        let mut posts = Posts::default();
        let moves: Vec<Migration> = (0..200).rev().map(|id| advised(id, 0)).collect();
        assert_eq!(begin(&mut posts, &moves, 0), [0, 1, 2, 3]);
        assert_eq!(begin(&mut posts, &moves, 1), [0; 0], "four requests wait for their responses");
        posts.end(1, Ok(MigrationAnswer::anonymous(MoveOutcome::Done)), Nanos(SECOND));
        assert_eq!(begin(&mut posts, &moves, 1), [4], "the answer to 1 is not stored yet");
    }

    #[test]
    fn a_move_that_the_hook_did_not_accept_is_posted_again_after_5_s() {
        let mut posts = Posts::default();
        let moves = [advised(7, 0)];
        assert_eq!(begin(&mut posts, &moves, 0), [7]);
        posts.end(7, Err("status 503".to_owned()), Nanos(SECOND));
        assert_eq!(begin(&mut posts, &moves, 5), [0; 0]);
        assert_eq!(begin(&mut posts, &moves, 6), [7]);
    }

    #[test]
    fn a_move_without_time_for_the_response_is_not_posted() {
        let mut posts = Posts::default();
        let moves = [advised(7, 100)];
        // The move expires at 400 s, and the response may take 10 s.
        assert_eq!(begin(&mut posts, &moves, 391), [0; 0]);
        assert_eq!(begin(&mut posts, &moves, 390), [7]);
    }
}
