//! Burn rates: the share of late requests in a window, relative to the share that the percentile of the SLO permits. A rate
//! of 1 uses up exactly what is permitted.
//!
//! Windows, factors and the rule of two windows are those of "The Site Reliability Workbook" (Beyer et al., 2018), chapter
//! 5, "Multiwindow, Multi-Burn-Rate Alerts": the long window shows that much was used up, the short one that it still is.

use std::collections::VecDeque;

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MINUTE: Nanos = Nanos(60 * Nanos::SECOND.0);
const HOUR: Nanos = Nanos(60 * MINUTE.0);

/// Windows of burn rates, the shortest first: 5 and 30 minutes, 1 and 6 hours, 3 days.
pub const WINDOWS: [Nanos; 5] =
    [Nanos(5 * MINUTE.0), Nanos(30 * MINUTE.0), HOUR, Nanos(6 * HOUR.0), Nanos(72 * HOUR.0)];

/// Burn rate in each window; `None` for a window without requests.
pub type Rates = [Option<f64>; WINDOWS.len()];

/// Alert: the burn rate is high in a long and in a short window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BurnAlert {
    /// At least 14.4 over an hour and over five minutes: 2 % of what 30 days permit in an hour.
    Fast,
    /// At least 6 over six hours and over half an hour: 5 % of it in six hours.
    Slow,
    /// At least 1 over three days and over six hours: 10 % of it in three days.
    Lasting,
}

impl BurnAlert {
    /// All alerts, the most urgent first.
    pub const ALL: [BurnAlert; 3] = [BurnAlert::Fast, BurnAlert::Slow, BurnAlert::Lasting];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            BurnAlert::Fast => "fast",
            BurnAlert::Slow => "slow",
            BurnAlert::Lasting => "lasting",
        }
    }

    /// Indices of the long and the short window, and the least rate in both.
    fn rule(self) -> (usize, usize, f64) {
        match self {
            BurnAlert::Fast => (2, 0, 14.4),
            BurnAlert::Slow => (3, 1, 6.0),
            BurnAlert::Lasting => (4, 3, 1.0),
        }
    }

    /// Alerts at these rates, the most urgent first.
    pub fn of(rates: &Rates) -> Vec<BurnAlert> {
        let is_above = |window: usize, least: f64| rates[window].is_some_and(|rate| rate >= least);
        let fires = |alert: &BurnAlert| {
            let (long, short, least) = alert.rule();
            is_above(long, least) && is_above(short, least)
        };
        BurnAlert::ALL.into_iter().filter(fires).collect()
    }
}

/// Numbers of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// All requests.
    pub requests: u64,
    /// Requests with a latency above the SLO's.
    pub late: u64,
}

impl Counts {
    fn add(&mut self, more: Counts) {
        self.requests = self.requests.saturating_add(more.requests);
        self.late = self.late.saturating_add(more.late);
    }

    /// Burn rate; `None` without requests.
    pub fn rate(self, permitted: f64) -> Option<f64> {
        (self.requests > 0).then(|| self.late as f64 / self.requests as f64 / permitted)
    }
}

/// Counts of the last time, in steps. Steps without requests take no memory.
#[derive(Clone, Debug)]
struct Ring {
    step: Nanos,
    /// Number of steps, besides the present one.
    kept: u64,
    /// Steps by number since time zero, in order.
    steps: VecDeque<(u64, Counts)>,
}

impl Ring {
    fn new(step: Nanos, longest: Nanos) -> Ring {
        Ring { step, kept: longest.0 / step.0, steps: VecDeque::new() }
    }

    fn add(&mut self, now: Nanos, counts: Counts) {
        let number = now.0 / self.step.0;
        match self.steps.back_mut() {
            Some((last, sum)) if *last >= number => sum.add(counts),
            _ => self.steps.push_back((number, counts)),
        }
        while self.steps.front().is_some_and(|&(first, _)| first.saturating_add(self.kept) < number) {
            self.steps.pop_front();
        }
    }

    /// Counts of a window up to `now`, which begins up to a step earlier.
    fn sum(&self, now: Nanos, window: Nanos) -> Counts {
        let first = now.since(window).0 / self.step.0;
        let mut sum = Counts::default();
        let recent = self.steps.iter().rev().take_while(|&&(number, _)| number >= first);
        recent.for_each(|&(_, counts)| sum.add(counts));
        sum
    }
}

