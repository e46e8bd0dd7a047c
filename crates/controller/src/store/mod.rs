//! What outlives the process. One schema for every database; what is written in one go is there whole or not at all.

mod change;
mod row;
mod schema;
mod sqlite;

pub use change::{Change, Held, Origin, State, Version};
pub use sqlite::{Durability, Sqlite};

use crate::desk::Record;

/// Where changes are kept.
pub trait Store: Send {
    /// What there is: the last decisions, so many at most, every one that holds something, and who asked for them.
    ///
    /// # Errors
    /// What is in the way; see [`StoreError`].
    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError>;

    /// Keeps changes, all of them or none.
    ///
    /// # Errors
    /// What is in the way; nothing was kept.
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError>;

    /// The decision of this number, however old.
    ///
    /// # Errors
    /// What is in the way.
    fn decision(&mut self, id: u64) -> Result<Option<Record>, StoreError>;
}

/// Why something could not be kept or read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database says no: the disk is full, the file is no database, the server is gone.
    #[error("{0}")]
    Database(String),
    /// What is in it was not written by this version or an earlier one.
    #[error("the store is of version {found}, and this program knows up to {known}; use a newer leeward")]
    Newer {
        /// Its version.
        found: i64,
        /// The last one that is known.
        known: i64,
    },
    /// A row cannot be read.
    #[error("{table} {id}: {problem}")]
    Row {
        /// The table.
        table: &'static str,
        /// The row.
        id: u64,
        /// What is wrong.
        problem: String,
    },
}
