//! Sums over a period: numbers of decisions and of task moves, times of hot links, and the mean load of each link.

use std::collections::BTreeMap;

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::{DecisionDetails, Effect};
use crate::ids::ClusterVersion;
use crate::migration::MigrationState;
use crate::spec::PlacementSpec;

/// Numbers of decisions of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DecisionCounts {
    /// Decisions.
    pub decided: u64,
    /// Decisions by the default policy, because of the mode.
    pub by_default: u64,
    /// Requests that were refused, so that nothing was decided.
    pub refused: u64,
    /// Decisions of Leeward's policy without any telemetry.
    pub blind: u64,
    /// Decisions that Leeward's policy left to the default policy.
    pub fallback: u64,
    /// Comparisons in which Leeward's choice loads its links less.
    pub better: u64,
    /// Comparisons in which both choices load their links alike.
    pub same: u64,
    /// Comparisons in which Leeward's choice loads its links more.
    pub worse: u64,
    /// Comparisons without an effect, because the load of a link was unknown.
    pub unknown: u64,
    /// Comparisons in which the policy that did not decide refused the request.
    pub one_refused: u64,
}

impl DecisionCounts {
    /// Counts a decision, with its comparison if that is known.
    pub fn count(&mut self, details: &DecisionDetails) {
        self.decided += 1;
        self.by_default += u64::from(details.by_default);
        self.fallback += u64::from(details.is_fallback());
        self.blind += u64::from(details.is_blind());
        self.count_effect(details);
    }

    /// Counts the comparison of a decision that was counted before.
    pub fn count_effect(&mut self, details: &DecisionDetails) {
        match details.effect() {
            None => {}
            Some(Effect::Better) => self.better += 1,
            Some(Effect::Same) => self.same += 1,
            Some(Effect::Worse) => self.worse += 1,
            Some(Effect::Unknown) => self.unknown += 1,
            Some(Effect::Refused) => self.one_refused += 1,
        }
    }

    fn add(&mut self, other: &DecisionCounts) {
        let DecisionCounts { decided, by_default, refused, blind, fallback, .. } = other;
        let DecisionCounts { better, same, worse, unknown, one_refused, .. } = other;
        self.decided += decided;
        self.by_default += by_default;
        self.refused += refused;
        self.blind += blind;
        self.fallback += fallback;
        self.better += better;
        self.same += same;
        self.worse += worse;
        self.unknown += unknown;
        self.one_refused += one_refused;
    }
}

/// Numbers of task moves that reached a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MoveCounts {
    /// Moves that were chosen in shadow mode.
    pub considered: u64,
    /// Moves that were advised.
    pub advised: u64,
    /// Moves that were made.
    pub done: u64,
    /// Moves that the system that runs the task refused, or could not carry out.
    pub refused: u64,
    /// Moves without an answer in time.
    pub expired: u64,
}

/// Numbers of decisions and moves.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Numbers of decisions, by the kind of the request.
    pub decisions: BTreeMap<String, DecisionCounts>,
    /// Numbers of task moves.
    pub moves: MoveCounts,
}

impl Counts {
    /// Numbers of the decisions of a kind.
    pub fn of(&mut self, spec: &PlacementSpec) -> &mut DecisionCounts {
        self.decisions.entry(spec.kind().to_owned()).or_default()
    }

    /// Counts a move that reached a state.
    pub fn count_move(&mut self, state: MigrationState) {
        match state {
            MigrationState::Considered => self.moves.considered += 1,
            MigrationState::Advised => self.moves.advised += 1,
            MigrationState::Done => self.moves.done += 1,
            MigrationState::Taken => {}
            MigrationState::Refused | MigrationState::Failed => self.moves.refused += 1,
            MigrationState::Expired => self.moves.expired += 1,
        }
    }

    /// Adds the numbers of another period.
    pub fn add(&mut self, other: &Counts) {
        for (kind, counts) in &other.decisions {
            self.decisions.entry(kind.clone()).or_default().add(counts);
        }
        let MoveCounts { considered, advised, done, refused, expired } = other.moves;
        self.moves.considered += considered;
        self.moves.advised += advised;
        self.moves.done += done;
        self.moves.refused += refused;
        self.moves.expired += expired;
    }
}

