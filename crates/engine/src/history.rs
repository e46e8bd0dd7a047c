//! Observed rates of jobs' tasks, and demand estimates from them (Hotspots section 5.1: demands are estimated
//! from history).
//!
//! Time is divided into eighths of the window. For each job and direction, each eighth has a histogram of rates, with
//! steps of a sixteenth of the rate. So memory is bounded for all inputs; data leave the window with their eighth. An
//! estimate is a percentile over the eighths of the last window, the current one included. The value is the upper end
//! of a step, so it is never below the observed rate. A task counts once in five minutes, even if it reports more
//! often. Otherwise tasks of hot racks would weigh more, because they report more often.

use std::collections::{BTreeMap, VecDeque};

use leeward_fabric::Nanos;
use leeward_placement::JobId;
use leeward_placement::tasks::Traffic;

use crate::message::Rates;

/// Settings for the estimation of peaks from observed rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HistorySettings {
    /// Time for which observations count.
    pub window: Nanos,
    /// Percentile that estimates the peak, as a share.
    pub percentile: f64,
}

/// Minimum time between two counted observations of a task.
const COUNT_INTERVAL: Nanos = Nanos(300 * Nanos::SECOND.0);

/// Number of parts of a window.
const PARTS: u64 = 8;

/// Bits of a rate, after the first, that determine its step.
const BITS: u32 = 4;

/// Jobs with tasks that were observed within the window.
pub(crate) struct History {
    settings: HistorySettings,
    jobs: BTreeMap<JobId, VecDeque<Part>>,
    /// Part of the window in which jobs without recent observations were last removed.
    swept: u64,
}

/// Observations of a job in a part of the window.
struct Part {
    number: u64,
    egress: Histogram,
    ingress: Histogram,
}

/// Observed rates of one direction.
#[derive(Default)]
struct Histogram {
    sum: u128,
    /// Number of observations per step.
    steps: BTreeMap<u16, u64>,
}

impl History {
    pub fn new(settings: HistorySettings) -> History {
        History { settings, jobs: BTreeMap::new(), swept: 0 }
    }

    /// The history under new settings. Observations stay unless the window changes, because its parts then have other
    /// lengths.
    pub fn under(before: Option<History>, settings: Option<HistorySettings>) -> Option<History> {
        let settings = settings?;
        match before.filter(|before| before.settings.window == settings.window) {
            Some(before) => Some(History { settings, ..before }),
            None => Some(History::new(settings)),
        }
    }

    /// The window, if it has observations of a job.
    pub fn window_of(&self, job: JobId) -> Option<Nanos> {
        self.jobs.contains_key(&job).then_some(self.settings.window)
    }

    /// Returns true if an observation of a task counts; `before` is the time of its last counted observation.
    pub fn counts(before: Option<Nanos>, now: Nanos) -> bool {
        before.is_none_or(|before| now >= before.plus(COUNT_INTERVAL))
    }

    /// Adds an observation of a job's task.
    pub fn note(&mut self, job: JobId, rates: Rates, now: Nanos) {
        let number = self.part(now);
        if number > self.swept {
            self.swept = number;
            self.jobs.retain(|_, parts| parts.back().is_some_and(|part| part.number + PARTS > number));
        }
        let parts = self.jobs.entry(job).or_default();
        while parts.front().is_some_and(|part| part.number + PARTS <= number) {
            parts.pop_front();
        }
        if parts.back().is_none_or(|part| part.number < number) {
            parts.push_back(Part { number, egress: Histogram::default(), ingress: Histogram::default() });
        }
        if let Some(part) = parts.back_mut() {
            part.egress.note(rates.egress_bps);
            part.ingress.note(rates.ingress_bps);
        }
    }

    /// Estimates the traffic of a job's task in each direction; zero without observations.
    pub fn estimate(&self, job: JobId, now: Nanos) -> [Traffic; 2] {
        let number = self.part(now);
        let parts = self.jobs.get(&job).into_iter().flatten();
        let parts = || parts.clone().filter(|part| part.number + PARTS > number);
        let percentile = self.settings.percentile;
        [
            traffic(parts().map(|part| &part.egress), percentile),
            traffic(parts().map(|part| &part.ingress), percentile),
        ]
    }

    fn part(&self, now: Nanos) -> u64 {
        now.0 / (self.settings.window.0 / PARTS).max(1)
    }
}

impl Histogram {
    fn note(&mut self, bps: u64) {
        self.sum += u128::from(bps);
        *self.steps.entry(step(bps)).or_default() += 1;
    }
}

