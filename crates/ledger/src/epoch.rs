//! Epochs of a ledger.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of changes that a ledger has applied. Two views of one ledger with equal epochs show the same facts.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
