//! What outlives the process. One schema for every database; what is written in one go is there whole or not at all.
//!
//! A file is one service's alone. A PostgreSQL may be shared by several: one of them leads and writes, and the others
//! follow what it writes, until one of them leads in its place.

mod change;
mod checkpoints;
mod postgres;
mod row;
mod schema;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

pub use change::{Change, Held, Origin, State, Version};
pub use postgres::{Database, Postgres};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use sqlite::Sqlite;

use crate::desk::Record;

/// What is old is looked for after so many changes.
const SWEEP: usize = 1_000;
/// Decisions that are forgotten in one go at most: more than may be made between two, and not so many that others wait long.
const FORGOTTEN: u64 = 6_000;
/// Changes that are told one by one.
const TELLABLE: usize = 10_000;

/// What acknowledged changes outlive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The process: it may be killed at any moment. When the machine loses power, the last ones may be lost. A PostgreSQL
    /// keeps them as it is set to, which is on disk unless somebody chose otherwise.
    #[default]
    Process,
    /// The machine's power, where its disks keep what they say that they keep.
    Power,
}

/// What keeps changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory; they end with the process.
    Memory,
    /// A file.
    Sqlite(Durability),
    /// A database that services may share.
    Postgres(Durability),
}

impl Kind {
    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::Sqlite(_) => "sqlite",
            Kind::Postgres(_) => "postgres",
        }
    }

    /// What changes outlive; `None` if they outlive nothing.
    pub fn durability(self) -> Option<Durability> {
        match self {
            Kind::Memory => None,
            Kind::Sqlite(durability) | Kind::Postgres(durability) => Some(durability),
        }
    }
}

/// Whether a service leads, by its store.
#[derive(Clone, PartialEq, Debug)]
pub enum Leadership {
    /// It leads: what is decided here is kept.
    Leads {
        /// How many have led before, it itself included if it did.
        term: u64,
    },
    /// Another one leads.
    Follows {
        /// Its address; `None` if it has not said it.
        leader: Option<Arc<str>>,
        /// What it has kept since.
        news: News,
    },
}

impl Leadership {
    /// What is true now, for somebody who was not told yet what was true `before`: no news is lost.
    pub fn after(self, before: Option<Leadership>) -> Leadership {
        match (before, self) {
            (Some(Leadership::Follows { news: earlier, .. }), Leadership::Follows { leader, news }) => {
                Leadership::Follows { leader, news: earlier.and(news) }
            }
            (_, now) => now,
        }
    }
}

/// What another service has kept since the store was last loaded or asked.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// These changes, in order. What they are about may have changed further: they tell of it as it is now.
    Changes(Vec<Change>),
    /// More than can be told one by one: the store is to be loaded again.
    Everything,
}

impl News {
    /// Both, in one.
    fn and(self, later: News) -> News {
        match (self, later) {
            (News::Changes(mut changes), News::Changes(mut later)) if changes.len() < TELLABLE => {
                changes.append(&mut later);
                News::Changes(changes)
            }
            _ => News::Everything,
        }
    }
}

/// Where changes are kept.
pub trait Store: Send {
    /// What it is.
    fn kind(&self) -> Kind;

    /// Whether what is decided here is kept. It is asked over and over, and by that finds out what was lost and is back.
    /// Where nobody leads, this service does from then on, and others are told that it is at `address`.
    ///
    /// # Errors
    /// What is in the way; nothing can be kept.
    fn stand(&mut self, address: &str) -> Result<Leadership, StoreError>;

    /// What there is: the last decisions, so many at most, every one that holds something, and who asked for them.
    ///
    /// # Errors
    /// What is in the way; see [`StoreError`].
    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError>;

    /// Decisions by their numbers, in any order; those that are not kept are left out.
    ///
    /// # Errors
    /// What is in the way; see [`StoreError`].
    fn decisions(&mut self, ids: &[u64]) -> Result<Vec<Record>, StoreError>;

    /// Keeps changes, all of them or none.
    ///
    /// # Errors
    /// What is in the way; nothing was kept, unless that is [`StoreError::Unknown`].
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError>;
}

/// Why something could not be kept or read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database says no: the disk is full, the file is no database, the server is gone.
    #[error("{0}")]
    Database(String),
    /// Nothing is heard of the database, and its connection is open.
    #[error("the store has said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The database did not say whether it is kept.
    #[error("{0}; whether it was kept is not known")]
    Unknown(String),
    /// Another service leads, or nobody does.
    #[error("this service does not lead any more")]
    Deposed,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_told_nothing_for_a_while_misses_no_news() {
        let job = |name: usize| Change::Job(name.to_string(), Default::default());
        let follows = |news| Leadership::Follows { leader: None, news };
        let told = (0..4).map(|name| follows(News::Changes(vec![job(name)])));
        let told = told.fold(None, |before, now| Some(now.after(before)));
        assert_eq!(told, Some(follows(News::Changes((0..4).map(job).collect()))));
        // Who was to load everything still is, and so is who would be told too much.
        let everything = follows(News::Everything);
        let after = |before: &Leadership, news| follows(news).after(Some(before.clone()));
        assert_eq!(after(&everything, News::Changes(vec![job(0)])), everything);
        assert_eq!(after(&follows(News::Changes(vec![job(0)])), News::Everything), everything);
        let much = follows(News::Changes((0..TELLABLE).map(job).collect()));
        assert_eq!(after(&much, News::Changes(vec![job(0)])), everything);
        // Who leads now knows what it needs.
        assert_eq!(Leadership::Leads { term: 1 }.after(Some(everything)), Leadership::Leads { term: 1 });
    }
}
