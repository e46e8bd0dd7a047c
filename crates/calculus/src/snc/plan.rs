//! A network in the form that the analyses use.

use super::expressions::ModelId;

/// A stage of a workload in the analyses.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) group: usize,
    pub(super) priority: u32,
    /// Indices of its queues.
    pub(super) queues: Vec<usize>,
    pub(super) model: ModelId,
    /// Work that is served whole.
    pub(super) packet: f64,
}

/// Flows and queues of a network, in the form that the analyses use.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) flows: Vec<Flow>,
    /// Rate of each queue, in work per second.
    pub(super) rates: Vec<f64>,
    /// Work already in service at each queue.
    pub(super) in_service: Vec<f64>,
    /// Latency of each queue, in seconds.
    pub(super) latencies: Vec<f64>,
    /// True if requests arrive, and busy periods begin, within steps.
    pub(super) within_steps: bool,
    /// Flows of each queue.
    pub(super) passing: Vec<Vec<usize>>,
}
