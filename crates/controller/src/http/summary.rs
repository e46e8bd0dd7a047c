//! Summary of a range of time: numbers of decisions and moves, and times of hot links with and without Leeward.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use leeward_fabric::Nanos;
use leeward_records::schema::Time;
use leeward_records::{
    Clock, Counts, DecisionCounts, DecisionRecord, Gain, HotTimes, MoveCounts, Period, PeriodLength,
};
use leeward_service::LeaderState;
use leeward_store::TimeRange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decisions::Decision;
use super::search::time;
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_problems::{IntoProblem, Problem};

/// Largest number of decisions that mattered most.
const MATTERED: usize = 10;
/// Largest number of steps.
const MAX_STEPS: u64 = 170;
const DAY: Nanos = Nanos(24 * 3_600 * Nanos::SECOND.0);

/// Range of a summary.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryQuery {
    /// Start of the range; default 24 hours before its end. 31 days are stored.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// End of the range; default now.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
}

impl SummaryQuery {
    fn range(&self, clock: &Clock) -> Result<TimeRange, Problem> {
        let now = clock.now();
        let until = time(clock, "until", self.until.as_deref())?.unwrap_or(now).min(now);
        let since = time(clock, "since", self.since.as_deref())?.unwrap_or(until.since(DAY));
        if since >= until {
            return Err(Problem::field(
                "since",
                "expected a time before the end of the range and before now",
            ));
        }
        Ok(TimeRange { since, until })
    }
}

/// Numbers of decisions of one kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KindSummary")]
pub struct KindCounts {
    /// Kind of the requests.
    kind: String,
    #[serde(flatten)]
    counts: DecisionCounts,
}

/// Times of links, summed over all links, in hours.
#[derive(Serialize, JsonSchema)]
pub struct HotLinkHours {
    /// Time above the threshold for hot links.
    seen: f64,
    /// The same if all compared decisions had been Leeward's.
    with_leeward: f64,
    /// The same if all compared decisions had been the default policy's.
    without_leeward: f64,
    /// Time with a known load.
    observed: f64,
    /// Number of decisions and moves whose other choice counts.
    compared: u64,
    /// Number of decisions about replicas and tasks whose other choice is unknown: both estimates count them as made.
    uncompared: u64,
}

/// A step of the range.
#[derive(Serialize, JsonSchema)]
pub struct SummaryStep {
    /// End of the step.
    #[schemars(with = "Time")]
    ends: String,
    /// Number of decisions.
    decided: u64,
    /// Link-hours above the threshold for hot links.
    hot_h: f64,
    /// The same if all compared decisions had been Leeward's.
    with_h: f64,
    /// The same if all compared decisions had been the default policy's.
    without_h: f64,
}

/// A decision that mattered.
#[derive(Serialize, JsonSchema)]
pub struct Mattered<'a> {
    /// Difference between Leeward's choice and the default policy's, for decisions of either.
    gain: Gain,
    /// The decision.
    decision: Decision<'a>,
}

/// Summary of a range of time.
#[derive(Serialize, JsonSchema)]
pub struct Summary<'a> {
    /// Start of the range.
    #[schemars(with = "Time")]
    from: String,
    /// End of the range.
    #[schemars(with = "Time")]
    to: String,
    /// Length of a step, in seconds.
    step_s: u64,
    /// Numbers of decisions, by kind.
    decisions: Vec<KindCounts>,
    /// Numbers of task moves.
    moves: MoveCounts,
    /// Times of hot links.
    hot_link_hours: HotLinkHours,
    /// The steps with data, in order.
    steps: Vec<SummaryStep>,
    /// Stored decisions in which the choices of both policies differ most, the largest difference first.
    mattered: Vec<Mattered<'a>>,
}

/// Length of the steps of a range.
fn step(range: TimeRange, length: PeriodLength) -> u64 {
    let (length, span) = (length.length().0, range.until.since(range.since).0);
    length * span.div_ceil(length).div_ceil(MAX_STEPS).max(1)
}

fn hours(seconds: f64) -> f64 {
    seconds / 3_600.0
}

/// The summary of periods.
fn summarize<'a>(
    clock: &Clock,
    range: TimeRange,
    step: u64,
    periods: &[Period],
    mattered: &'a [DecisionRecord],
) -> Summary<'a> {
    let (mut counts, mut hot) = (Counts::default(), HotTimes::default());
    let mut steps = BTreeMap::<u64, (u64, HotTimes)>::new();
    for period in periods {
        counts.add(&period.counts);
        hot.add(&period.hot);
        let (decided, hot) = steps.entry(period.ends.0.div_ceil(step) * step).or_default();
        *decided += period.counts.decisions.values().map(|counts| counts.decided).sum::<u64>();
        hot.add(&period.hot);
    }
    let steps = steps.into_iter().map(|(ends, (decided, hot))| SummaryStep {
        ends: clock.text(Nanos(ends)),
        decided,
        hot_h: hours(hot.seen),
        with_h: hours(hot.with_leeward),
        without_h: hours(hot.without_leeward),
    });
    Summary {
        from: clock.text(range.since),
        to: clock.text(range.until),
        step_s: step / Nanos::SECOND.0,
        decisions: counts.decisions.into_iter().map(|(kind, counts)| KindCounts { kind, counts }).collect(),
        moves: counts.moves,
        hot_link_hours: HotLinkHours {
            seen: hours(hot.seen),
            with_leeward: hours(hot.with_leeward),
            without_leeward: hours(hot.without_leeward),
            observed: hours(hot.observed),
            compared: hot.compared,
            uncompared: hot.uncompared,
        },
        steps: steps.collect(),
        mattered: mattered
            .iter()
            .filter_map(|record| {
                Some(Mattered { gain: record.details.gain()?, decision: Decision::of(record, clock) })
            })
            .collect(),
    }
}

/// The running period, if a part of it is in the range and this service stores it.
fn running(app: &AppState, range: TimeRange) -> Option<Arc<Period>> {
    let running = app.handle.running_period()?;
    let is_leader = *app.handle.leader_state().borrow() == LeaderState::Leader;
    (is_leader && running.ends > range.since && running.began < range.until).then_some(running)
}

pub async fn summary(
    State(app): SharedState,
    Params(Query(query)): Params<Query<SummaryQuery>>,
) -> ApiResult {
    let range = query.range(&app.clock)?;
    let recent = app.clock.now().since(range.since) <= PeriodLength::TenMinutes.kept();
    let length = if recent { PeriodLength::TenMinutes } else { PeriodLength::Hour };
    let running = running(&app, range);
    let read = app.handle.read(move |store| {
        let periods = store.periods(length, range)?;
        Ok((periods, store.largest_gains(range, MATTERED)?))
    });
    let (mut periods, mattered) = read.await.map_err(|error| error.problem(&app.clock))?;
    // The running period is stored every ten minutes, and its last sums count.
    if let Some(running) = running {
        periods.retain(|period| (period.length, period.began) != (running.length, running.began));
        periods.push(Period::clone(&running));
    }
    let step = step(range, length);
    Ok(Json(summarize(&app.clock, range, step, &periods, &mattered)).into_response())
}
