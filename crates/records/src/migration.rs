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
    /// Reason of a rejection or a failure, in the client's words; for a taken move, the name of its executor.
    pub reason: Option<String>,
}

/// State of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationState {
    /// The move waits for an answer.
    #[default]
    Advised,
    /// An executor carries the move out.
    Taken,
    /// The task moved and runs again.
    Done,
    /// The client rejected the move.
    Refused,
    /// The executor could not carry the move out, and the task stays.
    Failed,
    /// No answer came in time, or the task ended first. The move of a task that still runs is undone.
    Expired,
    /// The policy chose the move while moves were in shadow mode. Nobody was advised, and the task stayed.
    Considered,
}

impl MigrationState {
    /// All states.
    pub const ALL: [MigrationState; 7] = [
        MigrationState::Advised,
        MigrationState::Taken,
        MigrationState::Done,
        MigrationState::Refused,
        MigrationState::Failed,
        MigrationState::Expired,
        MigrationState::Considered,
    ];

    /// True while the move may still be carried out.
    pub fn is_open(self) -> bool {
        matches!(self, MigrationState::Advised | MigrationState::Taken)
    }

    /// The state as a word.
    pub fn word(self) -> &'static str {
        match self {
            MigrationState::Advised => "advised",
            MigrationState::Taken => "taken",
            MigrationState::Done => "done",
            MigrationState::Refused => "refused",
            MigrationState::Failed => "failed",
            MigrationState::Expired => "expired",
            MigrationState::Considered => "considered",
        }
    }

    /// Parses a state's word.
    pub fn of(word: &str) -> Option<MigrationState> {
        MigrationState::ALL.into_iter().find(|state| state.word() == word)
    }
}
