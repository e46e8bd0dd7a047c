//! A policy of your own in Rust, compared with policies of the registry on the same arrivals.
//!
//! ```text
//! cargo run --release -p leeward-scenarios --example own_policy -- examples/scenarios/first.yaml
//! ```

use std::error::Error;

use leeward_engine::Policies;
use leeward_fabric::{HostId, ResourceId};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::{Context, Decision, Policy, Refusal};
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_scenarios::summary::Comparison;
use leeward_scenarios::{Task, run_all_by};

/// Puts copies where the link into the host and the link into its rack have most left.
struct Coolest;

impl Policy<ReplicaRequest> for Coolest {
    fn name(&self) -> &'static str {
        "coolest"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let (view, fabric) = (&*context.view, context.pool.fabric());
        let left = |link: Option<ResourceId>| link.map_or(f64::INFINITY, |link| view.residual(link).0 as f64);
        let score = |host: HostId| {
            let rack = fabric.rack_of(host);
            left(fabric.ingress(host)).min(left(fabric.into_domain(rack)))
        };
        let scores: Vec<f64> = fabric.all_hosts().map(score).collect();
        let hosts = replicas::best_by_scores(context.pool, request, &scores, context.seed)?;
        Ok(replicas::given(self.name(), request, &hosts, view.now(), view.epoch(), context.pool))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("expected the path of a scenario file")?;
    let scenario = Scenario::from_file(&file, None)?;
    let names = ["uniform", "sinbad", "coolest"];
    let tasks = names.map(|name| Task { policy: PolicySpec::named(name), seed: scenario.seed });
    let runs = run_all_by(&scenario, &tasks, 2, &|_, _| true, &|task| {
        if task.policy.name == "coolest" {
            let policy: Box<dyn Policy<ReplicaRequest>> = Box::new(Coolest);
            return Ok(Policies::from(policy));
        }
        Ok(scenario.kind().policies(&task.policy)?)
    })?;
    let warmup = scenario.warmup.as_secs_f64();
    for run in &runs {
        let compared = Comparison::of(&run.record, &runs[0].record, warmup);
        println!("{:<8} full blocks {:.2} times as fast", run.policy.label, compared.full_blocks.factor);
    }
    Ok(())
}
