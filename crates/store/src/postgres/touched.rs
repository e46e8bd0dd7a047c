//! Ids of the rows that a commit touches. Followers read the rows themselves.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::row::signed;
use super::super::{Change, StoreError};

/// Rows touched by commits.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Touched {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub decided: BTreeSet<i64>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub moved: BTreeSet<i64>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub ended: BTreeSet<i64>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub migrations: BTreeSet<i64>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub jobs: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub compared: BTreeSet<i64>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub enforcers: BTreeSet<String>,
    /// True if the set of promises has a new version.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promises: bool,
    /// True if the modes changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub modes: bool,
    /// True if the cluster changed; a follower must then load everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
}

impl Touched {
    /// Rows that changes touch.
    pub fn of(changes: &[Change]) -> Touched {
        let mut touched = Touched::default();
        for change in changes {
            match change {
                Change::Decided(record, _) => touched.decided.insert(signed(record.id.0)),
                Change::Moved(record, _) => touched.moved.insert(signed(record.id.0)),
                Change::Ended { id, .. } => touched.ended.insert(signed(id.0)),
                Change::Migration(migration) => touched.migrations.insert(signed(migration.id)),
                Change::Job(name, _) | Change::JobOver(name) => touched.jobs.insert(name.clone()),
                Change::Compared(record) | Change::Confirmed(record) => {
                    touched.compared.insert(signed(record.id.0))
                }
                Change::Enforcer(enforcer) => touched.enforcers.insert(enforcer.name.clone()),
                Change::EnforcerGone(name) => touched.enforcers.insert(name.clone()),
                Change::Promises(_) => std::mem::replace(&mut touched.promises, true),
                Change::Modes(_) => std::mem::replace(&mut touched.modes, true),
                Change::Period(_) | Change::LinkNames(..) => continue,
                Change::Cluster(_) => std::mem::replace(&mut touched.cluster, true),
            };
        }
        touched
    }

    /// JSON for the table `commits`.
    ///
    /// # Errors
    /// [`StoreError`] if the ids cannot be serialized.
    pub fn text(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|error| StoreError::Database(error.to_string()))
    }

    /// Adds the rows of another commit.
    ///
    /// # Errors
    /// [`StoreError::Row`] for an invalid record.
    pub fn add(&mut self, number: i64, text: &str) -> Result<(), StoreError> {
        let unreadable = |error: serde_json::Error| {
            let id = super::super::row::unsigned(number);
            StoreError::Row { table: "commits", id, problem: error.to_string() }
        };
        let mut more: Touched = serde_json::from_str(text).map_err(unreadable)?;
        self.decided.append(&mut more.decided);
        self.moved.append(&mut more.moved);
        self.ended.append(&mut more.ended);
        self.migrations.append(&mut more.migrations);
        self.jobs.append(&mut more.jobs);
        self.compared.append(&mut more.compared);
        self.enforcers.append(&mut more.enforcers);
        self.promises |= more.promises;
        self.modes |= more.modes;
        self.cluster |= more.cluster;
        Ok(())
    }
}
