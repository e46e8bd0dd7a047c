//! Observation of a run.

use leeward_fabric::Nanos;
use leeward_traces::{Kind, Stage};

/// Observer of a run's events, in order of time. `()` observes nothing and costs nothing.
pub trait Observer {
    /// The limits of a stage let a request of `workload` with this work pass. The method is not called for demoted
    /// requests.
    fn passed(&mut self, _at: Nanos, _workload: usize, _stage: Stage, _work: f64) {}
    /// A request arrives at a server; it may wait behind a limiter there.
    fn arrived(&mut self, _at: Nanos, _server: usize, _event: RequestEvent) {}
    /// A server takes a request, or a link starts to send one of its packets.
    fn started(&mut self, _at: Nanos, _server: usize, _event: RequestEvent) {}
    /// A server has served a request or packet. A device's latency comes afterwards.
    fn served(&mut self, _at: Nanos, _server: usize, _event: RequestEvent) {}
}

impl Observer for () {}

/// A request, or one of its packets, at a server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestEvent {
    /// Index of the workload.
    pub workload: usize,
    /// Number of the request, from 0 in order of arrival over all workloads.
    pub number: u64,
    /// Read or write.
    pub kind: Kind,
    /// Rank of its priority at this server, 0 first; `u32::MAX` if it is demoted. 0 in orders without
    /// priorities.
    pub rank: u32,
    /// Work at this server; for started or served packets, the packet's own work.
    pub work: f64,
}
