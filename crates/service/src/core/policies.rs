//! The policies of a coordinator and the settings of its ledger, which may change while it runs.

use std::sync::Arc;

use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_ledger::{LedgerSettings, SettingsError};

use super::{Addresses, AdmissionPolicies, Coordinator};

/// Names of the policies of the coordinator's engine, with their settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyLabels {
    /// Policy for blocks.
    pub replicas: Arc<str>,
    /// Policy for tasks.
    pub tasks: Arc<str>,
    /// Policy for moves, if any.
    pub moves: Option<Arc<str>>,
    /// Default policy for blocks, if any.
    pub default_replicas: Option<Arc<str>>,
    /// Default policy for tasks, if any.
    pub default_tasks: Option<Arc<str>>,
}

/// Policies and settings that a coordinator takes on while it runs.
pub struct Configuration {
    /// Policies of the engine.
    pub policies: Policies,
    /// Their names.
    pub labels: PolicyLabels,
    /// Policies for guarantees.
    pub admission: AdmissionPolicies,
    /// Settings of the ledger.
    pub ledger: LedgerSettings,
    /// See [`super::Limits::move_timeout`].
    pub move_timeout: Nanos,
}

impl<A: Addresses> Coordinator<A> {
    /// Takes on new policies and settings of the ledger. Telemetry, decisions and guarantees stay. Requests that wait
    /// for a joint decision are decided by the new policies.
    ///
    /// # Errors
    /// Returns an error, without a change, for a setting of the ledger that is out of its range or cannot change.
    pub fn configure(&mut self, now: Nanos, configuration: Configuration) -> Result<(), SettingsError> {
        self.wake(now);
        let Configuration { mut policies, labels, admission, ledger, move_timeout } = configuration;
        // Followers receive moves from the leader.
        policies.moves = policies.moves.filter(|_| !self.is_follower());
        self.engine.set_ledger_settings(self.now, ledger)?;
        self.engine.set_policies(policies);
        self.labels = labels;
        self.limits.move_timeout = move_timeout;
        self.promises.policies = admission;
        Ok(())
    }

    /// Names of the policies.
    pub fn labels(&self) -> &PolicyLabels {
        &self.labels
    }
}
