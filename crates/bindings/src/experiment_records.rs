//! Requests and results of experiments, for `leeward_reproduce.slo`.

use leeward_calculus::fit::FitSettings;
use leeward_experiments::{Enforcement, Gaps, Peak, PromiseOutcome, Shape, TraceSettings};
use leeward_fabric::input::InputError;
use leeward_slo::bound::{BoundSettings, Method};
use leeward_slo::pack::PackSettings;
use serde::{Deserialize, Serialize};

use crate::errors::PyInputError;

/// Parses a request in JSON.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, PyInputError> {
    serde_json::from_str(text).map_err(|error| PyInputError(InputError::new("experiment", error)))
}

/// Request for a packing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackInput {
    pub shape: Machines,
    #[serde(default)]
    pub settings: PackSettings,
    #[serde(default)]
    pub way: String,
    #[serde(default = "whole_trace")]
    pub part: String,
    pub replay: Option<String>,
    #[serde(default)]
    pub over: OverLimit,
}

/// Treatment of requests over a limit in a replay.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverLimit {
    #[default]
    Enforced,
    Demoted,
    Unlimited,
}

impl From<OverLimit> for Enforcement {
    fn from(over: OverLimit) -> Enforcement {
        match over {
            OverLimit::Enforced => Enforcement::Enforced,
            OverLimit::Demoted => Enforcement::Demoted,
            OverLimit::Unlimited => Enforcement::Unlimited,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionInput {
    pub shape: Machines,
    pub policy: String,
    #[serde(default)]
    pub settings: String,
    pub stages: Vec<String>,
    pub part: String,
    pub replay: Option<String>,
    #[serde(default)]
    pub over: OverLimit,
    /// Packet size of links in the replay, in bytes; without it, links send each request as one unit.
    pub packet: Option<f64>,
    /// Percentile that replaces the percentile of the traces.
    pub percentile: Option<f64>,
}

/// Settings for curves and models of traces.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceOptions {
    /// Set to true to fit models as in the released code.
    pub published: bool,
}

impl TraceOptions {
    pub fn settings(text: &str) -> Result<TraceSettings, PyInputError> {
        let TraceOptions { published } = if text.is_empty() { TraceOptions::default() } else { read(text)? };
        let fit = if published { FitSettings::published() } else { FitSettings::default() };
        Ok(TraceSettings { fit, ..TraceSettings::default() })
    }
}

/// Request for drawn traces of a cache.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheInput {
    pub seed: u64,
    pub count: u64,
    pub seconds: f64,
    /// Size in bytes of every request of the first `small` traces; other sizes are drawn.
    #[serde(default)]
    pub size: u64,
    #[serde(default)]
    pub small: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstFitInput {
    pub shape: Machines,
    pub policy: String,
    pub settings: String,
    pub margin: f64,
    pub part: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailsInput {
    pub part: String,
    pub bytes_per_second: f64,
    #[serde(default)]
    pub dependent: usize,
    pub excess: f64,
    #[serde(default)]
    pub bounds: BoundSettings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundsInput {
    pub part: String,
    pub shape: Machines,
    pub stages: Vec<String>,
    pub method: Method,
    #[serde(default)]
    pub bounds: BoundSettings,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    pub clients: usize,
    pub slots: Option<u32>,
    pub servers: usize,
    pub devices: usize,
    pub bytes_per_second: f64,
}

impl Machines {
    pub fn shape(self) -> Shape {
        let Machines { clients, slots, servers, devices, bytes_per_second } = self;
        Shape { clients, slots, servers, devices, bytes: bytes_per_second }
    }
}

fn whole_trace() -> String {
    "whole".to_owned()
}

#[derive(Serialize)]
pub struct TailBounds {
    pub dnc: Option<f64>,
    pub priority_meister: Option<f64>,
    pub bipartite: Option<f64>,
    pub hop_by_hop: Option<f64>,
    pub convolution: Option<f64>,
}

impl From<leeward_experiments::Tails> for TailBounds {
    fn from(tails: leeward_experiments::Tails) -> TailBounds {
        let leeward_experiments::Tails { dnc, priority_meister, bipartite, hop_by_hop, convolution } = tails;
        TailBounds { dnc, priority_meister, bipartite, hop_by_hop, convolution }
    }
}

#[derive(Serialize)]
pub struct Peaks {
    pub each: Vec<PeakLoads>,
    pub all: PeakLoads,
}

#[derive(Serialize)]
pub struct PeakLoads {
    pub requests: f64,
    pub mean_requests: f64,
    pub bytes: f64,
    pub mean_bytes: f64,
}

impl From<Peak> for PeakLoads {
    fn from(peak: Peak) -> PeakLoads {
        let Peak { requests, mean_requests, bytes, mean_bytes } = peak;
        PeakLoads { requests, mean_requests, bytes, mean_bytes }
    }
}

#[derive(Serialize)]
pub struct GapRecord {
    pub requests: usize,
    pub c2: f64,
    pub correlation: f64,
    pub dispersion: f64,
    pub median: f64,
}

impl From<Gaps> for GapRecord {
    fn from(gaps: Gaps) -> GapRecord {
        let Gaps { requests, c2, correlation, dispersion, median } = gaps;
        GapRecord { requests, c2, correlation, dispersion, median }
    }
}

#[derive(Serialize)]
pub struct Outcome {
    pub servers: Option<usize>,
    pub most: Option<usize>,
    pub refused: Vec<(usize, String)>,
    pub placed: Vec<usize>,
    pub replayed: Option<Vec<ReplayOutcome>>,
}

#[derive(Serialize)]
pub struct ReplayOutcome {
    pub slo_s: f64,
    pub tail_s: f64,
    pub largest_s: f64,
    pub requests: u64,
    pub late: u64,
    pub windows: usize,
    pub met: usize,
}

impl From<PromiseOutcome> for ReplayOutcome {
    fn from(outcome: PromiseOutcome) -> ReplayOutcome {
        let PromiseOutcome { slo, tail, largest, requests, late, windows, met } = outcome;
        ReplayOutcome { slo_s: slo, tail_s: tail, largest_s: largest, requests, late, windows, met }
    }
}
