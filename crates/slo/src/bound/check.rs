//! Validation of a system before analysis.

use std::collections::BTreeSet;

use leeward_fabric::input::format_number;
use leeward_traces::Stage;

use crate::{Promise, System};

/// An invalid system or invalid settings; no bound can be computed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SystemError {
    /// An invalid capacity.
    #[error("queue {queue}: capacity {}: must be finite and above 0", format_number(*.capacity))]
    Capacity {
        /// Name of the queue.
        queue: String,
        /// Capacity of the queue, in work per second.
        capacity: f64,
    },
    /// An invalid latency.
    #[error("queue {queue}: latency {} s: must be finite and not negative", format_number(*.latency))]
    Latency {
        /// Name of the queue.
        queue: String,
        /// Latency of the queue, in seconds.
        latency: f64,
    },
    /// Two workloads have the same name.
    #[error("workload {workload}: two workloads have this name")]
    Twice {
        /// The repeated name.
        workload: String,
    },
    /// The number of routes, priorities or limits differs from the number of demands.
    #[error("workload {workload}: {found} {what} for {demands} demands: must be one for each")]
    Count {
        /// Name of the workload.
        workload: String,
        /// Counted items: `routes`, `priorities` or `limits`.
        what: &'static str,
        /// Number of items.
        found: usize,
        /// Number of demands.
        demands: usize,
    },
    /// An invalid route.
    #[error("workload {workload}, {stage}: its route {fault}")]
    Route {
        /// Name of the workload.
        workload: String,
        /// Stage of the route.
        stage: Stage,
        /// Fault of the route.
        fault: String,
    },
    /// An invalid number.
    #[error("workload {workload}: {what} {}: must be {expected}", format_number(*.value))]
    Number {
        /// Name of the workload.
        workload: String,
        /// Name of the number.
        what: &'static str,
        /// Value given.
        value: f64,
        /// Values allowed.
        expected: &'static str,
    },
    /// An invalid setting.
    #[error("settings of bounds: {setting} {}: must be {expected}", format_number(*.value))]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Value given.
        value: f64,
        /// Values allowed.
        expected: &'static str,
    },
}

pub(super) fn check(system: &System) -> Result<(), SystemError> {
    for queue in &system.queues {
        if !(queue.capacity.is_finite() && queue.capacity > 0.0) {
            let (queue, capacity) = (queue.name.clone(), queue.capacity);
            return Err(SystemError::Capacity { queue, capacity });
        }
        if !(queue.latency.is_finite() && queue.latency >= 0.0) {
            let (queue, latency) = (queue.name.clone(), queue.latency);
            return Err(SystemError::Latency { queue, latency });
        }
    }
    let mut names = BTreeSet::new();
    for promise in &system.promises {
        if !names.insert(promise.workload.name.as_str()) {
            return Err(SystemError::Twice { workload: promise.workload.name.clone() });
        }
        counts(promise)?;
        numbers(promise)?;
        routes(promise, system.queues.len())?;
    }
    Ok(())
}

fn counts(promise: &Promise) -> Result<(), SystemError> {
    let demands = promise.workload.demands.len();
    let counts = [
        ("routes", promise.route.len()),
        ("priorities", promise.priorities.len()),
        ("limits", promise.limits.len()),
    ];
    match counts.into_iter().find(|&(_, found)| found != demands) {
        Some((what, found)) => {
            let workload = promise.workload.name.clone();
            Err(SystemError::Count { workload, what, found, demands })
        }
        None => Ok(()),
    }
}

fn numbers(promise: &Promise) -> Result<(), SystemError> {
    let workload = &promise.workload;
    let fault = |what, value, expected| {
        Err(SystemError::Number { workload: workload.name.clone(), what, value, expected })
    };
    if let Some(slo) = workload.slo {
        if !(slo.percentile > 0.0 && slo.percentile < 100.0) {
            return fault("percentile", slo.percentile, "above 0 and below 100");
        }
        if !(slo.latency.is_finite() && slo.latency > 0.0) {
            return fault("SLO", slo.latency, "finite and above 0, in seconds");
        }
    }
    for demand in &workload.demands {
        for (what, value) in [("largest request", demand.largest), ("unloaded tail", demand.unloaded)] {
            if !(value.is_finite() && value >= 0.0) {
                return fault(what, value, "finite and not negative");
            }
        }
    }
    Ok(())
}

fn routes(promise: &Promise, queues: usize) -> Result<(), SystemError> {
    for (route, demand) in promise.route.iter().zip(&promise.workload.demands) {
        let fault = if route.is_empty() {
            Some("has no queue".to_owned())
        } else if let Some(queue) = route.iter().find(|&&queue| queue >= queues) {
            Some(format!("has queue {queue}: there are {queues} queues, numbered from 0"))
        } else {
            let twice = (1..route.len()).find(|&at| route[..at].contains(&route[at]));
            twice.map(|at| format!("passes queue {} twice", route[at]))
        };
        if let Some(fault) = fault {
            let (workload, stage) = (promise.workload.name.clone(), demand.stage);
            return Err(SystemError::Route { workload, stage, fault });
        }
    }
    Ok(())
}