/// Returns the mean of the observations, and their percentile.
fn traffic<'a>(parts: impl Iterator<Item = &'a Histogram>, percentile: f64) -> Traffic {
    let (mut sum, mut steps) = (0_u128, BTreeMap::<u16, u64>::new());
    for part in parts {
        sum += part.sum;
        part.steps.iter().for_each(|(&step, count)| *steps.entry(step).or_default() += count);
    }
    let count: u64 = steps.values().sum();
    if count == 0 {
        return Traffic::default();
    }
    // The nearest rank.
    let mut rank = ((percentile * count as f64).ceil() as u64).clamp(1, count);
    let step = steps.iter().find(|(_, count)| {
        let within = rank <= **count;
        rank = rank.saturating_sub(**count);
        within
    });
    let mean_bps = (sum / u128::from(count)) as u64;
    let peak_bps = step.map_or(0, |(&step, _)| upper_end(step)).max(mean_bps);
    Traffic { mean_bps, peak_bps }
}

/// Returns the step of a rate. Each rate below 16 bit/s is its own step; above, there are 16 per power of
/// two.
fn step(bps: u64) -> u16 {
    let shift = bps.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
    ((shift << BITS) + (bps >> shift) as u32) as u16
}

/// Returns the highest rate of a step.
fn upper_end(step: u16) -> u64 {
    let shift = (u32::from(step) >> BITS).saturating_sub(1);
    let first = u128::from(u32::from(step) - (shift << BITS));
    u64::try_from(((first + 1) << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use leeward_placement::tasks::Task;

    use super::*;

    const WINDOW: u64 = 8_000;

    proptest! {
        #[test]
        fn a_histogram_step_is_at_most_a_sixteenth_wide(bps in any::<u64>(), bits in 0_u32..64) {
            let bps = bps >> bits;
            let end = upper_end(step(bps));
            prop_assert!(end >= bps && end - bps <= bps / 16, "{bps} {end}");
        }

        #[test]
        fn an_estimate_is_the_percentile_of_samples_within_the_window(
            observations in prop::collection::vec((0_u64..3_000, 0_u64..3, 0_u64..1_000_000), 1..200),
            percentile in 0.01_f64..=1.0, later in 0_u64..9_000,
        ) {
            let mut history = History::new(HistorySettings { window: Nanos(WINDOW), percentile });
            let (mut now, mut seen) = (0, Vec::new());
            for (after, job, bps) in observations {
                now += after;
                history.note(JobId(job), Rates { egress_bps: bps, ingress_bps: 2 * bps }, Nanos(now));
                seen.push((now, job, bps));
            }
            now += later;
            // The current eighth and the seven before it are all within the window.
            let since = (now / 1000).saturating_sub(7) * 1000;
            prop_assert!(now - since < WINDOW);
            for job in 0..3 {
                let counted = seen.iter().filter(|(at, observed, _)| *at >= since && *observed == job);
                let mut rates: Vec<u64> = counted.map(|(.., bps)| *bps).collect();
                rates.sort_unstable();
                let [egress, ingress] = history.estimate(JobId(job), Nanos(now));
                if rates.is_empty() {
                    prop_assert_eq!([egress, ingress], [Traffic::default(); 2]);
                    continue;
                }
                let mean = rates.iter().sum::<u64>() / rates.len() as u64;
                prop_assert_eq!(egress.mean_bps, mean);
                let rank = ((percentile * rates.len() as f64).ceil() as usize).max(1);
                let exact = rates[rank - 1];
                prop_assert!(egress.peak_bps >= exact);
                prop_assert!(egress.peak_bps <= (exact + exact / 16).max(mean));
                prop_assert!(ingress.peak_bps >= 2 * exact);
            }
        }

        #[test]
        fn a_raised_demand_is_the_maximum_of_stated_and_measured(
            stated in 0_u64..1000, seen in 0_u64..1000,
        ) {
            let settings = HistorySettings { window: Nanos(WINDOW), percentile: 1.0 };
            let mut history = History::new(settings);
            let mut task = Task::default();
            task.egress[0] = Traffic { mean_bps: stated / 2, peak_bps: stated };
            prop_assert_eq!(task.with_measured(history.estimate(JobId(5), Nanos(0))), task);
            history.note(JobId(5), Rates { egress_bps: seen, ingress_bps: 0 }, Nanos(0));
            let raised = task.with_measured(history.estimate(JobId(5), Nanos(0))).total_egress();
            prop_assert_eq!(raised.mean_bps, seen.max(stated / 2));
            prop_assert_eq!(raised.peak_bps, upper_end(step(seen)).max(stated));
        }
    }
}
