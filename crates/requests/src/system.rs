//! Conversion of a system of promises into a simulated setup.

use leeward_fabric::Nanos;
use leeward_shaping::OverLimit;
use leeward_slo::bound::BoundSettings;
use leeward_slo::{Promise, System};
use leeward_traces::Stage;

use super::error::RequestsError;
use super::setup::{Device, Enforced, Server, Setup, StageLimits};

impl Setup {
    /// Builds the setup that enforces the promises of a system: promises in the same order, and queues with the same
    /// indices. Queues of a storage stage become devices that have as many requests at once as bounds with these settings
    /// assume, and other queues become links. Limits hold requests on networks and demote them at devices, as the thesis' enforcers do.
    ///
    /// A request leaves a queue by the queue's latency after its service: bounds allow that, and also a queue that stands
    /// still for its latency when work arrives.
    ///
    /// A promise's profiled tail ([`leeward_slo::Demand::unloaded`]) is a bound on a request's time in addition to its
    /// work. Here this time is the device's latency, which should not exceed the tail.
    ///
    /// # Errors
    /// Returns an error if the parts of a promise do not match, or if a queue serves both a storage stage and
    /// a network stage.
    pub fn of_system(system: &System, bounds: BoundSettings) -> Result<Setup, RequestsError> {
        let mut uses = vec![[false; 2]; system.queues.len()];
        let mut workloads = Vec::with_capacity(system.promises.len());
        for promise in &system.promises {
            let enforced = enforced(promise)?;
            for (limits, stage) in enforced.stages.iter().zip(Stage::ALL) {
                for &queue in &limits.route {
                    // The check of the setup rejects a missing queue by name.
                    if let Some(uses) = uses.get_mut(queue) {
                        uses[usize::from(stage == Stage::Storage)] = true;
                    }
                }
            }
            workloads.push(enforced);
        }
        let servers = system.queues.iter().zip(uses).zip(bounds.at_once_by_queue(system)).map(
            |((queue, uses), at_once)| {
                let [network, storage] = uses;
                if network && storage {
                    let problem =
                        "on the routes of both a storage and a network stage: expected one of them".into();
                    return Err(RequestsError::Server { server: queue.name.clone(), problem });
                }
                let server = Server::link(&queue.name, queue.capacity);
                let latency = Nanos::from_secs_f64(queue.latency);
                Ok(Server { latency, device: storage.then(|| Device::ssd(at_once)), ..server })
            },
        );
        Ok(Setup::new(servers.collect::<Result<_, _>>()?, workloads))
    }
}

fn enforced(promise: &Promise) -> Result<Enforced, RequestsError> {
    let workload = &promise.workload;
    let reject = |problem: String| RequestsError::Workload { workload: workload.name.clone(), problem };
    let count = workload.demands.len();
    let parts = [promise.route.len(), promise.priorities.len(), promise.limits.len()];
    if parts != [count; 3] {
        let [routes, priorities, limits] = parts;
        return Err(reject(format!(
            "{routes} routes, {priorities} priorities and {limits} limits: expected one of each for its {count} demands"
        )));
    }
    let mut stages: [StageLimits; 3] = Default::default();
    for (index, demand) in workload.demands.iter().enumerate() {
        let stage_limits = &mut stages[demand.stage as usize];
        if !stage_limits.route.is_empty() {
            return Err(reject(format!("two demands at {}: expected at most one", demand.stage)));
        }
        *stage_limits = StageLimits {
            route: promise.route[index].clone(),
            priority: promise.priorities[index],
            limits: promise.limits[index].buckets().to_vec(),
            over: if demand.stage == Stage::Storage { OverLimit::Demoted } else { OverLimit::Held },
        };
    }
    Ok(Enforced { name: workload.name.clone(), slo: workload.slo, weight: 1.0, stages })
}
