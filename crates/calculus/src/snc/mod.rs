//! Stochastic network calculus: bounds on tail latency in a network of queues, after Zhu's thesis, sections 4.2.1,
//! 4.2.2 and appendix A (SNC-Meister).
//!
//! ```text
//! Expressions   arrivals and servers, combined by operators: rho and sigma as functions of theta
//!      |        (leftover, output, aggregate, convolution)
//! latency       the tightest bound at a percentile, over theta and every other free parameter of the expression
//!      |
//! Network       queues and workloads with priorities; an Analysis builds the expression of a workload
//! ```
//!
//! Operands that may depend on one another are bounded by Hoelder's inequality; the groups of workloads in each
//! expression determine possible dependence. A workload that finds no service left is [`Latency::Unstable`], never a
//! large number.
//!
//! Deviations from the thesis:
//!
//! * A convolution of two services needs different rates (theorem 5). If the rates are nearly the same, the convolution
//!   here gives up the rate that gives the lowest bound. The thesis gives up a hundredth if the rates are exactly the
//!   same.
//! * Two servers in sequence are treated as one server, which is exact.
//! * Hoelder exponents are found by descent along the gradient instead of at random.
//! * Requests may be served whole ([`Stage::packet`], [`Queue::in_service`]), while the thesis has a fluid.
//! * Lyapunov's inequality may tighten operators that add a term to sigma ([`Expressions::set_lyapunov`]).

mod analysis;
mod error;
mod evaluate;
mod expressions;
mod latency;
mod memo;
mod minimise;
mod network;
mod operators;
mod plan;
mod tail;
mod tape;

pub use analysis::Analysis;
pub use error::{NetworkError, SncError};
pub use expressions::{ArrivalId, Expressions, ModelId, ServiceId};
pub use network::{Network, Queue, Stage, Workload, WorkloadBound};
pub use tail::{Latency, Tail, Unstable};
