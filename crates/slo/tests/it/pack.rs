//! Invariants of a packing under any sequence of arrivals and departures.

use crate::support::loads;
use std::sync::Arc;

use crate::support::loads::LINK;
use leeward_calculus::Packets;
use leeward_slo::Workload;
use leeward_slo::limits::{self, bounds};
use leeward_slo::pack::{
    Client, NoRoom, Obstacle, PackSettings, Packing, RejectReason, Request, Requests, ServerOrder, Site,
};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const ORDERS: [ServerOrder; 6] = [
    ServerOrder::First,
    ServerOrder::FewestWorkloads,
    ServerOrder::LeastLoad,
    ServerOrder::LeastBursts,
    ServerOrder::SameSlos,
    ServerOrder::Random,
];

/// Three clients of four slots, and five servers, every other one with two devices.
fn site() -> Site {
    let clients = (0..3).map(|at| Client { name: format!("c{at}"), slots: Some(4) }).collect();
    let servers = (0..5).map(|at| (format!("s{at}"), 1 + at % 2)).collect();
    Site::star(clients, servers, LINK).expect("a valid site")
}

fn packing(settings: PackSettings) -> Packing {
    Packing::new(site(), settings, "").expect("valid settings")
}

/// An event of a packing.
enum Event {
    Arrives(Request),
    /// A workload departs, by name.
    Departs(String),
}

impl Event {
    /// Applies the event. Refused workloads and departures of refused workloads have no effect.
    fn apply(&self, packing: &mut Packing) {
        match self {
            Event::Arrives(request) => drop(packing.place(request)),
            Event::Departs(name) => drop(packing.remove(name)),
        }
    }
}

fn events(workloads: Vec<Arc<Workload>>, departures: &[(bool, usize)], clients: bool) -> Vec<Event> {
    let mut events = Vec::new();
    for (at, workload) in workloads.into_iter().enumerate() {
        let client = clients.then_some(at % 3);
        events.push(Event::Arrives(Request { workload, client }));
        if let Some((true, number)) = departures.get(at) {
            events.push(Event::Departs(format!("w{}", number % (at + 1))));
        }
    }
    events
}

/// A rack of three hosts, each a client with a device.
fn rack() -> Site {
    let text = "racks: 1\nhosts_per_rack: 3\npriorities: 8\nnic: 800Mbps\nrack_link: 8Gbps\n\
                devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]\n";
    let cluster = cluster(text);
    let hosts: Vec<_> =
        ["r0h0", "r0h1", "r0h2"].map(|name| cluster.fabric.host(name).expect("a host")).into();
    Site::of_fabric(cluster.fabric.clone(), &cluster.capacities, &hosts).expect("a valid site")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_slo_holds_where_clients_are_also_servers(
        workloads in loads::workloads(1..10),
        way in prop::sample::select(limits::REGISTRY.names().collect::<Vec<_>>()),
        whole in any::<bool>(),
    ) {
        let (requests, packets) =
            if whole { (Requests::Whole, Packets::Whole) } else { (Requests::Fluid, Packets::Fluid) };
        let settings = PackSettings { requests, limits: way.to_owned(), ..PackSettings::default() };
        let mut packing = Packing::new(rack(), settings, "").expect("valid settings");
        events(workloads, &[], true).iter().for_each(|event| event.apply(&mut packing));
        let system = packing.system();
        for (promise, bound) in system.promises.iter().zip(bounds(&system, packets).unwrap()) {
            let (seconds, slo) = (bound.unwrap().seconds(), promise.workload.slo.unwrap().latency);
            prop_assert!(seconds <= slo, "{}: {seconds} of {slo}", promise.workload.name);
            let own = promise.route[0].is_empty();
            prop_assert_eq!(own, promise.route[2].is_empty());
            prop_assert!(!promise.route[1].is_empty());
        }
    }

    #[test]
    fn every_policy_meets_all_slos_after_each_arrival_and_departure(
        workloads in loads::workloads(1..12),
        departures in prop::collection::vec((any::<bool>(), 0..12_usize), 12),
        (fast, whole, clients) in any::<(bool, bool, bool)>(),
        // The compactor is twice as likely, because only its limits depend on other workloads.
        way in prop::sample::select(limits::REGISTRY.names().chain(["compactor"]).collect::<Vec<_>>()),
        order in prop::sample::select(ORDERS.to_vec()),
    ) {
        let (requests, packets) =
            if whole { (Requests::Whole, Packets::Whole) } else { (Requests::Fluid, Packets::Fluid) };
        let limits = way.to_owned();
        let settings = PackSettings { fast, order, requests, limits, ..PackSettings::default() };
        let mut packing = packing(settings);
        for event in events(workloads, &departures, clients) {
            event.apply(&mut packing);
            let system = packing.system();
            for (promise, bound) in system.promises.iter().zip(bounds(&system, packets).unwrap()) {
                let (seconds, slo) = (bound.unwrap().seconds(), promise.workload.slo.unwrap().latency);
                prop_assert!(seconds <= slo, "{}: {seconds} of {slo}", promise.workload.name);
            }
        }
        let report = packing.report();
        prop_assert_eq!(report.placed.len(), packing.placed().count());
        let text = serde_json::to_string(&report).unwrap();
        let read: leeward_slo::pack::Report = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.placed.len(), report.placed.len());
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_packing(
        workloads in loads::workloads(1..12),
        departures in prop::collection::vec((any::<bool>(), 0..12_usize), 12),
        threads in 2..6_usize, fast in any::<bool>(), order in prop::sample::select(ORDERS.to_vec()),
    ) {
        let run = |threads| {
            let mut packing = packing(PackSettings { threads, fast, order, ..PackSettings::default() });
            let events = events(workloads.clone(), &departures, false);
            events.iter().for_each(|event| event.apply(&mut packing));
            packing.report()
        };
        prop_assert_eq!(run(1), run(threads));
        prop_assert_eq!(run(1), run(1));
    }
}

