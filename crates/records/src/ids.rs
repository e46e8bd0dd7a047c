//! Identifiers of stored objects.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Id of a decision.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct DecisionId(pub u64);

impl DecisionId {
    /// Id after this one.
    pub fn next(self) -> DecisionId {
        DecisionId(self.0 + 1)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Number of a version of the cluster, from 1; 0 before the first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ClusterVersion(pub u64);

impl ClusterVersion {
    /// Version after this one.
    pub fn next(self) -> ClusterVersion {
        ClusterVersion(self.0 + 1)
    }
}

impl fmt::Display for ClusterVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
