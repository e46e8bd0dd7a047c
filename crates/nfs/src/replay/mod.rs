//! Replay of a trace as real NFS calls, from the client's side: each request is sent at its time in the trace, whether or
//! not the requests before it are answered (an open loop, SLO section 3.3.2).
//!
//! ```text
//! trace --plan--> times, sizes and places in one file --Engine--> calls at their times --> server, or a proxy before it
//!                                                          '----- replies: latency from the time in the trace
//! ```
//!
//! A latency counts from the time in the trace to the end of the reply. So it includes the time in which a call waits at
//! the client, because the connection takes no more bytes. The time by which the replay itself is late is measured beside
//! it: from the time in the trace to the moment at which the call is handed to its connection. A machine that is too slow
//! for its own replay shows there, and cannot pass as a slow server.
//!
//! A closed loop ignores the times, and keeps a number of requests open. It measures throughput, and the latency of single
//! requests.

mod connection;
mod engine;
mod outcome;
mod plan;
mod settings;
mod volume;

use std::fs::File;
use std::io;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_traces::Request;

use self::engine::Engine;
use self::outcome::Outcome;
use self::plan::Planned;
use self::volume::Volume;
use crate::clock::Clock;
use crate::server::machine_name;

pub use outcome::Summary;
pub use settings::{ReplayArguments, ReplaySettings};

/// Time before the first request, if no start is given.
const LEAD: Nanos = Nanos(100_000_000);

/// Reason why a replay has no summary.
#[derive(Debug)]
pub enum ReplayStop<E> {
    /// Invalid settings, an invalid trace, or a server that does not have the export.
    Input(InputError),
    /// The server closed the connection, or is too slow for the trace by far.
    Failed(io::Error),
    /// The callback stopped the replay.
    Stopped(E),
}

impl<E> From<InputError> for ReplayStop<E> {
    fn from(error: InputError) -> Self {
        ReplayStop::Input(error)
    }
}

impl<E> From<io::Error> for ReplayStop<E> {
    fn from(error: io::Error) -> Self {
        ReplayStop::Failed(error)
    }
}

/// Replays the requests of a trace, in order of time, and waits for the replies. `trace` is the name of the trace for
/// errors. `tick` receives the completed share several times a second, and may stop the replay.
///
/// # Errors
/// Returns the reason of an early end; see [`ReplayStop`]. Failed and unanswered requests are no error, but counted.
pub fn replay<E>(
    settings: &ReplaySettings,
    trace: &str,
    requests: &[Request],
    mut tick: impl FnMut(f64) -> Result<(), E>,
) -> Result<Summary, ReplayStop<E>> {
    let plan = plan::plan(settings, trace, requests)?;
    // A file that cannot be written is an error before the requests are sent.
    let invalid = |error: io::Error| InputError::new("--out", error);
    let rows = settings.rows.as_ref().map(File::create).transpose().map_err(invalid)?;
    let clock = Clock::start();
    let machine = machine_name();
    let volume = Volume::open(settings, &machine, || tick(0.0))?;
    let replayed = run(settings, &plan, &volume, &machine, clock, &mut tick);
    let removed = volume.clean_up(settings, &machine);
    // The first error counts. A file that stays is no reason to lose the results.
    let (outcome, start) = replayed?;
    if let Some(file) = rows {
        outcome.write_rows(file).map_err(invalid)?;
    }
    let left = removed.err().map(|error| error.message);
    Ok(Summary { left, ..outcome.summary(settings, start) })
}

/// Runs a replay on its file. Returns its outcome, and the time since 1970 at which it began.
fn run<E>(
    settings: &ReplaySettings,
    plan: &[Planned],
    volume: &Volume,
    machine: &str,
    clock: Clock,
    tick: impl FnMut(f64) -> Result<(), E>,
) -> Result<(Outcome, Nanos), ReplayStop<E>> {
    let start = match settings.start {
        None => clock.now().plus(LEAD),
        Some(wall) => clock.of_wall(wall).filter(|&start| start >= clock.now()).ok_or_else(|| {
            let ready = clock.wall(clock.now()).as_secs_f64();
            let message =
                format!("{} is over: the file was open at {ready:.3}; give a later time", wall.as_secs_f64());
            InputError::new("--at", message)
        })?,
    };
    let outcome = Engine::new(settings, plan, volume, machine, clock, start)?.run(tick)?;
    Ok((outcome, clock.wall(start)))
}

/// Removes the file of a replay from the export. A file that has gone already is no error.
///
/// # Errors
/// Fails with the export and the reason of the server.
pub fn remove_file(settings: &ReplaySettings) -> Result<(), InputError> {
    Volume::remove(settings, &machine_name())
}
