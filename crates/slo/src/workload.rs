//! Workloads: demand at each stage, and the SLO.

use leeward_calculus::ArrivalCurve;
use leeward_calculus::mmpp::Mmpp;
use leeward_traces::Stage;

/// A latency that a percentile of requests must stay below (SLO section 2.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slo {
    /// Percentile, above 0 and below 100: with 99.9, one request of a thousand may be later.
    pub percentile: f64,
    /// Latency in seconds, above 0.
    pub latency: f64,
}

/// Demand of a workload at one stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    /// The stage.
    pub stage: Stage,
    /// Arrival curve: the largest amount of work within any time interval. Work is bytes on a network, seconds of
    /// service at a device. The buckets are the vertices of the workload's r-b curve.
    pub arrivals: ArrivalCurve,
    /// Work of the largest request; at most the burst of `arrivals`.
    pub largest: f64,
    /// Arrivals as a Markov-modulated process, needed for stochastic bounds.
    pub model: Option<Mmpp>,
    /// Unloaded latency at the SLO's percentile, in seconds: a device's profiled tail. Each bound adds it to
    /// the queueing delay. A profile's times include the request's work, which the queues count too, so the
    /// sum is conservative.
    pub unloaded: f64,
    /// Requests that the device has at once, of all workloads, as its profile states; `None` on a network, and for a
    /// device that states none.
    pub outstanding: Option<u32>,
}

/// A stream of requests to one volume.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Name, unique within a system.
    pub name: String,
    /// The promised SLO; `None` for best effort.
    pub slo: Option<Slo>,
    /// Demand at each stage, in the order in which requests pass the stages.
    pub demands: Vec<Demand>,
    /// Names of workloads whose bursts may coincide with the bursts of this one. Dependencies are symmetric and
    /// transitive; names outside the system are ignored.
    pub dependencies: Vec<String>,
}
