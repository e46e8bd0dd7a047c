//! Requests to policies for moves.

use std::sync::{Arc, Mutex};

use leeward_engine::{Engine, Input, Policies, Rates, Ruling};
use leeward_fabric::{Cpus, HostId, Load, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_moves::{self as moves, HotLoad, HotTest, MoveRequest, Moves};
use leeward_placement::tasks::{self, AppRequest, Task, TaskId};
use leeward_placement::{Constraints, Context, Decision, Explain, JobId, Policy, Refusal};
use leeward_testing::clusters::{cluster, ledger};

const SECOND: u64 = Nanos::SECOND.0;
const CLUSTER: &str = "{racks: 2, hosts_per_rack: 4, nic: 1Gbps, rack_link: 1Gbps, cpus: 64}";

fn engine(moves: Box<dyn Policy<MoveRequest>>) -> Engine {
    let policies = Policies {
        tasks: tasks::REGISTRY.make("borg", "").ok(),
        moves: Some(moves),
        hot_test: HotTest { load: HotLoad::Window, windows: 1 },
        ..Policies::default()
    };
    Engine::new(ledger(&cluster(CLUSTER)), policies, 7, Explain::Off)
}

/// Places a task, and reports its rate.
fn run(engine: &mut Engine, id: u64, job: JobId, excluded_hosts: Vec<HostId>) {
    let task = Task { cpus: Cpus(1000), tolerant: true, ..Task::default() };
    let constraints = Constraints { excluded_hosts, ..Constraints::default() };
    let request = AppRequest { id, job, tasks: vec![task], constraints, ..AppRequest::default() };
    let placed = engine.place_app(Nanos(SECOND), request, Ruling::default(), &mut Vec::new());
    placed.expect("enough room");
    let rates = Rates { egress_bps: 100_000_000, ingress_bps: 0 };
    let task = TaskId { app: id, index: 0 };
    engine.handle(Nanos(SECOND), Input::Rates(&[(task, rates)]), &mut Vec::new());
}

/// Numbers of tasks and of constraints in the last request.
type Last = Arc<Mutex<(usize, usize)>>;

/// A policy that remembers the size of its last request.
struct Recorded(Box<dyn Policy<MoveRequest>>, Last);

impl Policy<MoveRequest> for Recorded {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn place_one(
        &self,
        request: &MoveRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Moves>, Refusal> {
        *self.1.lock().expect("no test panics meanwhile") =
            (request.running.len(), request.constraints.len());
        self.0.place_one(request, context)
    }
}

#[test]
fn apps_with_equal_constraints_share_them_in_a_request_for_moves() {
    let last = Last::default();
    let moves = moves::REGISTRY.make("utp", "").expect("a policy of the registry");
    let mut engine = engine(Box::new(Recorded(moves, last.clone())));
    // All tasks are in the first rack; each third has one more host excluded.
    let others: Vec<HostId> = (4..8).map(HostId).collect();
    for id in 0..30 {
        let more = (id % 3 == 0).then_some(HostId(3));
        run(&mut engine, id, JobId(id), more.into_iter().chain(others.clone()).collect());
    }
    let fabric = engine.ledger().fabric().clone();
    let uplink = fabric.all_racks().find_map(|rack| fabric.out_of_domain(rack)).expect("a tree");
    let window = (Nanos(SECOND), Nanos(2 * SECOND));
    let load = |link: ResourceId| Load(if link == uplink { 950_000_000 } else { 0 });
    let links = (0..fabric.link_count() as u32).map(ResourceId);
    let samples: Vec<Sample> =
        links.map(|resource| Sample { resource, window, load: load(resource), guaranteed: None }).collect();
    engine.report(Nanos(2 * SECOND), &samples, &mut Vec::new());
    assert_eq!(*last.lock().expect("no policy panicked"), (30, 2));
}
