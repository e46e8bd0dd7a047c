//! Fields of a workload file.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use leeward_calculus::fit::{FitSettings, SizeModel};
use leeward_fabric::input::{Spanned, one_line};
use leeward_fabric::{Nanos, ResourceKind};
use leeward_models::{BucketsFile, CurvesFile, ModelsFile, Share};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::over::OverFile;
use super::priority::PriorityFile;
use super::replay::ReplayFile;
use crate::bound::BoundSettings;

/// Default margin added to requests, for load that a trace did not show. With a smaller margin, a few workloads miss
/// their SLO in the held-out halves of SLO section 5.4.2.
const MARGIN: Share = Share(0.1);
/// Default largest number of buckets of a curve.
const BUCKETS: usize = 32;

/// Workloads with SLOs, and their hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Workloads")]
pub struct WorkloadsFile {
    /// Display name.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// The workloads, at least one.
    #[schemars(with = "Vec<WorkloadFile>")]
    pub workloads: Vec<Spanned<WorkloadFile>>,
    /// Device file of every server that `devices` does not name.
    pub device: Option<String>,
    /// Device files by server: a host, or `host:device`.
    #[serde(default)]
    pub devices: BTreeMap<String, String>,
    /// Size of requests on the network, in bytes.
    #[serde(default)]
    pub network: NetworkFile,
    /// Default stages of workloads. Default all three.
    pub stages: Option<Vec<StageName>>,
    /// Sorts the requests of traces by time. Otherwise a request before the one above it is an error. Default false.
    #[serde(default)]
    pub sort: bool,
    /// Margin added to requests in curves; models stay unchanged. Default 10%.
    #[serde(default = "margin")]
    pub margin: Share,
    /// Largest number of buckets of each curve; fewer buckets never lower the curve. Default 32.
    #[serde(default = "buckets")]
    pub buckets: usize,
    /// Links of a path that count as queues. Default `everywhere`; for arrivals beside existing workloads, the existing
    /// value.
    pub congestion: Option<Congestion>,
    /// Latencies of links and devices, in addition to waiting and service. Default 0; for arrivals beside existing
    /// workloads, the existing values.
    pub latency: Option<LatencyFile>,
    /// Number of priorities that networks distinguish, if priorities follow SLOs. Default 7; for arrivals beside
    /// existing workloads, the existing value.
    pub levels: Option<u32>,
    /// Settings of bounds. For arrivals beside existing workloads, the existing settings.
    pub bounds: Option<BoundSettings>,
    /// Settings to fit models to traces.
    #[serde(default)]
    pub fit: FitFile,
    /// Handling of requests over a limit, unless a workload has its own: `held` or `demoted`, or one for each stage.
    /// Bounds assume `held`. Default `held`.
    pub over: Option<OverFile>,
    /// Settings of replays of the traces.
    #[serde(default)]
    pub replay: ReplayFile,
}

fn margin() -> Share {
    MARGIN
}

fn buckets() -> usize {
    BUCKETS
}

/// A workload: one stream of requests to one volume.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Name of the workload.
    pub name: String,
    /// Host that sends the requests.
    pub client: String,
    /// Host that has the volume, or its device: `r1h3` or `r1h3:ssd0`. If left out, packing chooses it.
    pub server: Option<String>,
    /// SLO to promise; best effort if left out.
    pub slo: Option<SloFile>,
    /// Trace of its requests; alternatively `curves`, `model` or both.
    pub trace: Option<String>,
    /// Restricts the trace to requests of this volume, in dialects that name volumes.
    pub volume: Option<String>,
    /// r-b curves: for each stage a list of token buckets that hold together, or the name of a file with the
    /// JSON of `leeward slo curve`.
    pub curves: Option<CurvesFile>,
    /// Models: the JSON of `leeward slo model`, which also has curves, or the name of a file with that JSON.
    pub model: Option<ModelsFile>,
    /// Latency of requests at the device without queueing, at the SLO's percentile. It replaces the value of the device
    /// file.
    pub unloaded: Option<Nanos>,
    /// Requests that the device has at once, for a workload of curves: at least 1. By default the number in the JSON of the
    /// curves, or that of `bounds`. A device file states its own.
    pub outstanding: Option<NonZeroU32>,
    /// Stages of the workload. The default is the file's `stages`.
    pub stages: Option<Vec<StageName>>,
    /// Workloads whose bursts may coincide with the bursts of this one.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Priority of the workload, 0 first: one for all stages, or one for each. By default, priorities follow SLOs if no
    /// workload has a priority.
    pub priority: Option<PriorityFile>,
    /// Enforced token buckets, by stage. By default, the workload's own curve.
    pub limits: Option<BucketsFile>,
    /// Handling of requests over the limits: `held` or `demoted`, or one for each stage. The default is the file's
    /// `over`.
    pub over: Option<OverFile>,
}

