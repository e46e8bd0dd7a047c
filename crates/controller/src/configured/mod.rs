//! Settings of a running service that a reload may change: policies, estimates of loads, and modes.

mod policies;

use std::sync::Arc;

use leeward_engine::{Engine, Policies};
use leeward_fabric::{Cluster, Nanos};
use leeward_hooks::Hook;
use leeward_ledger::{Ledger, LedgerSettings};
use leeward_placement::Explain;
use leeward_records::Modes;
use leeward_service::{AdmissionPolicies, Configuration, PolicyLabels};
use leeward_settings::{HistoryOptions, MoveOptions};

pub use self::policies::ChosenPolicies;

/// Number of candidates per level whose reasons a decision keeps, besides the chosen candidates.
const EXPLAIN: Explain = Explain::Top(8);

/// Factory of policies. It may run more than once.
pub type MakePolicies = Box<dyn Fn() -> Policies + Send + Sync>;

/// Settings in force that a reload may change. They were checked.
pub struct Configured {
    /// Factory of the policies.
    pub policies: MakePolicies,
    /// Names of the policies as users write them, settings included.
    pub labels: PolicyLabels,
    /// Policies for guarantees.
    pub admission: AdmissionPolicies,
    /// Settings of the ledger.
    pub ledger: LedgerSettings,
    /// Modes of the settings file.
    pub modes: Modes,
    /// Demand of tasks from history.
    pub history: Option<HistoryOptions>,
    /// Moves of tasks.
    pub moves: MoveOptions,
    /// Hook for advised moves, if any.
    pub hook: Option<Arc<Hook>>,
}

impl Configured {
    /// Creates an engine without state for a cluster.
    pub fn engine(&self, cluster: &Cluster, leads: bool, seed: u64) -> Engine {
        let ledger = Ledger::of_cluster(cluster, self.ledger.clone());
        let mut policies = self.policies();
        // Followers receive moves from the leader.
        policies.moves = policies.moves.filter(|_| leads);
        Engine::new(ledger.expect("the settings were checked"), policies, seed, EXPLAIN)
    }

    /// Configuration that a running coordinator takes on.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            policies: self.policies(),
            labels: self.labels.clone(),
            admission: self.admission.clone(),
            ledger: self.ledger.clone(),
            move_timeout: self.moves.timeout,
        }
    }

    /// The policies, with the settings that all of them share.
    fn policies(&self) -> Policies {
        let interval = self.ledger.interval.0;
        Policies {
            history: self.history.and_then(|history| history.check().ok()),
            hot_test: self.moves.test(),
            cooldown: Nanos(interval.saturating_mul(u64::from(self.moves.cooldown))),
            ..(self.policies)()
        }
    }
}
