//! Cake's feedback (SLO section 3.3.1, after Wang and others, SoCC 2012). At the end of each interval, the weight of
//! each workload adapts to the ratio of its SLO to its tail latency in that interval.
//!
//! The thesis gives no values for the compliance bounds. The original Cake controls two levels of a real store. This
//! module has only the shares of device time and the compliance bounds.

use leeward_fabric::Nanos;

use crate::latency_histogram::LatencyHistogram;

/// Settings of the weight controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cake {
    /// Control interval; at least 1 ms.
    pub interval: Nanos,
    /// Lower compliance bound: below this ratio of SLO to measured tail, the weight grows.
    pub lower: f64,
    /// Upper compliance bound: above this ratio, the weight shrinks; at least `lower`.
    pub upper: f64,
    /// Relative step of a weight; above 0 and below 1.
    pub step: f64,
    /// Smallest weight, as a share of the mean weight; above 0, at most 1. With this weight, a workload still completes
    /// requests. Their latencies let its weight grow again.
    pub floor: f64,
}

impl Default for Cake {
    /// Ten seconds, bounds 1.0 and 1.2, a step of a tenth, and a floor of a hundredth of the mean.
    fn default() -> Cake {
        Cake { interval: Nanos(10 * Nanos::SECOND.0), lower: 1.0, upper: 1.2, step: 0.1, floor: 0.01 }
    }
}

/// Weight controller of a device.
#[derive(Clone, Debug)]
pub(crate) struct WeightController {
    pub(crate) settings: Cake,
    /// Weights by workload.
    weights: Vec<f64>,
    /// Latencies in the current interval, by workload.
    measured: Vec<LatencyHistogram>,
    /// Percentile and its latency objective in nanoseconds, by workload; `None` for best effort.
    objectives: Vec<Option<(f64, f64)>>,
    /// Slot of the controller in the clock.
    pub(crate) slot: u32,
    /// Index of the server whose weights the controller adjusts.
    pub(crate) queue: u32,
}

impl WeightController {
    pub(crate) fn new(
        settings: Cake,
        weights: Vec<f64>,
        objectives: Vec<Option<(f64, f64)>>,
        queue: u32,
        slot: u32,
    ) -> WeightController {
        let measured = vec![LatencyHistogram::default(); objectives.len()];
        WeightController { settings, weights, measured, objectives, slot, queue }
    }

    /// Counts the latency of a finished request.
    pub(crate) fn measure(&mut self, workload: usize, latency: u64) {
        if self.objectives[workload].is_some() {
            self.measured[workload].add(latency);
        }
    }

    /// Adjusts the weights at the end of an interval, and returns them by workload.
    pub(crate) fn adjust(&mut self) -> &[f64] {
        let Cake { lower, upper, step, floor, .. } = self.settings;
        for ((weight, measured), objective) in
            self.weights.iter_mut().zip(&mut self.measured).zip(&self.objectives)
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
        // Only ratios of weights matter. Without normalization, all weights could shrink towards 0.
        let mean = self.weights.iter().sum::<f64>() / self.weights.len() as f64;
        for weight in &mut self.weights {
            *weight = (*weight / mean).max(floor);
        }
        &self.weights
    }
}
