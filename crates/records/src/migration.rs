//! Task moves that the policy advises, and their states.

use crate::ids::DecisionId;
use leeward_fabric::Nanos;

/// An advised move of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migration {
    /// Id of the move.
    pub id: u64,
    /// Time of the advice.
    pub at: Nanos,
    /// Id of the decision that placed the task.
    pub decision: DecisionId,
    /// Index of the task in that decision.
    pub index: u32,
    /// Name of the task.
    pub task: String,
    /// Name of the task's job, if any.
    pub job: Option<String>,
    /// Source host.
    pub from: String,
    /// Destination host.
    pub to: String,
    /// Hot link that the move relieves.
    pub link: String,
    /// State of the move.
    pub state: MigrationState,
    /// Reason of a rejection, in the client's words.
    pub reason: Option<String>,
}

/// State of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationState {
    /// The move waits for an answer.
    #[default]
    Advised,
    /// The task moved and runs again.
    Done,
    /// The client rejected the move.
    Refused,
    /// No answer came in time, or the task ended first. The move of a task that still runs is undone.
    Expired,
    /// The policy chose the move while moves were in shadow mode. Nobody was advised, and the task stayed.
    Considered,
}

impl MigrationState {
    /// The state as a word.
    pub fn word(self) -> &'static str {
        match self {
            MigrationState::Advised => "advised",
            MigrationState::Done => "done",
            MigrationState::Refused => "refused",
            MigrationState::Expired => "expired",
            MigrationState::Considered => "considered",
        }
    }

    /// Parses a state's word.
    pub fn of(word: &str) -> Option<MigrationState> {
        let all = [Self::Advised, Self::Done, Self::Refused, Self::Expired, Self::Considered];
        all.into_iter().find(|state| state.word() == word)
    }
}
