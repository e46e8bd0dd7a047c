//! Settings of a packing.

use leeward_calculus::Packets;
use leeward_fabric::input::{InputError, format_number};
use leeward_registry::setting_error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::bound::{BoundSettings, Method};

/// Bounds that decide on places.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// Method of the bounds.
    pub method: Method,
    /// Settings of the bounds.
    pub bounds: BoundSettings,
}

/// Settings of a packing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackSettings {
    /// Name of the algorithm that chooses limits.
    pub limits: String,
    /// Fast first fit: skips servers whose configured rates leave no room for the new workload's lowest rate. For
    /// algorithms that choose for each workload alone, placements stay the same.
    pub fast: bool,
    /// Order in which servers are tried.
    pub order: ServerOrder,
    /// Safety margin: 0.1 counts each request as 10 % more work.
    #[schemars(range(min = 0.0))]
    pub margin: f64,
    /// Largest relative increase of an arrival curve by pruning to fewer buckets. The released code keeps 12
    /// buckets, without such a limit.
    #[schemars(range(min = 0.0))]
    pub pruning: f64,
    /// Bounds that decide on each place; without them, equation 5.1 decides, as published.
    #[serde(skip)]
    pub confirm: Option<Confirm>,
    /// Service model of requests in queues.
    pub requests: Requests,
    /// Longest SLO, in seconds, of each priority but the last; ascending. If empty, each distinct SLO has its
    /// own priority, as in the thesis. A ledger cannot renumber priorities, so it needs this list.
    pub levels: Vec<f64>,
    /// Number of servers tried in parallel. Placements do not depend on it.
    #[schemars(range(min = 1, max = 1024))]
    pub threads: usize,
}

/// Service model of requests in queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// As a fluid, as in the thesis.
    #[default]
    Fluid,
    /// Without interruption: a request waits for a request of a lower priority in service.
    Whole,
}

/// Order in which servers with workloads are tried. Servers without a workload come after them, in their own order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerOrder {
    /// The order of the site: first fit.
    #[default]
    First,
    /// The fewest workloads first.
    FewestWorkloads,
    /// The lowest sum of mean loads first.
    LeastLoad,
    /// The lowest sum of bursts first, so that bursty workloads come to different servers.
    LeastBursts,
    /// The fewest workloads with another SLO than that of the new workload first.
    SameSlos,
    /// A pseudo-random order, which the number of placed workloads determines.
    Random,
}

impl Default for PackSettings {
    fn default() -> Self {
        PackSettings {
            limits: "compactor".to_owned(),
            fast: false,
            order: ServerOrder::First,
            margin: 0.1,
            pruning: 0.01,
            confirm: None,
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

    /// Priority level of an SLO; a lower level is served first. Only the order counts.
    pub(super) fn level(&self, latency: f64) -> u64 {
        if self.levels.is_empty() {
            // The bits of positive numbers sort like the numbers.
            return latency.to_bits();
        }
        self.levels.partition_point(|&longest| longest < latency) as u64
    }

    pub(super) fn check(&self) -> Result<(), InputError> {
        let share = |value: f64| value.is_finite() && value >= 0.0;
        let invalid = |field: &str, value: f64| {
            Err(setting_error(
                "packing",
                field,
                format!("{}: expected a number from 0", format_number(value)),
            ))
        };
        if !share(self.margin) {
            return invalid("margin", self.margin);
        }
        if !share(self.pruning) {
            return invalid("pruning", self.pruning);
        }
        let rising = self.levels.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || self.levels.iter().any(|level| !level.is_finite() || *level <= 0.0) {
            let message = format!("{:?}: expected ascending seconds above 0", self.levels);
            return Err(setting_error("packing", "levels", &message));
        }
        if !(1..=1024).contains(&self.threads) {
            let message = format!("{}: expected 1 to 1024", self.threads);
            return Err(setting_error("packing", "threads", &message));
        }
        Ok(())
    }
}
