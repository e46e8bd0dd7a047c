//! Descriptions of a trace, its curves and its models.

use leeward_calculus::mmpp::{self, FitSettings};
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

impl Model {
    pub fn of(
        stage: Stage,
        settings: &FitSettings,
        fit: &mmpp::Fit,
        curve: &RbCurve,
        outstanding: Option<u32>,
    ) -> Model {
        let (model, misfit) = (&fit.model, fit.deviation);
        let record = ModelRecord { outstanding, ..ModelRecord::of(stage, model, settings.sigma) };
        Model {
            unit: unit(stage),
            interval_s: settings.interval,
            batch_s: settings.batch,
            mean_work_per_s: model.mean() / model.step(),
            misfit: Misfit { requests: misfit.requests, work: misfit.work, peak: misfit.peak },
            record: record.with_curve(&curve.arrival_curve(), curve.largest()),
        }
    }
}
