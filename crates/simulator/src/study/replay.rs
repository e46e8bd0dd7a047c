//! Replays the requests of what was promised: are SLOs kept?

use leeward_placement::volumes::System;
use leeward_traces::Stage;

use super::traces::{Part, Traces};
use super::{Draw, StudyError};
use crate::requests::{Device, Over, Setup, Source, run};

/// What is done about requests over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overrun {
    /// As the thesis' enforcers do: they are held on networks, and demoted at devices.
    #[default]
    Enforced,
    /// They are demoted everywhere.
    Demoted,
    /// Nothing: there are no limits.
    Unlimited,
}

impl Overrun {
    fn set(self, setup: &mut Setup) {
        for stage in setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages) {
            match self {
                Overrun::Enforced => {}
                Overrun::Demoted => stage.over = Over::Demoted,
                Overrun::Unlimited => stage.limits.clear(),
            }
        }
    }
}

/// What is enforced in a replay.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReplaySettings {
    /// What is done about requests over a limit. Bounds by models take no limits for granted.
    pub overrun: Overrun,
    /// The largest packet of a link, in bytes; None: requests are sent whole.
    pub packet: Option<f64>,
}

/// What a promise came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Kept {
    /// Its SLO, in seconds.
    pub slo: f64,
    /// Latency at the SLO's percentile over all of the replay, in seconds, at most 0.8 % above the exact one.
    pub tail: f64,
    /// The largest latency, in seconds.
    pub largest: f64,
    /// Requests.
    pub requests: u64,
    /// Requests later than the SLO.
    pub late: u64,
    /// Windows of three minutes with requests.
    pub windows: usize,
    /// Of these, those whose latency at the percentile is within the SLO.
    pub met: usize,
}

/// Replays a part of the traces of a system's promises, which are those of the draws `of`, by index and in order. Devices are given at
/// most as many reads at once as their profile says, or one.
///
/// # Errors
/// Draws that are not those of the promises, or a system that cannot be enforced.
pub fn replay(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    of: &[usize],
    system: &System,
    settings: ReplaySettings,
) -> Result<Vec<Kept>, StudyError> {
    if of.len() != system.promises.len() {
        let problem = format!("{} for {} promises: expected one for each", of.len(), system.promises.len());
        return Err(StudyError::draw("draws", problem));
    }
    let outstanding = traces.device().outstanding.reads.unwrap_or(1).clamp(1, u64::from(u32::MAX));
    let mut setup = Setup::of_system(system, Device::ssd(outstanding as u32))?;
    settings.overrun.set(&mut setup);
    setup.packet = settings.packet;
    let mut sources = Vec::with_capacity(of.len());
    for (&index, promise) in of.iter().zip(&system.promises) {
        let draw = draws.get(index).ok_or_else(|| {
            StudyError::draw(format!("draw {index}"), format!("there are {}, numbered from 0", draws.len()))
        })?;
        let stages: Vec<Stage> = promise.workload.demands.iter().map(|demand| demand.stage).collect();
        sources.push(Source::open(traces.arrivals(draw, part, &stages)?));
    }
    let report = run(&setup, sources)?;
    let kept = report.workloads.iter().zip(&setup.workloads).filter_map(|(measured, workload)| {
        let slo = workload.slo?;
        let objective = leeward_fabric::Nanos::from_secs_f64(slo.latency);
        let met = measured.windows.iter().filter(|window| window.tail <= objective).count();
        let tail = measured.latency.percentile(slo.percentile).unwrap_or(0);
        Some(Kept {
            slo: slo.latency,
            tail: leeward_fabric::Nanos(tail).as_secs_f64(),
            largest: measured.latency.largest().as_secs_f64(),
            requests: measured.latency.count(),
            late: measured.late,
            windows: measured.windows.len(),
            met,
        })
    });
    Ok(kept.collect())
}
