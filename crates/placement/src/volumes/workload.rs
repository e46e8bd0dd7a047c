//! What a workload asks for.

use leeward_calculus::ArrivalCurve;
use leeward_calculus::mmpp::Mmpp;
use leeward_traces::Stage;

/// A latency that a share of requests must stay below (SLO section 2.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slo {
    /// In percent, above 0 and below 100: 99.9 lets one request of a thousand be later.
    pub percentile: f64,
    /// In seconds, above 0.
    pub latency: f64,
}

/// What a workload brings to one stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    /// Which stage.
    pub stage: Stage,
    /// The most work within any length of time: bytes on a network, seconds of service at a device. Its buckets are the
    /// vertices of the workload's r-b curve.
    pub arrivals: ArrivalCurve,
    /// Work of the largest request; not above the burst of `arrivals`.
    pub largest: f64,
    /// The workload as arrivals modulated by a Markov chain, where stochastic bounds are wanted.
    pub model: Option<Mmpp>,
    /// Seconds that a request takes here at the SLO's percentile without any queueing: a device's profiled tail. Each bound adds it to
    /// what queues take. A profile's times have the request's work in them, which is in the queues already: on the safe side.
    pub unloaded: f64,
}

/// A stream of requests to one volume.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Its name, unique in a system.
    pub name: String,
    /// What it is promised; None is best effort.
    pub slo: Option<Slo>,
    /// What it brings to each stage, in the order in which requests pass them.
    pub demands: Vec<Demand>,
    /// Names of workloads whose bursts may come together with its own. Symmetric and transitive; a name that is not in the
    /// system counts for nothing.
    pub dependencies: Vec<String>,
}
