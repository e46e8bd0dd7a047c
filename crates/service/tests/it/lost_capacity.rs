//! Capacity that a link lost, learned from its loads, through the service: reports, bounds on them, and speeds.

use leeward_engine::{Engine, Policies};
use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_placement::{Explain, tasks};
use leeward_service::{Coordinator, Limits, LinkState, Reading, Report, ReportSummary};
use leeward_testing::clusters::{cluster, ledger};

use crate::support::{Numbers, labels, samples};

const GBPS: i64 = 1_000_000_000;
/// Capacity of the links of racks in the cluster, and what an unannounced loss leaves of it, in Gb/s.
const FULL: i64 = 40;
const HALF: i64 = 20;

/// A service on two racks, whose policy for tasks learns lost capacity, and the seconds of its reports.
struct Learner {
    coordinator: Coordinator<Numbers>,
    uplink: ResourceId,
    second: u64,
}

impl Learner {
    fn new(settings: &str) -> Learner {
        let cluster = cluster("{racks: 2, hosts_per_rack: 4, nic: 10Gbps, rack_link: 40Gbps, cpus: 16}");
        let policies = Policies { tasks: tasks::REGISTRY.make("utp", settings).ok(), ..Policies::default() };
        let engine = Engine::new(ledger(&cluster), policies, 7, Explain::Off);
        let uplink = cluster.fabric.resource("r0:uplink").expect("a link");
        Learner { coordinator: Coordinator::new(engine, labels(), Limits::default()), uplink, second: 1 }
    }

    /// Reports a load of the uplink in Mb/s, with its queue and speed.
    fn report(&mut self, mbps: i64, reading: Reading) -> ReportSummary {
        self.second += 1;
        let at = |second: u64| Nanos(second * Nanos::SECOND.0);
        let window = (at(self.second - 1), at(self.second));
        let loads = samples(window, [(self.uplink, Load(mbps * GBPS / 1_000))]);
        let report = Report { window, loads, readings: vec![(self.uplink, reading)], ..Report::default() };
        self.coordinator.report(at(self.second), report).expect("a valid report")
    }

    /// A varying load up to the remaining capacity, then six windows with a queue in which the link carries all that it
    /// can.
    fn lose_half(&mut self) {
        for at in 0..60 {
            self.report(
                1_000 * HALF - (at * 7_919) % 4_000,
                Reading { queue: Some(0.0), ..Reading::default() },
            );
        }
        assert_eq!(self.capacities(), (FULL, None), "a varying load is no sign of a full link");
        for _ in 0..8 {
            self.report(1_000 * HALF, Reading { queue: Some(1e6), ..Reading::default() });
        }
    }

    /// Capacity that decisions use and that of the cluster if it is higher, in Gb/s.
    fn capacities(&mut self) -> (i64, Option<i64>) {
        let links = self.coordinator.snapshot().links;
        let LinkState { capacity, full, .. } =
            *links.iter().find(|link| link.link == self.uplink).expect("the link has a state");
        (capacity.0 / GBPS, full.map(|full| full.0 / GBPS))
    }
}

#[test]
fn the_links_of_a_service_have_the_learned_capacity_beside_that_of_the_cluster() {
    let mut without = Learner::new("");
    without.lose_half();
    assert_eq!(without.capacities(), (FULL, None), "learning is off by default");
    let mut learner = Learner::new("learn_capacity: true");
    learner.lose_half();
    assert_eq!(learner.capacities(), (HALF, Some(FULL)));
}

#[test]
fn reports_are_bounded_by_the_capacity_of_the_cluster_and_not_by_the_learned_one() {
    let mut learner = Learner::new("learn_capacity: true");
    learner.lose_half();
    let summary = learner.report(30_000, Reading::default());
    assert_eq!(summary.clamped, 0, "the link has its capacity back");
    assert_eq!(learner.capacities(), (FULL, None), "it carried more than it was believed to");
    let absurd = learner.report(90_000, Reading::default());
    assert_eq!((absurd.clamped, absurd.clamped_names), (1, vec!["r0:uplink".to_owned()]));
}

#[test]
fn a_speed_below_the_learned_capacity_counts_instead_of_it() {
    let mut learner = Learner::new("learn_capacity: true");
    learner.lose_half();
    let speed = |gbps: i64| Reading { speed: Some(Load(gbps * GBPS)), ..Reading::default() };
    learner.report(8_000, speed(30));
    assert_eq!(learner.capacities(), (HALF, Some(FULL)), "a higher speed proves nothing");
    learner.report(8_000, speed(10));
    assert_eq!(learner.capacities(), (10, Some(FULL)));
}