#[test]
fn a_workload_without_a_server_gets_the_reason() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut some = |name: &str| {
        let strategy = loads::workload(name.to_owned());
        strategy.new_tree(&mut runner).map(|tree| tree.current()).expect("a workload")
    };
    let mut packing = packing(PackSettings::default());
    let mut place = |workload: Workload, client| {
        packing.place(&Request { workload: Arc::new(workload), client }).map_err(|refused| refused.why)
    };
    let mut easy = some("easy");
    easy.slo.as_mut().unwrap().latency = 30.0;
    assert!(place(easy.clone(), None).is_ok());
    assert_eq!(place(easy.clone(), None), Err(RejectReason::AlreadyPlaced));
    assert_eq!(place(Workload { slo: None, ..some("best effort") }, None), Err(RejectReason::BestEffort));
    assert!(matches!(place(some("nowhere"), Some(9)), Err(RejectReason::Invalid(_))));
    let mut infeasible = some("infeasible");
    infeasible.slo.as_mut().unwrap().latency = 1e-6;
    infeasible.demands.iter_mut().for_each(|demand| demand.unloaded = 0.0);
    assert!(matches!(place(infeasible, None), Err(RejectReason::Alone(_) | RejectReason::NoRoom(_))));
    let mut slow = some("slow");
    slow.demands[0].unloaded = 30.0;
    slow.slo.as_mut().unwrap().latency = 20.0;
    let why = place(slow, None).unwrap_err();
    assert!(
        why.to_string().starts_with("its requests take 30 s up to ")
            && why.to_string().ends_with(" without load: the SLO must be longer"),
        "{why}"
    );
    let mut strange = some("strange");
    strange.demands[0].unloaded = f64::NAN;
    assert!(matches!(place(strange, None), Err(RejectReason::Invalid(_))));
    let mut long = some("long");
    long.slo.as_mut().unwrap().latency = f64::INFINITY;
    assert!(matches!(place(long, None), Err(RejectReason::Invalid(_))));
    for at in 0..20 {
        let _ = place(Workload { name: format!("e{at}"), ..easy.clone() }, Some(0));
    }
    let full = place(Workload { name: "last".to_owned(), ..easy }, Some(0));
    assert!(matches!(full, Err(RejectReason::NoClient | RejectReason::NoRoom(_))), "{full:?}");
    assert!(packing.servers_used() > 0);
    let on = |servers, first: Option<&str>| Obstacle { servers, first: first.map(str::to_owned) };
    let (bursts, limits) = (on(2, Some("the SLO of `a` at storage, s:0")), on(1, None));
    let full = RejectReason::NoRoom(Box::new(NoRoom { servers: 3, bursts, limits, ..NoRoom::default() }));
    assert_eq!(
        full.to_string(),
        "none of 3 servers has room for it: on 2 the smallest bursts take too long (the first: the SLO of `a` at storage, s:0), on 1 no limits keep every SLO"
    );
}

