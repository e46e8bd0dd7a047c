//! Rounds of packing, until the latency bound of each promise is within its SLO. The module groups SLOs into the
//! priorities of a cluster. After each round it shortens the SLOs that bounds exceed, by the excess.
//!
//! Bounds can exceed SLOs because packing chooses limits by SLO equation 5.1. Bounds also count the requests in service
//! at a device with a latency tail.

use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_fabric::{Discipline, Fabric};

use super::super::{Promise, Slo, System};

/// Share of each SLO that is reserved for rounding limits to whole bytes and nanoseconds.
const ROUNDING: f64 = 1e-4;
/// Maximum number of rounds. Packing ends earlier if another round cannot help ([`Classes::learn`]).
pub const ROUNDS: usize = 6;

/// SLOs by priority, and the reserve that shortens the SLOs of each priority.
#[derive(Clone, Debug)]
pub struct Classes {
    /// SLOs in seconds, ascending.
    slos: Vec<Vec<f64>>,
    reserves: Vec<f64>,
}

impl Classes {
    /// Assigns a priority to each SLO. If there are more SLOs than priorities ([`levels`]), several SLOs share a
    /// priority.
    ///
    /// # Errors
    /// [`InputError`] for a queue without priorities, or a cluster with a single class.
    pub fn new(slos: impl IntoIterator<Item = f64>, fabric: &Fabric) -> Result<Classes, InputError> {
        let most = usize::from(levels(fabric)?);
        let mut slos: Vec<f64> = slos.into_iter().collect();
        slos.sort_by(f64::total_cmp);
        slos.dedup();
        let slos: Vec<Vec<f64>> =
            slos.chunks(slos.len().div_ceil(most).max(1)).map(<[f64]>::to_vec).collect();
        Ok(Classes { reserves: vec![0.0; slos.len()], slos })
    }

    /// Longest SLO of each priority, minus its reserve. A packing takes these SLOs as its setting `levels`.
    pub fn longest(&self) -> Vec<f64> {
        let longest = |class: &Vec<f64>| class.last().copied().unwrap_or(f64::INFINITY);
        self.slos
            .iter()
            .zip(&self.reserves)
            .map(|(class, reserve)| shortened(longest(class), *reserve))
            .collect()
    }

    /// An SLO minus the reserve of its priority.
    pub fn shortened(&self, latency: f64) -> f64 {
        shortened(latency, self.class(latency).map_or(0.0, |class| self.reserves[class]))
    }

    /// Adds the excess of bounds over SLOs, both in seconds, to the reserves, with a margin of 5 %. Returns true if
    /// another round may help.
    pub fn learn(&mut self, bounds: impl IntoIterator<Item = (Slo, f64)>) -> bool {
        let before = self.reserves.clone();
        for (slo, seconds) in bounds {
            if let Some(class) = self.class(slo.latency).filter(|_| seconds > slo.latency) {
                let more = before[class] + 1.05 * (seconds - slo.latency);
                self.reserves[class] = f64::max(self.reserves[class], more);
            }
        }
        // Priorities must stay in order, and each SLO must stay above 0.
        let mut last = 0.0;
        for (class, reserve) in self.slos.iter().zip(&self.reserves) {
            if shortened(class[0], *reserve) <= last {
                self.reserves = before;
                return false;
            }
            last = shortened(class[class.len() - 1], *reserve);
        }
        self.reserves != before
    }

    fn class(&self, latency: f64) -> Option<usize> {
        self.slos.iter().position(|class| class.contains(&latency))
    }
}

fn shortened(latency: f64, reserve: f64) -> f64 {
    (latency - reserve) * (1.0 - ROUNDING)
}

/// Number of priorities for promises in a cluster: all but the last, which is for best effort.
///
/// # Errors
/// [`InputError`] for a queue without priorities, or a cluster with a single class.
pub fn levels(fabric: &Fabric) -> Result<u8, InputError> {
    let mut fewest = u8::MAX;
    for resource in fabric.all_resources() {
        match fabric.discipline(resource) {
            Discipline::StrictPriority { classes } => fewest = fewest.min(classes.saturating_sub(1)),
            Discipline::Fifo => {
                let name = fabric.resource_name(resource);
                let message = format!(
                    "the queue of `{name}` is first in, first out: nothing can be promised on it; give the cluster `priorities`, the number of its classes"
                );
                return Err(InputError::new(fabric.name(), message));
            }
        }
    }
    if fewest == 0 {
        let message = "the only class is for best effort: expected at least 2 `priorities`";
        return Err(InputError::new(fabric.name(), message));
    }
    Ok(fewest)
}

/// Promises of placed workloads, with the workloads' own SLOs. Omits unused queues, and stages that cross no queue.
pub fn with_slos(system: System, slo: impl Fn(&str) -> Option<Slo>) -> System {
    let promises = system.promises.into_iter().map(|mut promise| {
        let workload = Arc::make_mut(&mut promise.workload);
        workload.slo = slo(&workload.name);
        promise.crossing()
    });
    let mut promises: Vec<Promise> = promises.collect();
    // Unused queues may have no capacity.
    let mut new_numbers = vec![usize::MAX; system.queues.len()];
    let mut queues = Vec::new();
    for queue in promises.iter_mut().flat_map(|promise| promise.route.iter_mut().flatten()) {
        if new_numbers[*queue] == usize::MAX {
            new_numbers[*queue] = queues.len();
            queues.push(system.queues[*queue].clone());
        }
        *queue = new_numbers[*queue];
    }
    System { queues, promises }
}
