//! Replay of workloads with guaranteed SLOs. The replay checks that the requests meet the SLOs.

use leeward_fabric::Nanos;
use leeward_requests::{OverLimit, Setup, Source, run};
use leeward_slo::System;
use leeward_slo::bound::BoundSettings;
use leeward_traces::Stage;

use super::traces::{Part, Traces};
use super::{Draw, ExperimentError};

/// Handling of requests over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforcement {
    /// Requests wait on networks and are demoted at devices, as in the thesis' enforcers.
    #[default]
    Enforced,
    /// Requests are demoted at networks and devices.
    Demoted,
    /// No limits.
    Unlimited,
}

impl Enforcement {
    fn apply(self, setup: &mut Setup) {
        for stage in setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages) {
            match self {
                Enforcement::Enforced => {}
                Enforcement::Demoted => stage.over = OverLimit::Demoted,
                Enforcement::Unlimited => stage.limits.clear(),
            }
        }
    }
}

/// Enforcement settings of a replay.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReplaySettings {
    /// Handling of requests over a limit. Bounds by models do not assume limits.
    pub enforcement: Enforcement,
    /// Largest packet of a link, in bytes; `None` sends requests whole.
    pub packet: Option<f64>,
}

/// Latencies of the requests of a promise, compared with the SLO.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PromiseOutcome {
    /// SLO of the workload, in seconds.
    pub slo: f64,
    /// Latency at the SLO's percentile over the whole replay, in seconds; at most 0.8 % above the exact value.
    pub tail: f64,
    /// Largest latency, in seconds.
    pub largest: f64,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests with a latency above the SLO.
    pub late: u64,
    /// Number of three-minute windows in which requests ended.
    pub windows: usize,
    /// Number of windows with a latency of at most the SLO, at the SLO's percentile.
    pub met: usize,
}

/// Replays the requests of the promises of a system, from a part of each trace. `draw_of` has, for each promise, the
/// index of its draw. Each device serves as many requests at once as the demands at it state, which bounds assume too.
///
/// # Errors
/// Returns an error if draws do not match the promises, or if the system cannot be enforced.
pub fn replay(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    draw_of: &[usize],
    system: &System,
    settings: ReplaySettings,
) -> Result<Vec<PromiseOutcome>, ExperimentError> {
    if draw_of.len() != system.promises.len() {
        let problem =
            format!("{} for {} promises: expected one for each", draw_of.len(), system.promises.len());
        return Err(ExperimentError::draw("draws", problem));
    }
    let mut setup = Setup::of_system(system, BoundSettings::default())?;
    settings.enforcement.apply(&mut setup);
    setup.packet = settings.packet;
    let mut sources = Vec::with_capacity(draw_of.len());
    for (&index, promise) in draw_of.iter().zip(&system.promises) {
        let draw = draws.get(index).ok_or_else(|| {
            ExperimentError::draw(
                format!("draw {index}"),
                format!("there are {} draws, numbered from 0", draws.len()),
            )
        })?;
        let stages: Vec<Stage> = promise.workload.demands.iter().map(|demand| demand.stage).collect();
        sources.push(Source::open(traces.arrivals(draw, part, &stages)?));
    }
    let report = run(&setup, sources)?;
    let outcomes = report.workloads.iter().zip(&setup.workloads).filter_map(|(measured, workload)| {
        let slo = workload.slo?;
        let objective = Nanos::from_secs_f64(slo.latency);
        let met = measured.windows.iter().filter(|window| window.tail <= objective).count();
        let tail = measured.latency.percentile(slo.percentile).unwrap_or(0);
        Some(PromiseOutcome {
            slo: slo.latency,
            tail: Nanos(tail).as_secs_f64(),
            largest: measured.latency.largest().as_secs_f64(),
            requests: measured.latency.count(),
            late: measured.late,
            windows: measured.windows.len(),
            met,
        })
    });
    Ok(outcomes.collect())
}
