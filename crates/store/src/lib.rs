//! Persistent storage. All databases have one schema, and each transaction is stored completely or not at
//! all.
//!
//! A SQLite file belongs to one service. Several services may share a PostgreSQL database: one leads and writes, and
//! the others follow, until one of them becomes the leader.

mod checkpoints;
mod file_lock;
mod period_row;
mod postgres;
mod reader;
mod row;
mod schema;
mod search;
mod sqlite;
mod sqlite_reader;
mod sqlite_rows;

use std::sync::Arc;
use std::time::Duration;

use leeward_records::{Change, DecisionId, DecisionRecord, State};
pub use postgres::{Database, Postgres};
pub use reader::{Reader, TimeRange};
use schemars::JsonSchema;
pub use search::Search;
use serde::{Deserialize, Serialize};
pub use sqlite::Sqlite;

/// Number of changes between two sweeps of old rows.
const SWEEP: usize = 1_000;
/// Largest number of decisions that a sweep deletes. It exceeds the number of decisions between two sweeps, and keeps
/// the transaction short.
const MAX_DELETED: u64 = 6_000;
/// Largest number of changes that a follower gets individually.
const MAX_CHANGES: usize = 10_000;

/// Failures that acknowledged changes survive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// End of the process at any moment. A power loss of the machine may lose the last changes. In PostgreSQL, the
    /// settings of the server decide; by default, changes are on disk.
    #[default]
    Process,
    /// Power loss of the machine, if its disks keep all writes that they acknowledge.
    Power,
}

/// Kind of store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory; the end of the process loses all changes.
    Memory,
    /// SQLite file.
    Sqlite(Durability),
    /// PostgreSQL database that services may share.
    Postgres(Durability),
}

impl Kind {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::Sqlite(_) => "sqlite",
            Kind::Postgres(_) => "postgres",
        }
    }

    /// Failures that changes survive; `None` for memory.
    pub fn durability(self) -> Option<Durability> {
        match self {
            Kind::Memory => None,
            Kind::Sqlite(durability) | Kind::Postgres(durability) => Some(durability),
        }
    }
}

/// Result of a lease renewal.
#[derive(Clone, PartialEq, Debug)]
pub enum Leadership {
    /// This service leads: its decisions can be stored.
    Leader {
        /// Number of the term, from 1; 0 in a store that is not shared.
        term: u64,
    },
    /// Another service leads.
    Follower {
        /// Address of the leader; `None` if unknown.
        leader: Option<Arc<str>>,
        /// Changes that the leader stored since the last load or renewal.
        updates: Updates,
    },
}

impl Leadership {
    /// This result, with the changes of an earlier result that was not processed yet.
    pub fn after(self, before: Option<Leadership>) -> Leadership {
        match (before, self) {
            (
                Some(Leadership::Follower { updates: earlier, .. }),
                Leadership::Follower { leader, updates },
            ) => Leadership::Follower { leader, updates: earlier.join(updates) },
            (_, now) => now,
        }
    }
}

/// Changes of another service since the last load or renewal.
#[derive(Clone, PartialEq, Debug)]
pub enum Updates {
    /// Individual changes, in order. Each change has the current state of its row, which may include later changes.
    Changes(Vec<Change>),
    /// Too many changes to report individually: the store must be loaded again.
    Everything,
}

impl Updates {
    /// Combines two lists of changes.
    fn join(self, later: Updates) -> Updates {
        match (self, later) {
            (Updates::Changes(mut changes), Updates::Changes(mut later)) if changes.len() < MAX_CHANGES => {
                changes.append(&mut later);
                Updates::Changes(changes)
            }
            _ => Updates::Everything,
        }
    }
}

/// A store of changes.
pub trait Store: Send {
    /// Kind of the store.
    fn kind(&self) -> Kind;

    /// Renews the leadership. The service calls this function repeatedly, and so detects a lost or restored connection.
    /// Without a leader, this service becomes the leader, and the other services learn its `address`.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable; nothing can be stored then.
    fn renew_lease(&mut self, address: &str) -> Result<Leadership, StoreError>;

    /// Loads the state. It includes the last `decisions` decisions and all decisions that hold resources. It also
    /// includes the idempotency entries: the last one of each client, and those of the last `keys` request keys.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError>;

    /// Loads decisions by id, in any order. Unknown ids are left out.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn decisions(&mut self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError>;

    /// Opens a connection for reads beside the writes.
    ///
    /// # Errors
    /// [`StoreError`] if the connection cannot be opened.
    fn reader(&self) -> Result<Reader, StoreError>;

    /// Stores changes, all of them or none.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was stored, except perhaps after [`StoreError::Unknown`].
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError>;
}

/// Error of a store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database reports an error: full disk, invalid file, lost server.
    #[error("{0}")]
    Database(String),
    /// The database does not respond, although its connection is open.
    #[error("the store has not responded for {} s", .0.as_secs())]
    Silent(Duration),
    /// The database did not report the result of a commit.
    #[error("{0}; the result of the write is unknown")]
    Unknown(String),
    /// Another service leads, or none.
    #[error("this service is no longer the leader")]
    Deposed,
    /// A newer version of the program wrote the store.
    #[error("the store has version {found}, and this program supports up to {known}; use a newer leeward")]
    Newer {
        /// Schema version of the store.
        found: i64,
        /// Newest known schema version.
        known: i64,
    },
    /// A row is invalid.
    #[error("{table} {id}: {problem}")]
    Row {
        /// Name of the table.
        table: &'static str,
        /// Id of the row.
        id: u64,
        /// Reason.
        problem: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_results_keep_all_changes() {
        let job = |name: usize| Change::Job(name.to_string(), Default::default());
        let follower = |updates| Leadership::Follower { leader: None, updates };
        let results = (0..4).map(|name| follower(Updates::Changes(vec![job(name)])));
        let combined = results.fold(None, |before, result| Some(result.after(before)));
        assert_eq!(combined, Some(follower(Updates::Changes((0..4).map(job).collect()))));
        // A pending full load stays pending, and too many changes require a full load.
        let everything = follower(Updates::Everything);
        let after = |before: &Leadership, updates| follower(updates).after(Some(before.clone()));
        assert_eq!(after(&everything, Updates::Changes(vec![job(0)])), everything);
        assert_eq!(after(&follower(Updates::Changes(vec![job(0)])), Updates::Everything), everything);
        let full = follower(Updates::Changes((0..MAX_CHANGES).map(job).collect()));
        assert_eq!(after(&full, Updates::Changes(vec![job(0)])), everything);
        // A leader has the current state.
        assert_eq!(Leadership::Leader { term: 1 }.after(Some(everything)), Leadership::Leader { term: 1 });
    }
}
