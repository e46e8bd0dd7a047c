//! Apps on the fluid network: their times without other apps, and the effect of running apps on new ones.

use leeward_fabric::{Bytes, Cluster, Cpus};
use leeward_placement::tasks::{self, AppRequest, Task, Transfer};
use leeward_scenarios::driver::{AppRun, TimedApp, run_apps};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

fn hose(hosts: usize, cpus: u64) -> Cluster {
    let text = format!("shape: hose\nhosts: {hosts}\nnic: 800Mbps\ncpus: {cpus}\n");
    cluster(&text)
}

/// An app of tasks of one processor each, and its matrix in MB.
fn app(start: f64, tasks: u32, sends: &[(u32, u32, u64)]) -> TimedApp {
    let transfer =
        |&(from, to, mb): &(u32, u32, u64)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 };
    let task = Task { cpus: Cpus(1000), ..Task::default() };
    let request = AppRequest {
        tasks: vec![task; tasks as usize],
        transfers: sends.iter().map(transfer).collect(),
        ..AppRequest::default()
    };
    TimedApp { start, request }
}

fn run(cluster: &Cluster, policy: &str, arrivals: &[TimedApp]) -> Vec<AppRun> {
    let policy = tasks::REGISTRY.make(policy, "").expect("a policy of the registry");
    run_apps(cluster, &cluster.capacities, arrivals, policy, 1).expect("arrivals are in order")
}

#[test]
fn an_app_ends_with_its_last_transfer_as_the_model_predicts() {
    // Two transfers of 100 MB leave one host with 100 MB/s, because only one task fits on each host.
    let runs = run(&hose(3, 1), "choreo", &[app(2.0, 3, &[(0, 1, 100), (0, 2, 100)])]);
    assert_eq!(runs[0].seconds, Some(2.0));
    assert_eq!(runs[0].forecast, 2.0);
}

#[test]
fn running_apps_are_cross_traffic_to_new_ones_until_they_end() {
    let arrivals = [app(0.0, 2, &[(0, 1, 400)]), app(1.0, 2, &[(0, 1, 100)]), app(9.0, 2, &[(0, 1, 100)])];
    let runs = run(&hose(4, 1), "choreo", &arrivals);
    let hosts: Vec<_> = runs.iter().map(|run| run.placed.clone().expect("enough room")).collect();
    assert!(hosts[1].iter().all(|host| !hosts[0].contains(host)));
    assert_eq!(runs.iter().map(|run| run.seconds).collect::<Vec<_>>(), [Some(4.0), Some(1.0), Some(1.0)]);
    let refused = run(&hose(3, 1), "choreo", &arrivals);
    assert!(refused[1].placed.is_err() && refused[1].seconds.is_none());
    assert!(refused[2].placed.is_ok());
}

#[test]
fn a_policy_uses_believed_rates_and_the_network_true_ones() {
    let cluster = |rates: [u32; 3]| {
        let host = |at: usize| format!("  - {{name: h{at}, nic: {{up: {}Mbps, down: 10Gbps}}}}\n", rates[at]);
        let text = format!("shape: hose\ncpus: 1\nhosts:\n{}", (0..3).map(host).collect::<String>());
        cluster(&text)
    };
    let (truth, belief) = (cluster([800, 80, 80]), cluster([80, 800, 80]));
    let arrivals = [app(0.0, 2, &[(0, 1, 100)])];
    let choreo = || tasks::REGISTRY.make("choreo", "").expect("a policy of the registry");
    let informed = run_apps(&truth, &truth.capacities, &arrivals, choreo(), 1).expect("sorted arrivals");
    let misled = run_apps(&truth, &belief.capacities, &arrivals, choreo(), 1).expect("sorted arrivals");
    assert_eq!((informed[0].seconds, informed[0].forecast), (Some(1.0), 1.0));
    assert_eq!((misled[0].seconds, misled[0].forecast), (Some(10.0), 1.0));
}

#[test]
fn an_app_on_one_host_takes_no_time() {
    let runs = run(&hose(2, 4), "choreo", &[app(0.0, 3, &[(0, 1, 100), (2, 0, 100)])]);
    assert_eq!((runs[0].seconds, runs[0].forecast), (Some(0.0), 0.0));
}

#[test]
fn arrivals_out_of_order_are_rejected() {
    let policy = tasks::REGISTRY.make("random", "").expect("a policy of the registry");
    let arrivals = [app(1.0, 1, &[]), app(0.0, 1, &[])];
    let cluster = hose(2, 4);
    let error = run_apps(&cluster, &cluster.capacities, &arrivals, policy, 1)
        .expect_err("the second is before the first");
    assert_eq!(error.to_string(), "apps: start: expected times from 0 on, in order");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_app_alone_is_never_slower_than_the_model_predicts(
        sends in prop::collection::btree_map((0_u32..6, 0_u32..6), 1_u64..500, 1..15),
    ) {
        let sends: Vec<_> = sends.into_iter().filter(|((f, t), _)| f != t).map(|((f, t), mb)| (f, t, mb)).collect();
        for policy in ["choreo", "random", "round-robin", "minimum-machines", "leeward"] {
            // With fast links into hosts, only links out of hosts are limits, as in the paper's model.
            let text = "shape: hose\nhosts: 6\nnic: {up: 800Mbps, down: 100Gbps}\ncpus: 2\n";
            let cluster = cluster(text);
            let runs = run(&cluster, policy, &[app(0.0, 6, &sends)]);
            let (seconds, forecast) = (runs[0].seconds.expect("the app ends"), runs[0].forecast);
            prop_assert!((seconds - forecast).abs() <= 1e-9 + 1e-6 * forecast, "{policy}: {seconds} {forecast}");
        }
    }
}
