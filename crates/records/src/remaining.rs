//! Transfers that a running app still has to make, with the names of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::Bytes;
use leeward_fabric::input::excerpt;
use leeward_placement::tasks::Transfer;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::TasksSpec;

/// A transfer that is left.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemainingTransfer {
    /// Name of the sending task, with its number if the task has a count.
    pub from: String,
    /// Name of the receiving task.
    pub to: String,
    /// Bytes that are left.
    pub bytes: Bytes,
    /// Phase of the app in which they are sent.
    #[serde(default)]
    pub phase: u32,
}

impl TasksSpec {
    /// Transfers that the app still has to make; by default all of them.
    ///
    /// # Errors
    /// A message for an unknown task or phase, for a task that sends to itself, and for a pair of tasks that occurs twice.
    pub fn remaining(&self, named: Option<&[RemainingTransfer]>) -> Result<Vec<Transfer>, String> {
        let Some(named) = named else { return Ok(self.transfers.iter().map(Transfer::from).collect()) };
        let indices: BTreeMap<&str, u32> =
            self.tasks.iter().map(|task| task.name.as_str()).zip(0..).collect();
        let index = |name: &str| {
            let unknown = || format!("the app has no task `{}`", excerpt(name));
            indices.get(name).copied().ok_or_else(unknown)
        };
        let last = self.transfers.iter().map(|transfer| transfer.phase).max().unwrap_or(0);
        let mut seen = BTreeSet::new();
        let mut transfers = Vec::with_capacity(named.len());
        for RemainingTransfer { from, to, bytes, phase } in named {
            let transfer = Transfer { from: index(from)?, to: index(to)?, bytes: *bytes, phase: *phase };
            if transfer.phase > last {
                return Err(format!("the app has no phase {phase}: its last one is {last}"));
            }
            if transfer.from == transfer.to || !seen.insert((phase, transfer.from, transfer.to)) {
                return Err(format!("`{from}` to `{to}`: expected two tasks, and each pair once"));
            }
            transfers.push(transfer);
        }
        transfers.sort_by_key(|transfer| transfer.phase);
        Ok(transfers)
    }
}
