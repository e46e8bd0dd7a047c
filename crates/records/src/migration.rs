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
    /// Name of the executor that took the move or reported its end, if it gave one.
    pub executor: Option<String>,
    /// Reason for which the task stays, if any: in the client's words after a rejection or a failure.
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
    /// No answer came in time, the task ended first, or moves were turned off. The move of a task that still runs is
    /// undone.
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

/// Answer to an advised move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MigrationAnswer {
    /// The outcome.
    pub outcome: MoveOutcome,
    /// Name of the executor that answers; an operator has none.
    pub executor: Option<String>,
}

/// Outcome of an advised move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoveOutcome {
    /// The executor carries the move out.
    Taken,
    /// The task runs at the destination.
    Done,
    /// The task stays, for this reason.
    Refused(Option<String>),
    /// The executor could not move the task, for this reason.
    Failed(Option<String>),
}

impl MigrationAnswer {
    /// An answer without the name of an executor.
    pub fn anonymous(outcome: MoveOutcome) -> MigrationAnswer {
        MigrationAnswer { outcome, executor: None }
    }
}

impl MoveOutcome {
    /// State of the answered move, and its reason.
    pub fn state(self) -> (MigrationState, Option<String>) {
        match self {
            MoveOutcome::Taken => (MigrationState::Taken, None),
            MoveOutcome::Done => (MigrationState::Done, None),
            MoveOutcome::Refused(reason) => (MigrationState::Refused, reason),
            MoveOutcome::Failed(reason) => (MigrationState::Failed, reason),
        }
    }
}
