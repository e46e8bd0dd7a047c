//! Re-placement of apps by the engine: ledger and pool are as if the app had been on its new hosts from the start.

use leeward_engine::{Engine, Input, Policies, Reevaluation, Ruling, SnapshotScope};
use leeward_fabric::{Bytes, Cpus, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Owner, OwnerKind, Scratch};
use leeward_placement::tasks::{AppRequest, Task, Transfer, Worth};
use leeward_placement::{Explain, JobId, Refusal, tasks};
use leeward_testing::clusters::{cluster, ledger};
use proptest::prelude::*;

const APP: Owner = Owner { kind: OwnerKind::App, id: 1 };
const WORTH: Worth = Worth { pause: Nanos(1_000_000_000), state: None, margin: 0.1 };

/// Policies that random runs leave out. The proactive policies refuse apps on a mesh, which has no links of racks. The
/// exact policy solves a program for each decision.
const EXCLUDED: [&str; 3] = ["utp", "utp-proactive", "choreo-exact"];

fn engine(policy: &str) -> Engine {
    let text = "shape: hose\nhosts: 6\nnic: 800Mbps\ncpus: 2\n";
    let ledger = ledger(&cluster(text));
    let tasks = Some(tasks::REGISTRY.make(policy, "").expect("a policy of the registry"));
    let policies = Policies { tasks, ..Policies::default() };
    Engine::new(ledger, policies, 7, Explain::Off)
}

fn app(id: u64, transfers: &[(u32, u32, u64)]) -> AppRequest {
    let transfer = |&(from, to, mb)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 };
    let tasks = vec![Task { cpus: Cpus(1000), ..Task::default() }; 3];
    AppRequest {
        id,
        job: JobId(id),
        tasks,
        transfers: transfers.iter().map(transfer).collect(),
        ..AppRequest::default()
    }
}

fn place(engine: &mut Engine, at: u64, request: AppRequest) -> Result<Vec<HostId>, Refusal> {
    engine
        .place_app(Nanos(at), request, Ruling::default(), &mut Vec::new())
        .map(|placed| placed.decision.choice)
}

fn reevaluate(engine: &mut Engine, at: u64, app: AppRequest) -> Result<Reevaluation, Refusal> {
    engine.reevaluate(Nanos(at), &app, WORTH, &mut Vec::new())
}

/// Returns the free processors of each host, and the flows on each link.
fn cpus_and_flows(engine: &Engine, at: u64) -> (Vec<Option<Cpus>>, Vec<f64>) {
    let mut scratch = Scratch::default();
    let view = engine.ledger().view(Nanos(at), &mut scratch);
    let links = (0..engine.ledger().fabric().resource_count() as u32).map(ResourceId);
    let hosts = engine.ledger().fabric().all_hosts();
    (hosts.map(|host| engine.pool().cpus_left(host)).collect(), links.map(|link| view.flows(link)).collect())
}

#[test]
fn an_app_that_is_not_running_is_not_moved() {
    let mut engine = engine("choreo");
    let stays = reevaluate(&mut engine, 1, app(9, &[(0, 1, 10)])).expect("a policy is there");
    assert_eq!(stays.placed, None);
}

#[test]
fn an_app_stays_if_a_host_closed_after_the_re_evaluation() {
    let mut engine = engine("leeward");
    let request = app(1, &[(0, 1, 1000), (0, 2, 1000)]);
    let hosts = place(&mut engine, 1, request.clone()).expect("enough room");
    let link = engine.ledger().fabric().egress(hosts[0]).expect("a hose");
    engine.handle(Nanos(2), Input::SetCapacity(link, Load(1_000_000)), &mut Vec::new());
    let again = engine.consider_again(Nanos(2), &request, &WORTH).expect("enough room").expect("it runs");
    assert!(again.is_worth(WORTH.margin), "{again:?}");
    let moved = again.decision.choice.iter().zip(&hosts).find(|(next, current)| next != current);
    let (&next, _) = moved.expect("a task leaves its host");
    engine.handle(Nanos(3), Input::Drain(next, true), &mut Vec::new());
    let before = cpus_and_flows(&engine, 3);
    assert_eq!(engine.commit_again(Nanos(3), &request, again.decision, &mut Vec::new()), None);
    assert_eq!(cpus_and_flows(&engine, 3), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ledger_and_pool_track_an_app_through_moves_until_its_end(
        transfers in prop::collection::btree_map((0_u32..3, 0_u32..3), 1_u64..2000, 1..6),
        policy in prop::sample::select(
            tasks::REGISTRY.names().filter(|name| !EXCLUDED.contains(name)).collect::<Vec<_>>()
        ),
        changes in prop::collection::vec((0_u32..6, 0_i64..800), 1..8),
        other in any::<bool>(), by_snapshot in any::<bool>(),
    ) {
        let mut engine = engine(policy);
        let empty = cpus_and_flows(&engine, 0);
        let transfers: Vec<_> = transfers.into_iter().filter(|((f, t), _)| f != t).map(|((f, t), mb)| (f, t, mb)).collect();
        let request = app(1, &transfers);
        if other {
            place(&mut engine, 1, app(2, &[(0, 1, 500), (1, 2, 100)])).expect("enough room");
        }
        let mut hosts = place(&mut engine, 1, request.clone()).expect("enough room");
        for (at, (host, mbps)) in (2..).zip(changes) {
            let link = engine.ledger().fabric().egress(HostId(host)).expect("a hose");
            engine.handle(Nanos(at), Input::SetCapacity(link, Load(mbps * 1_000_000)), &mut Vec::new());
            let before = cpus_and_flows(&engine, at);
            let considered = engine.consider_again(Nanos(at), &request, &WORTH).expect("its own hosts have room");
            let considered = considered.expect("the app runs");
            prop_assert_eq!(&cpus_and_flows(&engine, at), &before);
            let scope = SnapshotScope { job: Some(JobId(1)), without: Some(APP) };
            let on_snapshot = engine.snapshot(scope).consider_again(&request, &hosts, &WORTH).expect("a placement");
            prop_assert_eq!(&on_snapshot, &considered);
            let placed = if by_snapshot {
                let decision = on_snapshot.decision;
                considered.is_worth(WORTH.margin).then(|| {
                    let placed = engine.commit_again(Nanos(at), &request, decision, &mut Vec::new());
                    placed.expect("the hosts have room")
                })
            } else {
                reevaluate(&mut engine, at, request.clone()).expect("its own hosts have room").placed
            };
            match placed {
                None => prop_assert_eq!(cpus_and_flows(&engine, at), before),
                Some(placed) => {
                    prop_assert!(considered.cost + considered.moves < (1.0 - WORTH.margin) * considered.stays);
                    prop_assert_eq!(&placed.decision.choice, &considered.decision.choice);
                    hosts = placed.decision.choice;
                    for (index, &host) in (0..).zip(&hosts) {
                        let task = leeward_placement::tasks::TaskId { app: 1, index };
                        prop_assert_eq!(engine.host_of(task), Some(host));
                    }
                    let (cpus, _) = cpus_and_flows(&engine, at);
                    let used: u64 = cpus.iter().flatten().map(|cpus| 2000 - cpus.0).sum();
                    prop_assert_eq!(used, 3000 * (1 + u64::from(other)));
                }
            }
        }
        engine.handle(Nanos(100), Input::Ended(1), &mut Vec::new());
        engine.handle(Nanos(100), Input::Ended(2), &mut Vec::new());
        prop_assert_eq!(cpus_and_flows(&engine, 100), empty);
        prop_assert_eq!(hosts.len(), 3);
    }
}
