//! What an explanation says of one candidate, by names: the one record that every reader of decisions is given.

use std::borrow::Cow;

use leeward_fabric::Fabric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Candidate, Considered, Objectives, Sight, Verdict};

/// One candidate of a decision, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The host, rack or pod.
    pub candidate: String,
    /// The link or device that limits it, or `disk` for what a disk writes at most; where that was looked at.
    pub limit: Option<String>,
    /// How the load of its link is known: `counter`, `derived` (the sum of those below it) or `unseen`.
    #[schemars(extend("enum" = ["counter", "derived", "unseen", null]))]
    pub sight: Option<Cow<'static, str>>,
    /// The number that ranked it, in bit/s.
    pub value_bps: Option<i64>,
    /// What ranks it for a task, the first that differs deciding; where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectives: Option<Objectives>,
    /// `chosen`, `outranked` or `refused`.
    #[schemars(extend("enum" = ["chosen", "outranked", "refused"]))]
    pub verdict: Cow<'static, str>,
    /// Why it was refused.
    pub because: Option<Cow<'static, str>>,
}

impl Reason {
    /// A candidate of a decision on `fabric`.
    pub fn of(fabric: &Fabric, considered: &Considered) -> Reason {
        let Considered { candidate, limit, value, sight, objectives, verdict } = *considered;
        let (verdict, because) = match verdict {
            Verdict::Chosen => ("chosen", None),
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
