//! Packs draws onto servers (SLO section 5.4).

use leeward_slo::System;
use leeward_slo::pack::{PackSettings, Packing, RejectReason, Request};
use leeward_traces::Stage;

use super::traces::{Part, Traces};
use super::{Draw, ExperimentError, Shape};

/// Step of a packing: a draw by index, and true for its arrival or false for its departure.
pub type Step = (usize, bool);

/// Result of a packing.
#[derive(Clone, PartialEq, Debug)]
pub struct PackingResult {
    /// Number of servers with a workload at the end.
    pub servers: usize,
    /// Largest number of servers with a workload.
    pub most: usize,
    /// Rejected draws, by index and in order, with the reason.
    pub refused: Vec<(usize, String)>,
    /// Placed draws, by index and in order; one per promise.
    pub placed: Vec<usize>,
    /// System at the end.
    pub system: System,
}

/// Packs draws by the curves of a part of their traces. Without `steps` each draw arrives, in order. `settings` name
/// the limit method, and `limit_settings` are its settings.
///
/// # Errors
/// Returns an error for invalid settings, or an invalid shape, draw or step.
pub fn pack(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    steps: Option<&[Step]>,
    shape: &Shape,
    settings: &PackSettings,
    limit_settings: &str,
) -> Result<PackingResult, ExperimentError> {
    // Curves are pruned once, when traces are read.
    let settings = PackSettings { pruning: 0.0, ..settings.clone() };
    let mut packing = Packing::new(shape.site()?, settings, limit_settings)?;
    let all: Vec<Step> = (0..draws.len()).map(|index| (index, true)).collect();
    let (mut most, mut refused) = (0, Vec::new());
    for &(index, arrives) in steps.unwrap_or(&all) {
        let draw = draws.get(index).ok_or_else(|| {
            ExperimentError::draw(
                format!("draw {index}"),
                format!("there are {} draws, numbered from 0", draws.len()),
            )
        })?;
        if !arrives {
            packing.remove(&name(index));
            continue;
        }
        let workload = traces.workload(name(index), draw, part, &Stage::ALL, false)?;
        if let Err(rejected) = packing.place(&Request { workload, client: None }) {
            refused.push((index, rejected.why.to_string()));
        }
        most = most.max(packing.servers_used());
    }
    let index = |(name, _, _): (&str, usize, usize)| name[1..].parse().expect("the name of a draw");
    let placed = packing.placed().map(index).collect();
    Ok(PackingResult { servers: packing.servers_used(), most, refused, placed, system: packing.system() })
}

/// Returns, for each trace, true if one of its workloads with this SLO fits alone on a server.
///
/// # Errors
/// Returns the errors of [`pack`].
pub fn fits_alone(
    traces: &Traces,
    part: Part,
    slo: f64,
    shape: &Shape,
    settings: &PackSettings,
    limit_settings: &str,
) -> Result<Vec<bool>, ExperimentError> {
    let settings = PackSettings { pruning: 0.0, ..settings.clone() };
    let alone = Shape { clients: 1, servers: 1, ..*shape };
    let packing = Packing::new(alone.site()?, settings, limit_settings)?;
    let fits = |trace: usize| {
        let draw = Draw { trace, start: 0.0, slo };
        let workload = traces.workload(name(trace), &draw, part, &Stage::ALL, false)?;
        match packing.plan(&Request { workload, client: None }).map_err(|refused| refused.why) {
            Ok(_) => Ok(true),
            Err(RejectReason::Invalid(problem)) => {
                Err(ExperimentError::draw(format!("an SLO of {slo} s"), problem))
            }
            Err(_) => Ok(false),
        }
    };
    (0..traces.len()).map(fits).collect()
}

/// Name of a draw's workload.
pub(super) fn name(index: usize) -> String {
    format!("w{index}")
}
