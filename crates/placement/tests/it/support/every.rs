//! All placements of small apps, against which policies are checked.

use leeward_fabric::HostId;
use leeward_ledger::Scratch;
use leeward_placement::tasks::{self, AppRequest, Assignment, Estimate, completion};
use leeward_placement::{Context, Decision, Explain, Refusal};
use proptest::prelude::*;

use super::{NOW, World};

impl World {
    /// Places an app with one policy.
    pub fn decide(
        &self,
        policy: &str,
        settings: &str,
        app: &AppRequest,
    ) -> Result<Decision<Assignment>, Refusal> {
        let policy = tasks::REGISTRY.make(policy, settings).expect("a policy of the registry");
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(NOW, &mut scratch);
        let mut context = Context { view, pool: &self.pool, seed: 7, explain: Explain::All };
        policy.place_one(app, &mut context)
    }

    /// Hosts of an app by one policy.
    pub fn assign(&self, policy: &str, settings: &str, app: &AppRequest) -> Result<Assignment, Refusal> {
        self.decide(policy, settings, app).map(|decision| decision.choice)
    }

    /// Completion time of an app on hosts.
    pub fn seconds(&self, app: &AppRequest, hosts: &[HostId]) -> f64 {
        let mut scratch = Scratch::default();
        completion(&self.ledger.view(NOW, &mut scratch), &app.transfers, hosts, Estimate::default()).seconds
    }
}

/// True if a time is the least one, but for the rounding of the exact policy's program.
pub fn is_about(found: f64, least: f64) -> bool {
    (found - least).abs() <= 3e-6 * least
}

/// All placements of an app for which `obeys` is true.
pub fn placements<'a>(
    world: &World,
    request: &AppRequest,
    obeys: impl Fn(&[HostId]) -> bool + 'a,
) -> impl Iterator<Item = Assignment> + 'a {
    let (count, hosts) = (request.tasks.len() as u32, world.fabric.host_count());
    let placement = move |number: usize| -> Assignment {
        (0..count).map(|task| HostId((number / hosts.pow(task) % hosts) as u32)).collect()
    };
    (0..hosts.pow(count)).map(placement).filter(move |hosts| obeys(hosts))
}

/// Every policy places an app so that `obeys` is true, and the exact policy finds the fastest of these placements.
pub fn check_policies(
    world: &World,
    request: &AppRequest,
    obeys: impl Fn(&[HostId]) -> bool,
) -> Result<(), TestCaseError> {
    let all = placements(world, request, &obeys);
    let best = all.map(|hosts| world.seconds(request, &hosts)).min_by(f64::total_cmp);
    for registration in tasks::REGISTRY {
        let placed = world.assign(registration.name, "", request);
        if let Ok(hosts) = &placed {
            prop_assert!(obeys(hosts), "{}: {hosts:?}", registration.name);
        }
        if registration.name == "choreo-exact" {
            prop_assert_eq!(placed.is_ok(), best.is_some(), "{:?}", placed);
            let found = placed.map_or(0.0, |hosts| world.seconds(request, &hosts));
            let least = best.unwrap_or(0.0);
            prop_assert!(is_about(found, least), "{found} s, but {least} s is possible");
        }
    }
    Ok(())
}
