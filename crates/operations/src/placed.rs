//! Chunks of stripes, placed by a replica policy before a run.
//!
//! The stripes are placed one after another on an idle network, so a policy decides by the fabric, by storage and by its own
//! earlier choices. Policies without loads, such as `uniform` and `ccp`, decide as they would in operation.

use leeward_engine::{Engine, Input, Output, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, Sample};
use leeward_placement::replicas::{self, Coding, ReplicaRequest};
use leeward_placement::{Constraints, Explain};
use leeward_registry::PolicySpec;

/// Time between two stripes. Each stripe sees the report of an idle network.
const STEP: Nanos = Nanos::SECOND;

/// Stripes to place.
pub(crate) struct Stripes<'a> {
    pub policy: &'a PolicySpec,
    pub count: u32,
    pub coding: Coding,
    /// Size of a chunk.
    pub size: Bytes,
    pub seed: u64,
}

impl Stripes<'_> {
    /// Places the stripes. Returns the hosts of the chunks of each.
    ///
    /// # Errors
    /// Returns an error for an invalid policy, or for a stripe that the policy refuses.
    pub fn place(&self, cluster: &Cluster) -> Result<Vec<Vec<HostId>>, InputError> {
        let invalid = |field: &str, message: String| InputError::new("chunks", message).in_field(field);
        let policy = replicas::REGISTRY
            .make(&self.policy.name, &self.policy.settings)
            .map_err(|error| invalid("policy", error.to_string()))?;
        let delay = policy.batching_delay(&self.request(0));
        if delay > Nanos(0) {
            let message = format!("`{}` delays blocks by {delay}: expected interval=0s", self.policy.label);
            return Err(invalid("policy", message));
        }
        let fabric = &cluster.fabric;
        let settings = LedgerSettings { interval: STEP, ..LedgerSettings::default() };
        let ledger = Ledger::new(fabric.clone(), &cluster.capacities, settings)
            .map_err(|error| invalid("policy", error.to_string()))?;
        let mut engine = Engine::new(ledger, policy, self.seed, Explain::Off);
        let (mut stripes, mut out) = (Vec::new(), Vec::<Output>::new());
        for number in 0..u64::from(self.count) {
            let window = (Nanos(number * STEP.0), Nanos((number + 1) * STEP.0));
            let links = fabric.all_resources().take(fabric.link_count());
            let idle = links.map(|resource| Sample { resource, window, load: Load(0), guaranteed: None });
            engine.report(window.1, &idle.collect::<Vec<_>>(), &mut out);
            let request = self.request(number);
            let answer = engine.place_replicas(window.1, number, request, Ruling::default(), &mut out);
            out.clear();
            let answer = answer.ok_or_else(|| invalid("policy", "the policy delays its decisions".into()))?;
            let placed = answer.map_err(|error| invalid("stripes", format!("stripe {number}: {error}")))?;
            // The transfers of a stripe end before the next one begins.
            engine.handle(window.1, Input::Release(&placed.entries), &mut out);
            out.clear();
            stripes.push(placed.decision.choice);
        }
        Ok(stripes)
    }

    fn request(&self, number: u64) -> ReplicaRequest {
        ReplicaRequest {
            id: number,
            file: number,
            writer: None,
            size: self.size,
            replicas: self.coding.chunks(),
            layout: self.coding.layout(),
            fault_domains: 1,
            blocks_left: 1,
            job: None,
            constraints: Constraints::default(),
        }
    }
}
