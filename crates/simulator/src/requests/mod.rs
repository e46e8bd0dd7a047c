//! The request plant: storage requests one by one over links and devices, with the priorities and rate limits that are enforced
//! for them (SLO sections 2.1 and 2.2). It checks what is promised.
//!
//! ```text
//! Source (arrivals, work by stage) --> [limiter] network-in links --> [limiter] device --> [limiter] network-out links --> Report
//! ```
//!
//! **Links** serve one request, or one packet, at a time, and whole. **Devices** serve one second of work a second, one request after
//! another, and after its service a request takes its latency beside the others: alone it takes work and latency, and any
//! number together no more device time than their work. A device is handed requests up to its caps, keeps them in order,
//! and cannot be told to turn to others. **Limiters** hold requests over a limit, or let them be served after all others.
//!
//! *Why a device is such a pipe.* A device with m places that serve at 1/m each would do the same work a second, but work left in
//! other places delays a request even where they are never full, and a bound would need the largest requests of all others. In
//! a pipe the device time a request waits for is just that of those before it, so what calculus says of a queue of
//! capacity 1 holds, and the latency is added once. Two things come on top: what is inside a device goes first whatever its
//! priority, at most [`Device::outstanding`] requests; and the caps must let the device be busy. Where they do not, the
//! report says for how long ([`ServerReport::starved`]).
//!
//! Time is whole nanoseconds. A run is a function of its setup and sources alone: no random numbers, no wall clock.

mod arrival;
mod clock;
mod engine;
mod error;
mod limiter;
mod live;
mod order;
mod plan;
mod replay;
mod report;
mod sent;
mod server;
mod setup;
mod system;
mod tails;
mod tally;
mod watch;

pub use arrival::{Arrival, Source};
pub use error::RequestsError;
pub use order::{Cake, Order};
pub use replay::{Assumption, Held, Replay, ReplayError, Replayed, Seen};
pub use report::{Interval, Measured, Report, Rows, ServerReport, Window};
pub use sent::Sent;
pub use setup::{Batch, Behind, Device, Enforced, Over, Server, Setup, StageLimits};
pub use tails::tails;
pub use tally::Tally;
pub(crate) use tally::rank;
pub use watch::{Of, Watch};

/// Runs a setup on what its workloads send, a source for each in their order.
///
/// # Errors
/// What is wrong in the setup, before anything runs; and the first invalid request, when it comes.
pub fn run(setup: &Setup, sources: Vec<Source<'_>>) -> Result<Report, RequestsError> {
    run_watched(setup, sources, &mut ())
}

/// The same, and `watch` is told what happens.
///
/// # Errors
/// As [`run`].
pub fn run_watched<'a, W: Watch>(
    setup: &'a Setup,
    sources: Vec<Source<'a>>,
    watch: &'a mut W,
) -> Result<Report, RequestsError> {
    engine::Engine::new(setup, sources, watch)?.run()
}