/// A packing onto one server with one device, without a margin.
fn onto_one(settings: PackSettings) -> Packing {
    let clients = vec![Client { name: "c".to_owned(), slots: None }];
    let site = Site::star(clients, vec![("s".to_owned(), 1)], LINK).unwrap();
    Packing::new(site, PackSettings { margin: 0.0, ..settings }, "").unwrap()
}

/// A workload of one stage and one bucket, whose SLO is in seconds.
fn bucketed(
    name: &str,
    slo: f64,
    stage: leeward_traces::Stage,
    rate: f64,
    burst: f64,
) -> Result<Request, leeward_calculus::BucketError> {
    let arrivals = leeward_calculus::TokenBucket::new(rate, burst)?.into();
    let demand =
        leeward_slo::Demand { stage, arrivals, largest: 0.0, model: None, unloaded: 0.0, outstanding: None };
    let slo = Some(leeward_slo::Slo { percentile: 99.0, latency: slo });
    let workload = Workload { name: name.to_owned(), slo, demands: vec![demand], dependencies: Vec::new() };
    Ok(Request { workload: Arc::new(workload), client: None })
}

#[test]
fn a_refusal_names_the_conflicting_workload_on_the_first_server() {
    use leeward_traces::Stage::{NetworkOut, Storage};
    let refusal = |settings, stage, slos: [f64; 2], rate, burst| {
        let mut packing = onto_one(settings);
        packing.place(&bucketed("there", slos[0], stage, rate, burst).unwrap()).unwrap();
        packing.place(&bucketed("comes", slos[1], stage, rate, burst).unwrap()).unwrap_err().to_string()
    };
    let strict = PackSettings::default;
    // Two workloads of 60 % each.
    let rates = refusal(strict(), Storage, [1.0, 1.0], 0.6, 0.1);
    assert!(rates.contains("on 1 the lowest rates exceed the capacity of a queue (the first: "), "{rates}");
    assert!(rates.contains("most of it by `there`)"), "{rates}");
    // Two bursts of 0.4 s, after a higher-priority rate: 0.875 s for an SLO of 0.75 s, or 0.885 s for an SLO of 0.85 s.
    for (slos, whose) in [([0.7, 0.75], "comes"), ([0.85, 0.7], "there")] {
        let bursts = refusal(strict(), Storage, slos, 0.1, 0.4);
        let named =
            format!("on 1 the smallest bursts take too long (the first: the SLO of `{whose}` at storage, s");
        assert!(bursts.contains(&named), "{bursts}");
        // On links of several hops only the program detects it.
        let links = refusal(strict(), NetworkOut, slos, 0.1 * LINK, 0.4 * LINK);
        assert!(links.contains("on 1 no limits keep every SLO (the first: no limits keep all"), "{links}");
        assert!(links.contains("the least violation exceeds the SLO of `"), "{links}");
    }
    // Fast first fit uses the configured rates.
    let fast = refusal(PackSettings { fast: true, ..strict() }, Storage, [1.0, 1.0], 0.4999999, 0.1);
    assert!(fast.contains("fast first fit) (the first: "), "{fast}");
}

#[test]
fn a_refusal_without_feasible_limits_names_the_conflict() {
    let site =
        Site::star(vec![Client { name: "c".to_owned(), slots: None }], vec![("s".to_owned(), 1)], LINK);
    let mut packing =
        Packing::new(site.unwrap(), PackSettings { margin: 0.0, ..PackSettings::default() }, "").unwrap();
    // 0.4 s on a link in each direction: 0.8 s, for an SLO of 0.6 s.
    let bucket = |rate: f64, burst: f64| leeward_calculus::TokenBucket::new(rate, burst).unwrap().into();
    let demand = |stage, arrivals, largest| leeward_slo::Demand {
        stage,
        arrivals,
        largest,
        model: None,
        unloaded: 0.0,
        outstanding: None,
    };
    let workload = Workload {
        name: "w".to_owned(),
        slo: Some(leeward_slo::Slo { percentile: 99.0, latency: 0.6 }),
        demands: vec![
            demand(leeward_traces::Stage::NetworkIn, bucket(0.5 * LINK, 0.4 * LINK), 0.0),
            demand(leeward_traces::Stage::NetworkOut, bucket(0.5 * LINK, 0.4 * LINK), 0.0),
        ],
        dependencies: Vec::new(),
    };
    let refused = packing.place(&Request { workload: Arc::new(workload), client: None }).unwrap_err();
    let RejectReason::Alone(why) = &refused.why else { panic!("{refused}") };
    assert!(why.contains("no limits keep all SLOs together; the least violation"), "{why}");
    assert!(why.contains("the SLO of `w` by 33.33 %"), "{why}");
}