/// Requests of a workload over the longest window.
#[derive(Clone, Debug)]
pub struct Burn {
    minutes: Ring,
    hours: Ring,
}

impl Default for Burn {
    fn default() -> Burn {
        let [.., six_hours, longest] = WINDOWS;
        Burn { minutes: Ring::new(MINUTE, six_hours), hours: Ring::new(HOUR, longest) }
    }
}

impl Burn {
    /// Adds requests that ended shortly before `now`.
    pub fn add(&mut self, now: Nanos, counts: Counts) {
        if counts.requests > 0 {
            self.minutes.add(now, counts);
            self.hours.add(now, counts);
        }
    }

    /// Counts of a window. It begins up to a minute earlier, and the longest window up to an hour earlier.
    pub fn counts(&self, now: Nanos, window: Nanos) -> Counts {
        let ring = if window > WINDOWS[WINDOWS.len() - 2] { &self.hours } else { &self.minutes };
        ring.sum(now, window)
    }

    /// Burn rate in each window, if this share of requests may be late.
    pub fn rates(&self, now: Nanos, permitted: f64) -> Rates {
        WINDOWS.map(|window| self.counts(now, window).rate(permitted))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(requests: u64, late: u64) -> Counts {
        Counts { requests, late }
    }

    #[test]
    fn alerts_need_both_windows() {
        let rates = |five, thirty, hour, six, days| [five, thirty, hour, six, days].map(Some);
        assert_eq!(BurnAlert::of(&rates(20.0, 0.0, 14.4, 0.0, 0.0)), [BurnAlert::Fast]);
        assert_eq!(BurnAlert::of(&rates(0.0, 0.0, 20.0, 0.0, 0.0)), [], "it was high, and is no longer");
        assert_eq!(BurnAlert::of(&rates(50.0, 0.0, 14.3, 0.0, 0.0)), [], "a short peak");
        assert_eq!(BurnAlert::of(&rates(20.0, 6.0, 20.0, 6.0, 1.0)), BurnAlert::ALL);
        assert_eq!(BurnAlert::of(&rates(0.0, 5.9, 0.0, 6.0, 0.9)), []);
        assert_eq!(BurnAlert::of(&[None; 5]), []);
    }

    #[test]
    fn the_rate_is_relative_to_what_the_percentile_permits() {
        assert_eq!(counts(1_000, 1).rate(0.001), Some(1.0));
        assert_eq!(counts(1_000, 0).rate(0.001), Some(0.0));
        assert_eq!(counts(0, 0).rate(0.001), None);
        let mut burn = Burn::default();
        burn.add(Nanos(0), counts(u64::MAX, u64::MAX));
        burn.add(Nanos(0), counts(u64::MAX, u64::MAX));
        assert_eq!(burn.rates(Nanos(0), 0.01).map(|rate| rate.map(f64::round)), [Some(100.0); 5]);
    }

    proptest! {
        /// A window has all requests of its time, and none from more than a step before it.
        #[test]
        fn a_window_has_the_requests_of_its_time(
            gaps in prop::collection::vec((0_u64..20_000, 0_u64..100), 1..80), wait in 0_u64..400_000,
        ) {
            let (mut burn, mut now, mut all) = (Burn::default(), Nanos(0), Vec::new());
            for (gap, requests) in gaps {
                now = now.plus(Nanos(gap * Nanos::SECOND.0));
                let late = requests / 3;
                burn.add(now, counts(requests, late));
                all.push((now, requests, late));
            }
            now = now.plus(Nanos(wait * Nanos::SECOND.0));
            for (at, window) in WINDOWS.into_iter().enumerate() {
                let step = if at == WINDOWS.len() - 1 { HOUR } else { MINUTE };
                let sum_since = |start: Nanos| {
                    let within = all.iter().filter(|(at, ..)| *at >= start);
                    within.fold((0, 0), |(requests, late), one| (requests + one.1, late + one.2))
                };
                let Counts { requests, late } = burn.counts(now, window);
                let (least, most) = (sum_since(now.since(window)), sum_since(now.since(window.plus(step))));
                prop_assert!((least.0..=most.0).contains(&requests), "{requests} of {least:?} to {most:?}");
                prop_assert!((least.1..=most.1).contains(&late));
            }
            prop_assert!(burn.minutes.steps.len() <= 361 && burn.hours.steps.len() <= 73);
        }
    }
}
