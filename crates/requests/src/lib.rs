//! The request simulator simulates storage requests one by one over links and devices, under the enforced priorities
//! and rate limits (SLO sections 2.1 and 2.2). Its replays check latency bounds.
//!
//! ```text
//! Source (arrivals, work by stage) --> [limiter] network-in links --> [limiter] device --> [limiter] network-out links --> Report
//! ```
//!
//! **Servers** hand each request or packet on a latency after its service ([`Server::latency`]), 0 by default. **Links** serve
//! one whole request, or one whole packet, at a time. **Devices** serve one second of work per second,
//! one request after another. After its service, a request also waits for the latency of the device; other requests are
//! served meanwhile. At an idle device, a request takes its work plus the latency. Any number of requests together take
//! no more device time than the sum of their work. A device accepts requests up to its caps, keeps them in order and
//! does not preempt. **Limiters** delay requests over a limit, or demote them behind all others. Limits, order and caps
//! are those of [`leeward_shaping::Server`], which enforcers on real servers use too.
//!
//! *Reason for a device that serves one request after another.* A device with m slots, each with the speed 1/m, would
//! do the same work per second. But work left in other slots delays a request even if the slots are never all full. A
//! bound would need the largest requests of all other workloads. Here, a request waits only for the device time of the
//! requests before it. The calculus of a queue of capacity 1 therefore holds, and the latency is added once.
//!
//! Two effects remain. First, requests inside a device go before all others, regardless of their priority; there are at
//! most [`Device::outstanding`]. Second, the caps can leave the device idle while requests wait; the report has this
//! time ([`ServerReport::starved`]).
//!
//! Time is whole nanoseconds. A run is a function of its setup and sources alone; it uses no random numbers and no wall
//! clock.

mod arrival;
mod clock;
mod enforcer_rules;
mod engine;
mod error;
mod latency_histogram;
mod live;
mod observer;
mod plan;
mod replay;
mod report;
mod scheduling;
mod server;
mod setup;
mod sources;
mod system;
mod tails;

pub use arrival::{Arrival, Source};
pub use enforcer_rules::EnforcerRules;
pub use error::RequestsError;
pub use latency_histogram::{LatencyHistogram, rank};
pub use leeward_shaping::{Batch, Caps, OverLimit, StartCaps};
pub use observer::{Observer, RequestEvent};
pub use replay::{Assumption, BoundCheck, MeasuredLatency, Replay, ReplayError, ReplayResult};
pub use report::{Interval, Report, Rows, ServerReport, Window, WorkloadReport};
pub use scheduling::{Cake, Scheduling};
pub use setup::{Device, Enforced, Server, Setup, StageLimits};
pub use sources::Sources;
pub use tails::tails;

/// Runs a setup on the requests of its workloads, with one source per workload in the same order.
///
/// # Errors
/// Returns an error if the setup is invalid, before anything runs, or at the first invalid request.
pub fn run(setup: &Setup, sources: Vec<Source<'_>>) -> Result<Report, RequestsError> {
    run_observed(setup, sources, &mut ())
}

/// Runs a setup like [`run`] and reports every event to `observer`.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_observed<'a, W: Observer>(
    setup: &'a Setup,
    sources: Vec<Source<'a>>,
    observer: &'a mut W,
) -> Result<Report, RequestsError> {
    engine::Engine::new(setup, sources, observer)?.run()
}
