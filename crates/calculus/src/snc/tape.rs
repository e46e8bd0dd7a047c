//! Buffers of an evaluation. An arena reuses them for the next latency.

use crate::mmpp::Bound;

use super::memo::{Accuracy, Last};

/// One evaluation of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) node: u32,
    /// Theta of the evaluation; for a stretched node, it is larger than the requested theta.
    pub(super) theta: f64,
    pub(super) bound: Bound,
    /// For arrivals: the derivative of the bound by theta.
    pub(super) slope: Bound,
    /// Positions of the operands on the tape: both of a pair, or a range of links.
    pub(super) operands: (u32, u32),
}

/// Evaluates latencies of one arena; reuses its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Evaluator {
    pub(super) tape: Vec<Entry>,
    /// Positions of the operands of sums on the tape.
    pub(super) links: Vec<u32>,
    /// Derivatives by rho and sigma, then by theta, of each entry.
    pub(super) adjoints: Vec<(f64, f64)>,
    /// Positions of the arrivals and of the service of the latency.
    pub(super) top: (usize, usize),
    /// Minimum over convolutions of theta times the difference between the rates of the operands.
    pub(super) gap: f64,
    /// Last value of each node without parameters, and the conditions of this value: the accuracy, and the number of
    /// steps of a block.
    pub(super) values: Vec<(Last<Bound>, (Accuracy, f64))>,
}
