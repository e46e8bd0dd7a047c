//! A decision as a row of a table.

use std::sync::Arc;

use leeward_fabric::Nanos;

use super::{Held, Origin, StoreError, Version};
use crate::desk::{Caller, Record};

/// A row of `decisions`. Databases count in signed numbers: times end in the year 2312.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub id: i64,
    pub at: i64,
    pub client: Option<String>,
    pub sequence: Option<i64>,
    pub request_key: Option<String>,
    pub shown: String,
    pub expires: Option<i64>,
    pub released: Option<i64>,
}

/// A number as databases have it.
pub fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number of a database's.
pub fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Who asked, of the three columns.
pub fn caller(client: Option<String>, sequence: Option<i64>, key: Option<String>) -> Option<Caller> {
    match (client, sequence, key) {
        (Some(client), Some(sequence), _) => {
            Some(Caller::Client { client: Arc::from(client), sequence: unsigned(sequence) })
        }
        (_, _, key) => key.map(|key| Caller::Key(Arc::from(key))),
    }
}

impl Row {
    pub fn of(record: &Record) -> Result<Row, StoreError> {
        let (client, sequence, request_key) = match &record.caller {
            None => (None, None, None),
            Some(Caller::Key(key)) => (None, None, Some(key.to_string())),
            Some(Caller::Client { client, sequence }) => {
                (Some(client.to_string()), Some(signed(*sequence)), None)
            }
        };
        Ok(Row {
            id: signed(record.id),
            at: signed(record.at.0),
            client,
            sequence,
            request_key,
            shown: serde_json::to_string(&record.shown)
                .map_err(|error| unreadable("decisions", record.id, &error))?,
            expires: record.expires.map(|at| signed(at.0)),
            released: record.released.map(|at| signed(at.0)),
        })
    }

    pub fn record(self) -> Result<Record, StoreError> {
        let id = unsigned(self.id);
        Ok(Record {
            id,
            at: Nanos(unsigned(self.at)),
            caller: caller(self.client, self.sequence, self.request_key),
            shown: serde_json::from_str(&self.shown).map_err(|error| unreadable("decisions", id, &error))?,
            entries: Vec::new(),
            expires: self.expires.map(|at| Nanos(unsigned(at))),
            released: self.released.map(|at| Nanos(unsigned(at))),
        })
    }

    /// With what it holds.
    pub fn with_held(self, held: Option<String>) -> Result<(Record, Vec<Held>), StoreError> {
        let record = self.record()?;
        let held = held.map(|held| read_held(record.id, &held)).transpose()?;
        Ok((record, held.unwrap_or_default()))
    }
}

/// A row of `clusters`: version, time, origin, text.
pub type VersionRow = (i64, i64, String, String);

/// A version of the cluster, of its row.
pub fn version((number, at, origin, text): VersionRow) -> Version {
    let origin = if origin == "file" { Origin::File } else { Origin::Request };
    Version { number: unsigned(number), at: Nanos(unsigned(at)), origin, text: Arc::from(text) }
}

/// The row of a version of the cluster.
pub fn of_version(version: &Version) -> VersionRow {
    let origin = match version.origin {
        Origin::File => "file",
        Origin::Request => "request",
    };
    (signed(version.number), signed(version.at.0), origin.to_owned(), version.text.to_string())
}

/// What a decision holds, as text.
pub fn held_text(id: u64, held: &[Held]) -> Result<String, StoreError> {
    serde_json::to_string(held).map_err(|error| unreadable("commitments", id, &error))
}

/// What a decision holds, from text.
fn read_held(id: u64, text: &str) -> Result<Vec<Held>, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable("commitments", id, &error))
}

fn unreadable(table: &'static str, id: u64, error: &serde_json::Error) -> StoreError {
    StoreError::Row { table, id, problem: error.to_string() }
}
