//! Task moves that the policy advises, and their states.

use leeward_fabric::Nanos;

/// A move that was advised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migration {
    /// Its number.
    pub id: u64,
    /// When it was advised.
    pub at: Nanos,
    /// The decision that placed the task.
    pub decision: u64,
    /// The task's position in it.
    pub index: u32,
    /// What the task is called.
    pub task: String,
    /// Its job, where it has one with a name.
    pub job: Option<String>,
    /// Where it was.
    pub from: String,
    /// Where it is to go.
    pub to: String,
    /// The hot link that it leaves.
    pub link: String,
    /// What became of it.
    pub state: MigrationState,
    /// Why it was refused, as who refused it said.
    pub reason: Option<String>,
}

/// What became of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationState {
    /// It waits to be made.
    #[default]
    Advised,
    /// It was made, and the task runs again.
    Done,
    /// It is not made.
    Refused,
    /// Nobody answered in time, so it counts as not made; or the task ended before.
    Expired,
}

impl MigrationState {
    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            MigrationState::Advised => "advised",
            MigrationState::Done => "done",
            MigrationState::Refused => "refused",
            MigrationState::Expired => "expired",
        }
    }

    /// Of a word.
    pub fn of(word: &str) -> Option<MigrationState> {
        let all = [Self::Advised, Self::Done, Self::Refused, Self::Expired];
        all.into_iter().find(|state| state.word() == word)
    }
}
