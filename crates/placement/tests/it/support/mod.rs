//! Shared parts of the policy tests.

pub mod every;

use std::sync::Arc;

use leeward_fabric::{Bytes, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Ledger, Sample, Scratch};
use leeward_placement::replicas::{self, Chain, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Context, Decision, Explain, Policy, Pool, Refusal};
use leeward_testing::clusters;

pub const NOW: Nanos = Nanos(1_500_000_000);
pub const BLOCK: Bytes = Bytes(256 << 20);

/// A cluster with the state that policies read.
pub struct World {
    pub fabric: Arc<Fabric>,
    pub ledger: Ledger,
    pub pool: Pool,
}

impl World {
    pub fn new(cluster: &str) -> World {
        let cluster = clusters::cluster(cluster);
        let ledger = clusters::ledger(&cluster);
        World { pool: Pool::new(cluster.fabric.clone()), fabric: cluster.fabric, ledger }
    }

    /// Reports a load for every resource, as a share of its capacity.
    pub fn report(&mut self, share: impl Fn(ResourceId) -> f64) {
        self.report_some(|resource| Some(share(resource)));
    }

    /// Reports a load for the resources with a share.
    pub fn report_some(&mut self, share: impl Fn(ResourceId) -> Option<f64>) {
        self.report_at(NOW, (Nanos(0), Nanos::SECOND), share);
    }

    /// Reports a load for a given window.
    pub fn report_at(
        &mut self,
        now: Nanos,
        window: (Nanos, Nanos),
        share: impl Fn(ResourceId) -> Option<f64>,
    ) {
        let resources = (0..self.fabric.resource_count() as u32).map(ResourceId);
        let capacity = |r| self.ledger.view(NOW, &mut Scratch::default()).capacity(r).0;
        let samples: Vec<Sample> = resources
            .filter_map(|resource| {
                let load = Load((capacity(resource) as f64 * share(resource)?) as i64);
                Some(Sample { resource, window, load, guaranteed: None })
            })
            .collect();
        self.ledger.report(&samples, now);
    }

    pub fn place(&self, policy: &str, settings: &str, batch: &[ReplicaRequest]) -> Vec<Answer> {
        self.place_all_at(NOW, policy, settings, batch)
    }

    pub fn place_at(&self, now: Nanos, policy: &str, request: &ReplicaRequest) -> Answer {
        self.place_all_at(now, policy, "", std::slice::from_ref(request)).remove(0)
    }

    pub fn place_with(
        &self,
        policy: &dyn Policy<ReplicaRequest>,
        now: Nanos,
        request: &ReplicaRequest,
    ) -> Answer {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(now, &mut scratch);
        let mut context = Context { view, pool: &self.pool, seed: 7, explain: Explain::All };
        policy.place(std::slice::from_ref(request), &mut context).remove(0)
    }

    fn place_all_at(
        &self,
        now: Nanos,
        policy: &str,
        settings: &str,
        batch: &[ReplicaRequest],
    ) -> Vec<Answer> {
        let policy = replicas::REGISTRY.make(policy, settings).expect("a policy of the registry");
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(now, &mut scratch);
        let mut context = Context { view, pool: &self.pool, seed: 7, explain: Explain::All };
        policy.place(batch, &mut context)
    }

    pub fn place_one(&self, policy: &str, settings: &str, request: &ReplicaRequest) -> Answer {
        self.place(policy, settings, std::slice::from_ref(request)).remove(0)
    }
}

pub type Answer = Result<Decision<Chain>, Refusal>;

/// A full block of three copies in two fault domains.
pub fn request(id: u64, writer: u32) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: id,
        writer: Some(HostId(writer)),
        size: BLOCK,
        replicas: 3,
        layout: Layout::Chain,
        fault_domains: 1,
        blocks_left: 1,
        job: None,
        constraints: Constraints::default(),
    }
}
