//! The parameter `dry_run` of requests that commit.

use schemars::JsonSchema;
use serde::Deserialize;

/// Query of a request that commits.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DryRunQuery {
    /// True to check and decide the request without a commit: nothing changes, and no key or sequence number is used.
    #[serde(default)]
    pub dry_run: bool,
}
