//! Explanation of one candidate with names: the shared record of all outputs.

use std::borrow::Cow;

use leeward_fabric::Fabric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Candidate, Considered, Objectives, Sight, Verdict};

/// One candidate of a decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Name of the host, rack or pod.
    pub candidate: String,
    /// Name of the limiting link or device, or `disk` for the largest write rate of a disk; null for a candidate that
    /// was not examined.
    pub limit: Option<String>,
    /// Source of the link's load: `counter`, `derived` (the sum of the links below it) or `unseen`.
    #[schemars(extend("enum" = ["counter", "derived", "unseen", null]))]
    pub sight: Option<Cow<'static, str>>,
    /// Rate that ranked the candidate, in bit/s.
    pub value_bps: Option<i64>,
    /// Objectives that ranked the host for a task, in lexicographic order; absent for other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectives: Option<Objectives>,
    /// Result: `chosen`, `outranked` or `refused`.
    #[schemars(extend("enum" = ["chosen", "outranked", "refused"]))]
    pub verdict: Cow<'static, str>,
    /// Reason of a refusal. For a chosen host, the reason why it was tried first, or, of hosts that the caller chose, the
    /// reason for which a policy would have refused it.
    pub because: Option<Cow<'static, str>>,
}

impl Reason {
    /// Record of a candidate of a decision on `fabric`.
    pub fn of(fabric: &Fabric, considered: &Considered) -> Reason {
        let Considered { candidate, limit, value, sight, objectives, verdict } = *considered;
        let (verdict, because) = match verdict {
            Verdict::Chosen => ("chosen", None),
            Verdict::Preferred => ("chosen", Some("preferred by the request")),
            Verdict::Outranked => ("outranked", None),
            Verdict::Refused(constraint) => ("refused", Some(constraint.text())),
        };
        let candidate = match candidate {
            Candidate::Domain(domain) => fabric.domain_name(domain),
            Candidate::Host(host) => fabric.host_name(host),
        };
        Reason {
            candidate: candidate.to_owned(),
            limit: limit.map(|limit| limit.name(fabric)),
            sight: sight.map(|sight| match sight {
                Sight::Counter => "counter".into(),
                Sight::Derived => "derived".into(),
                Sight::Unseen => "unseen".into(),
            }),
            value_bps: value.map(|value| value.0),
            objectives,
            verdict: verdict.into(),
            because: because.map(Cow::from),
        }
    }
}
