//! Settings of a packing.

use leeward_calculus::Packets;
use leeward_fabric::input::{InputError, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::setting_error;

/// Settings of a packing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackSettings {
    /// How limits are chosen, by name.
    pub limits: String,
    /// Whether servers whose configured rates leave no room for the new workload's least rate are passed over without a try: fast
    /// first fit. For ways that choose for each workload by itself it makes no difference to where workloads go.
    pub fast: bool,
    /// The safety margin: 0.1 takes each request as 10 % more work than it is.
    #[schemars(range(min = 0.0))]
    pub margin: f64,
    /// By how much of themselves arrival curves may be raised to have fewer buckets. The released code keeps 12 buckets,
    /// without a bound.
    #[schemars(range(min = 0.0))]
    pub pruning: f64,
    /// How requests move through queues.
    pub requests: Requests,
    /// The longest SLO, in seconds, of each priority but the last, rising. Workloads have a priority for each SLO there is
    /// if this is empty, as in the thesis; a ledger, whose priorities cannot be numbered anew, needs it.
    pub levels: Vec<f64>,
    /// Servers that are tried at once. What is placed where does not depend on it.
    #[schemars(range(min = 1, max = 1024))]
    pub threads: usize,
}

/// How requests move through queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// As a fluid, as in the thesis.
    #[default]
    Fluid,
    /// Each served whole: a request waits for one of a later priority that is in service.
    Whole,
}

impl Default for PackSettings {
    fn default() -> Self {
        PackSettings {
            limits: "compactor".to_owned(),
            fast: false,
            margin: 0.1,
            pruning: 0.01,
            requests: Requests::Fluid,
            levels: Vec::new(),
            threads: 1,
        }
    }
}

impl PackSettings {
    pub(super) fn packets(&self) -> Packets {
        match self.requests {
            Requests::Fluid => Packets::Fluid,
            Requests::Whole => Packets::Whole,
        }
    }

    /// The priority of an SLO: lower is served first. Only the order counts.
    pub(super) fn level(&self, latency: f64) -> u64 {
        if self.levels.is_empty() {
            // The bits of numbers above 0 are in the order of the numbers.
            return latency.to_bits();
        }
        self.levels.partition_point(|&longest| longest < latency) as u64
    }

    pub(super) fn check(&self) -> Result<(), InputError> {
        let share = |value: f64| value.is_finite() && value >= 0.0;
        let wrong = |field: &str, value: f64| {
            Err(setting_error("packing", field, &format!("{}: expected a number from 0", shown(value))))
        };
        if !share(self.margin) {
            return wrong("margin", self.margin);
        }
        if !share(self.pruning) {
            return wrong("pruning", self.pruning);
        }
        let rising = self.levels.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || self.levels.iter().any(|level| !level.is_finite() || *level <= 0.0) {
            let message = format!("{:?}: expected seconds above 0 that rise", self.levels);
            return Err(setting_error("packing", "levels", &message));
        }
        if !(1..=1024).contains(&self.threads) {
            let message = format!("{}: expected 1 to 1024", self.threads);
            return Err(setting_error("packing", "threads", &message));
        }
        Ok(())
    }
}
