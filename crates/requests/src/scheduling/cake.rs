//! Cake's feedback (SLO section 3.3.1, after Wang and others, SoCC 2012). At the end of each interval, the weight of
//! each workload adapts to the ratio of its SLO to its tail latency in that interval.
//!
//! The thesis takes the parameters of Cake's paper, except for a larger upper compliance bound, and gives no values. So
//! reproductions search them. The original Cake controls two levels of a real store. This module has only the shares of
//! device time and the compliance bounds.

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

impl Cake {
    /// Ten seconds, bounds 1.0 and 1.2, a step of a tenth, and a floor of a hundredth of the mean.
    pub const DEFAULT: Cake =
        Cake { interval: Nanos(10 * Nanos::SECOND.0), lower: 1.0, upper: 1.2, step: 0.1, floor: 0.01 };
}

impl Default for Cake {
    fn default() -> Cake {
        Cake::DEFAULT
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILLI: u64 = 1_000_000;
    /// An SLO of 100 ms at the 99th percentile.
    const SLO: Option<(f64, f64)> = Some((99.0, 100e6));

    fn with_upper(upper: f64) -> Cake {
        Cake { upper, ..Cake::DEFAULT }
    }

    /// Controller of workloads with these objectives and with equal weights.
    fn controller(settings: Cake, objectives: &[Option<(f64, f64)>]) -> WeightController {
        WeightController::new(settings, vec![1.0; objectives.len()], objectives.to_vec(), 0, 0)
    }

    /// Weights relative to the last one, after an interval with these latencies of each workload in milliseconds.
    fn weights_after(controller: &mut WeightController, latencies: &[&[u64]]) -> Vec<f64> {
        for (workload, latencies) in latencies.iter().enumerate() {
            latencies.iter().for_each(|latency| controller.measure(workload, latency * MILLI));
        }
        let weights = controller.adjust();
        weights.iter().map(|weight| weight / weights[weights.len() - 1]).collect()
    }

    fn assert_close(weights: &[f64], expected: &[f64]) {
        assert_eq!(weights.len(), expected.len());
        let close = weights.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-12);
        assert!(close, "{weights:?}, expected {expected:?}");
    }

    #[test]
    fn a_weight_grows_below_the_lower_bound_and_shrinks_above_the_upper_one() {
        // Upper bound, latency in ms, factor of the weight. The SLO is 100 ms, and the lower bound is 1.
        for (upper, latency, factor) in [
            (1.2, 1000, 1.1),
            (1.2, 101, 1.1),
            (1.2, 100, 1.0),
            (1.2, 84, 1.0),
            (1.2, 83, 0.9),
            (1.2, 1, 0.9),
            // A raised upper bound keeps a weight with which the tail is well within the SLO.
            (4.0, 101, 1.1),
            (4.0, 83, 1.0),
            (4.0, 26, 1.0),
            (4.0, 24, 0.9),
        ] {
            let mut controller = controller(with_upper(upper), &[SLO, None]);
            let weights = weights_after(&mut controller, &[&[latency]]);
            assert_close(&weights, &[factor, 1.0]);
        }
    }

    #[test]
    fn the_tail_at_the_percentile_of_the_slo_decides() {
        let mut latencies = vec![10; 99];
        latencies.push(500);
        let mut controller = controller(Cake::DEFAULT, &[SLO, None]);
        assert_close(&weights_after(&mut controller, &[&latencies]), &[0.9, 1.0]);
        latencies.push(500);
        assert_close(&weights_after(&mut controller, &[&latencies]), &[0.9 * 1.1, 1.0]);
    }

    #[test]
    fn each_workload_has_its_own_objective() {
        let loose = Some((99.0, 400e6));
        let mut controller = controller(Cake::DEFAULT, &[SLO, loose, SLO, None]);
        let weights = weights_after(&mut controller, &[&[200], &[200], &[90], &[200]]);
        assert_close(&weights, &[1.1, 0.9, 1.0, 1.0]);
    }

    #[test]
    fn an_interval_without_requests_changes_no_ratio() {
        let mut controller = controller(Cake::DEFAULT, &[SLO, None]);
        assert_close(&weights_after(&mut controller, &[]), &[1.0, 1.0]);
        assert_close(&weights_after(&mut controller, &[&[200]]), &[1.1, 1.0]);
        // Latencies of the last interval do not count again.
        assert_close(&weights_after(&mut controller, &[]), &[1.1, 1.0]);
    }

    /// Intervals with pairs of a workload and its latency in nanoseconds, over all magnitudes.
    fn intervals() -> impl Strategy<Value = Vec<Vec<(usize, u64)>>> {
        let latency = (0..=u64::MAX, 0u32..64).prop_map(|(latency, shift)| latency >> shift);
        prop::collection::vec(prop::collection::vec((0..3usize, latency), 0..20), 1..60)
    }

    proptest! {
        #[test]
        fn weights_are_from_the_floor_to_the_number_of_workloads(
            intervals in intervals(),
            step in 0.01..0.99f64,
            floor in 0.001..1.0f64,
        ) {
            let settings = Cake { step, floor, ..Cake::DEFAULT };
            let mut controller = controller(settings, &[SLO, Some((50.0, 1e6)), None]);
            for interval in intervals {
                interval.into_iter().for_each(|(workload, latency)| controller.measure(workload, latency));
                for &weight in controller.adjust() {
                    prop_assert!((floor..=3.0 + 1e-9).contains(&weight), "{weight}");
                }
            }
        }

        #[test]
        fn a_larger_upper_bound_never_gives_a_smaller_share(
            latencies in prop::collection::vec(1u64..1000, 1..60),
            raised in 1.2..20.0f64,
        ) {
            // Without a floor that matters, each weight follows the same latencies.
            let share = |upper| {
                let settings = Cake { floor: 1e-9, ..with_upper(upper) };
                let mut controller = controller(settings, &[SLO, None]);
                let mut share = 1.0;
                for &latency in &latencies {
                    share = weights_after(&mut controller, &[&[latency]])[0];
                }
                share
            };
            prop_assert!(share(raised) >= share(1.2) * (1.0 - 1e-9));
        }
    }
}
