//! Cake's feedback (SLO section 3.3.1, after Wang and others, SoCC 2012): the weights of shares are moved every so often from the tail that
//! was measured since, against the SLO.
//!
//! The thesis gives no numbers for its bounds. Cake itself controls two levels of a real store; here are its shares of device time
//! and its compliance bounds.

use leeward_fabric::Nanos;

use crate::requests::tally::Tally;

/// How weights are moved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cake {
    /// How often; at least 1 ms.
    pub interval: Nanos,
    /// Below this SLO over measured tail, a workload gets more.
    pub lower: f64,
    /// Above this, it gets less; not below `lower`.
    pub upper: f64,
    /// By this share of its weight; above 0 and below 1.
    pub step: f64,
    /// No weight goes below this share of the mean weight, so that what was taken can be measured and given back; above 0, at most 1.
    pub floor: f64,
}

impl Default for Cake {
    /// Every ten seconds, more below 1.0, less above 1.2, by a tenth, and never below a hundredth of the mean.
    fn default() -> Cake {
        Cake { interval: Nanos(10 * Nanos::SECOND.0), lower: 1.0, upper: 1.2, step: 0.1, floor: 0.01 }
    }
}

/// The controller of a device.
#[derive(Clone, Debug)]
pub(in crate::requests) struct Control {
    pub(in crate::requests) settings: Cake,
    /// Latencies since the last interval's end, by workload.
    measured: Vec<Tally>,
    /// Percentile and nanoseconds by workload; none for best effort.
    objectives: Vec<Option<(f64, f64)>>,
    /// Requests of each workload at any time: those that never come here are left alone.
    pub(in crate::requests) slot: u32,
    pub(in crate::requests) queue: u32,
}

impl Control {
    pub(in crate::requests) fn new(
        settings: Cake,
        objectives: Vec<Option<(f64, f64)>>,
        queue: u32,
        slot: u32,
    ) -> Control {
        let measured = vec![Tally::default(); objectives.len()];
        Control { settings, measured, objectives, slot, queue }
    }

    /// A request is done.
    pub(in crate::requests) fn measure(&mut self, workload: usize, latency: u64) {
        if self.objectives[workload].is_some() {
            self.measured[workload].add(latency);
        }
    }

    /// An interval ends.
    pub(in crate::requests) fn act(&mut self, weights: &mut [f64]) {
        let Cake { lower, upper, step, floor, .. } = self.settings;
        for ((weight, measured), objective) in
            weights.iter_mut().zip(&mut self.measured).zip(&self.objectives)
        {
            let Some((percentile, objective)) = *objective else { continue };
            let Some(tail) = measured.percentile(percentile) else { continue };
            let compliance = objective / (tail.max(1) as f64);
            if compliance < lower {
                *weight *= 1.0 + step;
            } else if compliance > upper {
                *weight *= 1.0 - step;
            }
            measured.clear();
        }
        // Only their ratios count; without this they could all shrink to nothing.
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        for weight in weights {
            *weight = (*weight / mean).max(floor);
        }
    }
}
