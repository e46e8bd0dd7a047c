//! Stochastic network calculus: bounds on tail latency in a network of queues, after Zhu's thesis, sections 4.2.1,
//! 4.2.2 and appendix A (SNC-Meister).
//!
//! ```text
//! Expressions   arrivals and servers, and what the operators make of them: rho and sigma as functions of theta
//!      |        (leftover, output, aggregate, convolution)
//! latency       the least bound at a percentile, over theta and every other free number of the expression
//!      |
//! Network       queues and workloads with priorities; an Analysis says which expression stands for a workload
//! ```
//!
//! Operands that may depend on one another are bounded by Hoelder's inequality; whether they may is known from the
//! groups of workloads in each expression. A workload whose load leaves no service is [`Latency::Unstable`], which is
//! a value and never a number.
//!
//! Where this departs from the thesis: a convolution of two services of nearly the same rate gives up as much rate
//! as pays for itself, instead of a hundredth where they are exactly the same (theorem 5 asks that they differ);
//! two servers in sequence are exactly one; Hoelder exponents are found by descent along the gradient instead of at
//! random; what is served whole may be said ([`Stage::packet`], [`Queue::busy`]), where the thesis has a fluid; and Lyapunov's inequality may tighten what has a sigma of its own ([`Expressions::lyapunov`]).

mod analysis;
mod error;
mod evaluate;
mod expressions;
mod latency;
mod memo;
mod minimise;
mod network;
mod operators;

pub use analysis::Analysis;
pub use error::{NetworkError, SncError};
pub use expressions::{ArrivalId, Expressions, ModelId, ServiceId};
pub use latency::{Latency, Tail, Unstable, split};
pub use network::{Network, Queue, Stage, Workload, WorkloadBound, priorities_by_objective};