/// A latency that a percentile of requests must stay below.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SloFile {
    /// Percentile, above 0 and below 100.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 100))]
    pub percentile: f64,
    /// Time from the request to its answer.
    pub latency: Nanos,
}

/// Bytes of a request in each direction: `overhead`, plus a factor times its size.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkFile {
    /// Bytes per request in each direction. Default 200.
    pub overhead: Option<f64>,
    /// Network bytes per byte of payload, in the direction of the payload. Default 1.1.
    pub payload: Option<f64>,
    /// Network bytes per byte of payload, in the other direction. Default 0.025.
    pub other: Option<f64>,
}

/// A stage of a request's path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageName {
    /// From the client to the server.
    NetworkIn,
    /// At the server's device.
    Storage,
    /// From the server to the client.
    NetworkOut,
}

impl From<StageName> for Stage {
    fn from(name: StageName) -> Stage {
        match name {
            StageName::NetworkIn => Stage::NetworkIn,
            StageName::Storage => Stage::Storage,
            StageName::NetworkOut => Stage::NetworkOut,
        }
    }
}

/// Latencies of links and devices. A queue of capacity C and latency T serves at least C (t - T) in any t seconds with
/// backlog.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyFile {
    /// Latency of each link that counts as a queue. Default 0s.
    pub links: Nanos,
    /// Latency of each device, in addition to its latency without queueing. Default 0s.
    pub devices: Nanos,
    /// Latencies of single links and devices by name, such as `r0:uplink`. They replace `links` and `devices`.
    pub queues: BTreeMap<String, Nanos>,
}

/// Links on the path between two hosts that count as queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Links of hosts: the thesis assumes congestion at the ends of a path (SLO section 4.2.2). Links of
    /// racks and pods add no delay.
    Hosts,
    /// All links.
    #[default]
    Everywhere,
}

impl Congestion {
    /// Name in files and the API.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Hosts => "hosts",
            Congestion::Everywhere => "everywhere",
        }
    }

    /// True if links or devices of this kind count as queues.
    pub(super) fn counts(self, kind: ResourceKind) -> bool {
        let ends =
            [ResourceKind::HostEgress, ResourceKind::HostIngress, ResourceKind::Pair, ResourceKind::Device];
        self == Congestion::Everywhere || ends.contains(&kind)
    }
}

/// Settings to fit models; defaults as in `leeward slo model`.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FitFile {
    /// Shortest interval over which requests are counted. Longer ones follow as long as counts show only one state.
    /// Default 100ms.
    pub interval: Option<Nanos>,
    /// Step of the model. Default 10us.
    pub step: Option<Nanos>,
    /// Window whose requests count as one request of their summed work.
    pub batch: Option<Nanos>,
    /// Largest number of states, 1 to 16. Default 10.
    pub states: Option<usize>,
    /// Range of a state to either side, in standard deviations; only with `published`.
    pub deviations: Option<f64>,
    /// Distribution of request sizes. Default empirical.
    pub sizes: Option<SizesName>,
    /// Fits models as the thesis' released code does; other settings still apply.
    pub published: bool,
}

/// Distribution of request sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizesName {
    /// The sizes of the trace.
    Empirical,
    /// Exponential with the same mean.
    Exponential,
    /// Hyperexponential with the same mean and variance.
    Hyperexponential,
}

impl FitFile {
    pub(super) fn settings(&self) -> FitSettings {
        let base = if self.published { FitSettings::published() } else { FitSettings::default() };
        let seconds = |time: Option<Nanos>, base: f64| time.map_or(base, Nanos::as_secs_f64);
        FitSettings {
            interval: seconds(self.interval, base.interval),
            step: seconds(self.step, base.step),
            batch: seconds(self.batch, base.batch),
            states: self.states.unwrap_or(base.states),
            deviations: self.deviations.unwrap_or(base.deviations),
            sizes: match self.sizes {
                None => base.sizes,
                Some(SizesName::Empirical) => SizeModel::Empirical(32),
                Some(SizesName::Exponential) => SizeModel::Exponential,
                Some(SizesName::Hyperexponential) => SizeModel::Hyperexponential,
            },
            ..base
        }
    }
}
