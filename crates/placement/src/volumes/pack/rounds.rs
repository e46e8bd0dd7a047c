//! Packing for what is promised: SLOs in as many priorities as a cluster tells apart, shorter by what bounds came out above
//! them. Packing chooses limits by SLO equation 5.1; bounds count what a device with a tail may be busy with, too.

use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_fabric::{Discipline, Fabric};

use super::super::{Promise, Slo, System};

/// Share of each SLO that packing leaves for limits that are written in whole bytes and nanoseconds.
const ROUNDING: f64 = 1e-4;
/// How often workloads are packed anew with less of their SLOs, where bounds are above them.
pub const ROUNDS: usize = 6;

/// The SLOs there are by priority, and what is taken off those of each.
#[derive(Clone, Debug)]
pub struct Classes {
    /// In seconds, rising.
    slos: Vec<Vec<f64>>,
    reserves: Vec<f64>,
}

impl Classes {
    /// A priority for each SLO, or as many SLOs in each as it takes for the classes of the cluster, the last of which is best
    /// effort's.
    ///
    /// # Errors
    /// A cluster that keeps no promises.
    pub fn new(slos: impl IntoIterator<Item = f64>, fabric: &Fabric) -> Result<Classes, InputError> {
        let most = usize::from(levels(fabric)?);
        let mut slos: Vec<f64> = slos.into_iter().collect();
        slos.sort_by(f64::total_cmp);
        slos.dedup();
        let slos: Vec<Vec<f64>> =
            slos.chunks(slos.len().div_ceil(most).max(1)).map(<[f64]>::to_vec).collect();
        Ok(Classes { reserves: vec![0.0; slos.len()], slos })
    }

    /// The longest SLO of each, shortened: the `levels` of a packing.
    pub fn longest(&self) -> Vec<f64> {
        let longest = |class: &Vec<f64>| class.last().copied().unwrap_or(f64::INFINITY);
        self.slos
            .iter()
            .zip(&self.reserves)
            .map(|(class, reserve)| shortened(longest(class), *reserve))
            .collect()
    }

    /// What is left of an SLO.
    pub fn shortened(&self, latency: f64) -> f64 {
        shortened(latency, self.class(latency).map_or(0.0, |class| self.reserves[class]))
    }

    /// Takes what bounds are above SLOs, both in seconds, off the SLOs that are packed for. Whether that may help.
    pub fn learn(&mut self, bounds: impl IntoIterator<Item = (Slo, f64)>) -> bool {
        let before = self.reserves.clone();
        for (slo, seconds) in bounds {
            if let Some(class) = self.class(slo.latency).filter(|_| seconds > slo.latency) {
                let more = before[class] + 1.05 * (seconds - slo.latency);
                self.reserves[class] = f64::max(self.reserves[class], more);
            }
        }
        // Priorities stay as they are, and something of each SLO is left.
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

/// How many priorities a cluster has for promises: all but the last, which is best effort's.
///
/// # Errors
/// It has none.
pub fn levels(fabric: &Fabric) -> Result<u8, InputError> {
    let mut most = u8::MAX;
    for resource in fabric.all_resources() {
        match fabric.discipline(resource) {
            Discipline::StrictPriority { classes } => most = most.min(classes.saturating_sub(1)),
            Discipline::Fifo => {
                let name = fabric.resource_name(resource);
                let message = format!(
                    "`{name}` serves first come, first served: nothing can be promised on it; give the cluster `priorities`, the number of its classes"
                );
                return Err(InputError::new(fabric.name(), message));
            }
        }
    }
    if most == 0 {
        let message = "one class, which is best effort's: expected at least 2 `priorities`";
        return Err(InputError::new(fabric.name(), message));
    }
    Ok(most)
}

/// What is placed, as it is promised: the workloads with their own SLOs, without stages that cross nothing and queues that
/// nobody crosses.
pub fn promised(system: System, slo: impl Fn(&str) -> Option<Slo>) -> System {
    let promises = system.promises.into_iter().map(|mut promise| {
        let workload = Arc::make_mut(&mut promise.workload);
        workload.slo = slo(&workload.name);
        promise.crossing()
    });
    let mut promises: Vec<Promise> = promises.collect();
    // Queues that nobody crosses may carry nothing.
    let mut numbers = vec![usize::MAX; system.queues.len()];
    let mut queues = Vec::new();
    for queue in promises.iter_mut().flat_map(|promise| promise.route.iter_mut().flatten()) {
        if numbers[*queue] == usize::MAX {
            numbers[*queue] = queues.len();
            queues.push(system.queues[*queue].clone());
        }
        *queue = numbers[*queue];
    }
    System { queues, promises }
}
