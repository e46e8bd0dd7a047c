//! Decisions about promised workloads whose requests have changed.

use leeward_agreements::Form;
use leeward_fabric::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::WorkloadForm;

/// Trace from which a client computed curves and models.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// SHA-256 of the file, in hexadecimal digits.
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Number of its requests.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Time from its first to its last request, in seconds.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub seconds: Option<f64>,
}

impl TraceSource {
    /// True for a digest of the right form.
    pub fn has_digest(&self) -> bool {
        self.sha256.len() == 64
            && self.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    }
}

/// Outcome of a decision about a changed workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RedecisionOutcome {
    /// Server, priorities and limits stay.
    Keeps,
    /// The workload has other limits.
    Limits,
    /// The workload has other priorities, and maybe other limits.
    Priority,
    /// The promise is now at the server that the request names.
    Moved,
    /// The server cannot keep the SLO, and another one can. The promise stays as it was.
    Move,
    /// No server can keep the SLO. The promise stays as it was.
    Nowhere,
}

/// Last decision about a workload whose requests have changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Redecision {
    /// Outcome of the decision.
    pub outcome: RedecisionOutcome,
    /// Reason for which the server cannot keep the SLO, or for which nothing changed; null otherwise.
    pub reason: Option<String>,
    /// Trace of the requests; null if the client named none.
    pub trace: Option<TraceSource>,
    /// Server that can keep the SLO; null unless the volume should move.
    pub server: Option<String>,
    /// Device on that server.
    pub volume: Option<String>,
    /// Bound on the latency of a request there, in seconds.
    pub bound_s: Option<f64>,
    /// Copy of the volume to that server; null if the size of the volume is unknown.
    pub copy: Option<CopyPlan>,
}

/// Copy of a volume, planned as workloads of its own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CopyPlan {
    /// Device of the volume.
    pub from: String,
    /// Device of the copy.
    pub to: String,
    /// Size of the volume.
    pub bytes: Bytes,
    /// Rate of the copy, in bit/s; null if nothing is left for it.
    pub rate_bps: Option<u64>,
    /// Time that the copy takes at this rate, in seconds.
    pub seconds: Option<f64>,
    /// True if all promises hold beside a copy at this rate, and the copy keeps this rate if its `workloads` are
    /// admitted. False for a copy as best effort: the rate is what promises leave.
    pub guaranteed: bool,
    /// Workloads of the copy, for `POST /v1/workloads`: reads and transfers, and writes. Empty for best effort.
    #[schemars(with = "Vec<WorkloadForm>")]
    pub workloads: Vec<Form>,
}