/// Times of links, summed over all links, in link-seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HotTimes {
    /// Time with a known load.
    pub observed: f64,
    /// Time above the threshold for hot links.
    pub seen: f64,
    /// The same, if all compared decisions had been Leeward's.
    pub with_leeward: f64,
    /// The same, if all compared decisions had been the default policy's.
    pub without_leeward: f64,
    /// Number of decisions and moves whose other choice counts here.
    pub compared: u64,
    /// Number of decisions about replicas and tasks whose other choice is unknown.
    pub uncompared: u64,
}

impl HotTimes {
    /// Adds the times of another period.
    pub fn add(&mut self, other: &HotTimes) {
        let HotTimes { observed, seen, with_leeward, without_leeward, compared, uncompared } = other;
        self.observed += observed;
        self.seen += seen;
        self.with_leeward += with_leeward;
        self.without_leeward += without_leeward;
        self.compared += compared;
        self.uncompared += uncompared;
    }
}

/// Mean utilization of a link in a period, in steps of half a percent; [`LinkMean::UNSEEN`] if its load was unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkMean(pub u8);

impl LinkMean {
    /// The load of the link was unknown in the whole period.
    pub const UNSEEN: LinkMean = LinkMean(u8::MAX);
    /// Steps in one.
    const STEPS: f64 = 200.0;

    /// Rounds a mean. Means above 127 % are stored as 127 %.
    pub fn of(utilization: Option<f64>) -> LinkMean {
        match utilization {
            Some(mean) => LinkMean((mean * LinkMean::STEPS).round().clamp(0.0, 254.0) as u8),
            None => LinkMean::UNSEEN,
        }
    }

    /// The mean; `None` if it is unknown.
    pub fn get(self) -> Option<f32> {
        (self != LinkMean::UNSEEN).then(|| (f64::from(self.0) / LinkMean::STEPS) as f32)
    }
}

/// Sums over a period.
#[derive(Clone, PartialEq, Debug)]
pub struct Period {
    /// Start of the part of the period that this row describes. A service that starts within a period begins a new row.
    pub began: Nanos,
    /// End of the period.
    pub ends: Nanos,
    /// Length of the period.
    pub length: PeriodLength,
    /// Numbers of decisions and moves.
    pub counts: Counts,
    /// Times of hot links.
    pub hot: HotTimes,
    /// Version of the cluster that the links belong to.
    pub cluster: ClusterVersion,
    /// Mean utilization of each link, in order of ids.
    pub links: Vec<LinkMean>,
}

/// Length of stored periods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PeriodLength {
    /// Ten minutes, stored for two days.
    TenMinutes,
    /// An hour, stored for 31 days.
    Hour,
}

impl PeriodLength {
    /// Both lengths.
    pub const ALL: [PeriodLength; 2] = [PeriodLength::TenMinutes, PeriodLength::Hour];

    /// The length.
    pub fn length(self) -> Nanos {
        match self {
            PeriodLength::TenMinutes => Nanos(600 * Nanos::SECOND.0),
            PeriodLength::Hour => Nanos(3_600 * Nanos::SECOND.0),
        }
    }

    /// Time for which periods of this length are stored.
    pub fn kept(self) -> Nanos {
        const DAY: u64 = 24 * 3_600 * Nanos::SECOND.0;
        match self {
            PeriodLength::TenMinutes => Nanos(2 * DAY),
            PeriodLength::Hour => Nanos(31 * DAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_to_half_a_percent() {
        for (mean, stored) in [(0.0, 0.0), (0.004, 0.005), (0.5, 0.5), (1.0, 1.0), (9.0, 1.27)] {
            assert_eq!(LinkMean::of(Some(mean)).get(), Some(stored), "{mean}");
        }
        assert_eq!(LinkMean::of(None).get(), None);
        assert_eq!(LinkMean::of(Some(f64::NAN)).get(), Some(0.0));
    }
}
