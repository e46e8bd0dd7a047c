//! What stands in a workload file, field by field.

use std::collections::BTreeMap;

use leeward_calculus::mmpp::{FitSettings, SizeModel};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::{Spanned, one_line};
use leeward_fabric::{Bandwidth, Bytes, Nanos};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scalars::{CurvesFile, ModelsFile, PriorityFile, Share};
use crate::volumes::bound::BoundSettings;

/// Weight that is added to requests unless the file says another, so that what a trace did not show is covered: with less, a few
/// workloads miss their SLO in the held-out halves of SLO section 5.4.2.
const MARGIN: Share = Share(0.1);
/// Buckets of a curve at most, unless the file says otherwise.
const BUCKETS: usize = 32;

/// Workloads with SLOs, and where they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Workloads")]
pub struct WorkloadsFile {
    /// What people call it.
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
    /// Bytes that requests are on the network.
    #[serde(default)]
    pub network: NetworkFile,
    /// The stages that workloads have, unless they say otherwise. Default all three.
    pub stages: Option<Vec<StageName>>,
    /// Weight added to requests in curves; models stay as they are. Default 10%.
    #[serde(default = "margin")]
    pub margin: Share,
    /// Buckets of each curve at most; fewer never lower it. Default 32.
    #[serde(default = "buckets")]
    pub buckets: usize,
    /// Which links of a path are queues. Default everywhere; where these workloads come to others, as for those.
    pub congestion: Option<Congestion>,
    /// Priorities that networks tell apart, where they are by SLO. Default 7; where these workloads come to others, as for those.
    pub levels: Option<u32>,
    /// How bounds are made. Where these workloads come to others, as for those.
    pub bounds: Option<BoundSettings>,
    /// How models are fitted to traces.
    #[serde(default)]
    pub fit: FitFile,
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
    /// Its name.
    pub name: String,
    /// The host that makes the requests.
    pub client: String,
    /// The host that has the volume, or its device: `r1h3` or `r1h3:ssd0`. Left out where it is to be chosen.
    pub server: Option<String>,
    /// What it is promised; best effort if not given.
    pub slo: Option<SloFile>,
    /// A trace of its requests; or else `curves`, `model` or both.
    pub trace: Option<String>,
    /// Only requests to this volume of the trace, in dialects that name volumes.
    pub volume: Option<String>,
    /// Its r-b curves: for each stage token buckets, all of which hold at once; or the name of a file with the JSON of `leeward slo
    /// curve`.
    pub curves: Option<CurvesFile>,
    /// Its models: the JSON of `leeward slo model`, which has curves too, or the name of a file with it.
    pub model: Option<ModelsFile>,
    /// How long requests take at the device without any queueing, where it is not known from a trace.
    pub unloaded: Option<Nanos>,
    /// The stages that it has. Default those of the file.
    pub stages: Option<Vec<StageName>>,
    /// Workloads whose bursts may come together with its own.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Its priority, 0 first: one, or one for each stage. By SLO if none has one.
    pub priority: Option<PriorityFile>,
    /// Token buckets that are enforced, by stage; where there are none, its own curve.
    pub limits: Option<BucketsFile>,
}

/// A latency that a share of requests must stay below.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SloFile {
    /// In percent, above 0 and below 100.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 100))]
    pub percentile: f64,
    /// From the request to its answer.
    pub latency: Nanos,
}

/// Bytes of a request in each direction: `overhead`, and a factor of its size.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkFile {
    /// Bytes a request in each direction. Default 200.
    pub overhead: Option<f64>,
    /// Bytes for each of its size, with the payload. Default 1.1.
    pub payload: Option<f64>,
    /// Bytes for each of its size, the other way. Default 0.025.
    pub other: Option<f64>,
}

/// A stage of a request's way.
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

/// Which links on the path between two hosts are queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Those of hosts: the thesis takes congestion to be at the ends of a path (SLO section 4.2.2). Links of racks and pods are
    /// taken to delay nothing.
    Hosts,
    /// All of them.
    #[default]
    Everywhere,
}

impl Congestion {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Hosts => "hosts",
            Congestion::Everywhere => "everywhere",
        }
    }
}

/// Something for each stage that has it.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    bound(deserialize = "N: Deserialize<'de>, S: Deserialize<'de>")
)]
pub struct ByStage<N, S = N> {
    /// From the client to the server.
    pub network_in: Option<N>,
    /// At the device.
    pub storage: Option<S>,
    /// From the server to the client.
    pub network_out: Option<N>,
}

/// Token buckets by stage.
pub type BucketsFile = ByStage<Vec<LinkBucket>, Vec<DeviceBucket>>;

/// A token bucket of bytes.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkBucket {
    /// What it lets pass in the long run.
    pub rate: Bandwidth,
    /// What it lets pass at once.
    pub burst: Bytes,
}

/// A token bucket of seconds of service.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBucket {
    /// The share of the device that it lets pass in the long run.
    pub rate: Share,
    /// What it lets pass at once, as the time that it takes.
    pub burst: Nanos,
}

impl BucketsFile {
    /// What is written, as (stage, curve in bytes or seconds); None for a list without a bucket.
    pub(super) fn curves(&self) -> Vec<(Stage, Option<ArrivalCurve>)> {
        // Units are finite and not negative.
        let link =
            |bucket: &LinkBucket| TokenBucket::new(bucket.rate.bytes_per_second(), bucket.burst.0 as f64);
        let device = |bucket: &DeviceBucket| TokenBucket::new(bucket.rate.0, bucket.burst.as_secs_f64());
        let curve = |buckets: Vec<TokenBucket>| ArrivalCurve::new(&buckets);
        let links =
            |buckets: &Vec<LinkBucket>| curve(buckets.iter().filter_map(|one| link(one).ok()).collect());
        let devices =
            |buckets: &Vec<DeviceBucket>| curve(buckets.iter().filter_map(|one| device(one).ok()).collect());
        let found = [
            (Stage::NetworkIn, self.network_in.as_ref().map(links)),
            (Stage::Storage, self.storage.as_ref().map(devices)),
            (Stage::NetworkOut, self.network_out.as_ref().map(links)),
        ];
        found.into_iter().filter_map(|(stage, curve)| Some((stage, curve?))).collect()
    }
}

impl ByStage<u32> {
    /// What is written, by stage.
    pub(super) fn at(&self, stage: Stage) -> Option<u32> {
        match stage {
            Stage::NetworkIn => self.network_in,
            Stage::Storage => self.storage,
            Stage::NetworkOut => self.network_out,
        }
    }
}

/// How models are fitted; what is left out is as `leeward slo model` has it.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FitFile {
    /// Requests are counted over this. Default 100ms.
    pub interval: Option<Nanos>,
    /// Step of the model. Default 10us.
    pub step: Option<Nanos>,
    /// Requests that come within this are one of their summed work. Default 1ms.
    pub batch: Option<Nanos>,
    /// States at most, 1 to 16. Default 10.
    pub states: Option<usize>,
    /// Standard deviations of a state, to either side. Default 2.
    pub deviations: Option<f64>,
    /// What is fitted to sizes. Default empirical.
    pub sizes: Option<SizesName>,
    /// Fit as the thesis' released code does; other settings still count. Default false.
    pub published: bool,
}

/// What is fitted to the sizes of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizesName {
    /// Those seen.
    Empirical,
    /// An exponential of the same mean.
    Exponential,
    /// A hyperexponential of the same mean and variance.
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
