//! Histories of links, as responses.

use leeward_records::Clock;
use leeward_records::schema::Time;
use leeward_service::HistoryBuckets;
use schemars::JsonSchema;
use serde::Serialize;

/// Largest number of values of a response: one hour of more than a thousand links.
pub(super) const LONGEST_HISTORY: usize = 1_000_000;

/// Times of a history's steps.
#[derive(Serialize, JsonSchema)]
pub struct Steps {
    /// Start of the first step; null without data.
    #[schemars(with = "Option<Time>")]
    pub from: Option<String>,
    /// Length of a step, in seconds.
    pub step_s: u64,
}

impl Steps {
    pub(super) fn of(buckets: &HistoryBuckets, clock: &Clock) -> Steps {
        Steps { from: buckets.from().map(|from| clock.text(from)), step_s: buckets.step() }
    }
}

/// History of a link.
#[derive(Serialize, JsonSchema)]
pub struct Series {
    /// Name of the link.
    pub link: String,
    /// Average utilization of each step; null if unknown.
    pub utilization: Vec<Option<f32>>,
}

/// History of links.
#[derive(Serialize, JsonSchema)]
pub struct History {
    /// The steps.
    #[serde(flatten)]
    pub steps: Steps,
    /// The links.
    pub series: Vec<Series>,
}
