//! Descriptions of a trace, its curves and its models.

use leeward_calculus::assumptions::Stationarity;
use leeward_calculus::fit::{Fit, FitSettings};
use leeward_calculus::{ArrivalCurve, RbCurve, TokenBucket};
use leeward_models::ModelRecord;
use leeward_traces::Stage;
use leeward_traces::read::{Rest, Tally};
use serde::Serialize;

pub fn unit(stage: Stage) -> &'static str {
    if stage == Stage::Storage { "s" } else { "bytes" }
}

pub fn bucket(bucket: TokenBucket) -> Bucket {
    Bucket { rate: bucket.rate(), burst: bucket.burst() }
}

pub fn buckets(curve: &ArrivalCurve) -> Vec<Bucket> {
    curve.buckets().iter().copied().map(bucket).collect()
}

#[derive(Serialize)]
pub struct TraceStatistics {
    pub file: String,
    pub dialect: &'static str,
    pub device: Option<String>,
    pub requests: u64,
    pub lines: u64,
    pub passed_over: u64,
    pub left_out: Vec<LeftOut>,
    pub lost_events: u64,
    /// Requests whose size had a fraction of a byte, which was rounded up.
    pub rounded: u64,
    /// Requests that were before the one above them.
    pub moved: u64,
    /// Longest time by which one was before the latest of those above it.
    pub disorder_s: f64,
    pub seconds: f64,
    pub requests_per_s: Option<f64>,
    pub gap_c2: Option<f64>,
    pub window_s: f64,
    pub peak_over_mean: Option<f64>,
    pub read_share: Option<f64>,
    pub bytes: f64,
    pub mean_size_bytes: Option<f64>,
    pub largest_size_bytes: Option<u64>,
    pub stages: Vec<StageStatistics>,
    pub unloaded_s: Option<f64>,
    pub outstanding: Option<u32>,
}

/// Lines that are no request, by reason.
#[derive(Serialize)]
pub struct LeftOut {
    pub reason: &'static str,
    pub lines: u64,
}

impl LeftOut {
    pub fn of(tally: &Tally) -> Vec<LeftOut> {
        let all = Rest::ALL.map(|reason| LeftOut { reason: reason.name(), lines: tally.rest(reason) });
        all.into_iter().filter(|left| left.lines > 0).collect()
    }
}

#[derive(Serialize)]
pub struct StageStatistics {
    pub stage: &'static str,
    pub unit: &'static str,
    pub total: f64,
    pub rate: Option<f64>,
    pub largest: f64,
    pub peak_over_mean: Option<f64>,
}

#[derive(Serialize)]
pub struct Bucket {
    pub rate: f64,
    pub burst: f64,
}

#[derive(Serialize)]
pub struct Curve {
    pub stage: &'static str,
    pub unit: &'static str,
    pub mean_rate: Option<f64>,
    pub largest: f64,
    pub total: f64,
    pub vertices: usize,
    pub buckets: Vec<Bucket>,
    pub error: f64,
    pub multiple: f64,
    pub at_mean: Option<Bucket>,
    pub knee: Option<Bucket>,
    pub deadline_s: Option<f64>,
    pub effective_bandwidth: Option<f64>,
}

#[derive(Serialize)]
pub struct Model {
    pub unit: &'static str,
    pub interval_s: f64,
    pub batch_s: f64,
    pub mean_work_per_s: f64,
    pub misfit: Misfit,
    /// Factor of all rates with which the bounds of the model hold for the trace alone.
    pub lift: f64,
    /// Test of the work for a load that changes over the trace; none for a short trace.
    pub stationarity: Option<StationarityRecord>,
    pub notes: Vec<String>,
    /// Fields that a file of workloads needs.
    #[serde(flatten)]
    pub record: ModelRecord,
}

#[derive(Serialize)]
pub struct Misfit {
    pub requests: f64,
    pub work: f64,
    pub peak: f64,
}

/// Result of the test of a trace for a load that changes over its time.
#[derive(Serialize)]
pub struct StationarityRecord {
    pub p: f64,
    pub stationary: bool,
    /// Work per second in either half of the trace.
    pub halves_per_s: [f64; 2],
}

pub fn stationarity(tested: Option<Stationarity>) -> Option<StationarityRecord> {
    let record = |tested: Stationarity| StationarityRecord {
        p: tested.p,
        stationary: !tested.is_rejected(),
        halves_per_s: tested.halves,
    };
    tested.map(record)
}

impl Model {
    pub fn of(
        stage: Stage,
        settings: &FitSettings,
        fit: &Fit,
        tested: Option<Stationarity>,
        curve: &RbCurve,
        outstanding: Option<u32>,
    ) -> Model {
        let (model, misfit) = (&fit.model, fit.deviation);
        let record = ModelRecord { outstanding, ..ModelRecord::of(stage, model, settings.sigma) };
        let changes = tested.filter(Stationarity::is_rejected).map(|_| {
            format!("{stage}: its load changes over the trace; bounds by snc assume that it does not")
        });
        Model {
            unit: unit(stage),
            interval_s: fit.interval,
            batch_s: fit.batch,
            mean_work_per_s: model.mean() / model.step(),
            misfit: Misfit { requests: misfit.requests, work: misfit.work, peak: misfit.peak },
            lift: fit.lift,
            stationarity: stationarity(tested),
            notes: changes.into_iter().collect(),
            record: record.with_curve(&curve.arrival_curve(), curve.largest()),
        }
    }
}
