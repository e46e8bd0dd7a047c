//! PLP of tandems, compared with values computed by hand and by the program of the paper's author
//! (`golden/qos/peers_panco_tandem.json`).

use leeward_calculus::{ArrivalCurve, Crossing, RateLatency, Server, ServiceCurve, Tandem, TokenBucket};
use leeward_slo::bound::plp::{Delays, longest_delay};
use leeward_solver::SolverError;
use leeward_testing::golden::{self, array as each, number};
use proptest::prelude::*;
use serde_json::Value;

fn server(rate: f64, latency: f64, link: Option<TokenBucket>) -> Server {
    let service: ServiceCurve = RateLatency::new(rate, latency).unwrap().into();
    Server { ends: service.clone(), passes_on: service, link }
}

fn crossing(rate: f64, burst: f64, first: usize, last: usize) -> Crossing {
    let arrivals: ArrivalCurve = TokenBucket::new(rate, burst).unwrap().into();
    Crossing { arrivals, first, last, link: None }
}

/// Results of total flow analysis, separated flow analysis, PLP and PLP++ for the first crossing.
fn analyses(tandem: &Tandem) -> [f64; 4] {
    let servers = tandem.total_flow().unwrap();
    let crossings = tandem.separated_flow();
    let (total, separated) = (servers.iter().sum::<f64>(), crossings[0].unwrap());
    let plain = longest_delay(tandem, None, 32, total).unwrap();
    let tighter = longest_delay(tandem, Some(&Delays { servers, crossings }), 32, total).unwrap();
    [total, separated, plain, tighter]
}

#[test]
fn two_servers_match_the_bound_computed_by_hand() {
    // Crossings: two from server 0 to server 1, one at server 0, and one at server 1. The load of each server is half
    // of its rate. No link limits apply.
    let rate = 5.0 / 3.0;
    let crossings = [(0, 1), (0, 1), (0, 0), (1, 1)].map(|(first, last)| crossing(rate, 1.0, first, last));
    let servers = vec![server(10.0, 0.1, None); 2];
    let tandem = Tandem { servers, links: Vec::new(), crossings: crossings.to_vec() };
    // Total flow, in seconds: 0.1 + 3 / 10 at server 0, and 0.1 + (3 + 2 x 0.4 x 5 / 3) / 10 at server 1.
    let by_queue = 0.4 + 0.4 + 2.0 * 0.4 * rate / 10.0;
    // Separated flow: the latency at server 0 is 0.1 + 2 / 10. At server 1 the bursts of the other crossings are 1 and
    // 1 + 0.3 x 5 / 3, so the latency is 0.1 + (2 + 0.3 x 5 / 3) / 10. The crossing's own burst of 1 then gets the rate
    // 10 - 2 x 5 / 3.
    let by_flow = 0.3 + (0.1 + (2.0 + 0.3 * rate) / 10.0) + 1.0 / (10.0 - 2.0 * rate);
    for (found, expected) in analyses(&tandem).into_iter().zip([by_queue, by_flow, 0.68, 0.633_333_333_333]) {
        assert!((found - expected).abs() < 1e-8, "{found}, expected {expected}");
    }
}

#[test]
fn tandems_match_the_published_program() {
    let Some(folder) = golden::folder("qos") else { return };
    let given = golden::json(&folder.join("peers_panco_tandem.json"));
    let mut compared = 0;
    for given in each(&given) {
        let bucket = |rate: &Value, burst: &Value| TokenBucket::new(number(rate), number(burst)).unwrap();
        let servers = each(&given["servers"]).iter().map(|of| {
            let link = each(&of["shaper"]).first().map(|shaper| bucket(&shaper[1], &shaper[0]));
            server(number(&of["R"]), number(&of["T"]), link)
        });
        let crossings = each(&given["flows"]).iter().map(|of| {
            let buckets: Vec<_> = each(&of["arrival"]).iter().map(|of| bucket(&of[1], &of[0])).collect();
            let path = each(&of["path"]);
            let (first, last) = (number(&path[0]) as usize, number(&path[path.len() - 1]) as usize);
            Crossing { arrivals: ArrivalCurve::new(&buckets).unwrap(), first, last, link: None }
        });
        let tandem = Tandem { servers: servers.collect(), links: Vec::new(), crossings: crossings.collect() };
        // The queueing delays of the published program have six digits. Its TFA adds these delays, and its PLP++ uses
        // them as constraints.
        let tolerances = [("TFA", 2e-6), ("SFA", 1e-6), ("PLP", 1e-8), ("PLP++", 1e-6)];
        for (found, (name, tolerance)) in analyses(&tandem).into_iter().zip(tolerances) {
            let expected = number(&given[name]);
            let of = &given["name"];
            assert!((found / expected - 1.0).abs() < tolerance, "{of} {name}: {found}, expected {expected}");
            compared += 1;
        }
    }
    println!("{compared} values");
    assert!(compared >= 80);
}

/// Tandems of one to four servers with at most 90 % load. Crossings have one or two buckets, and some crossings arrive
/// over links. Some servers have a link to the next server.
fn tandems() -> impl Strategy<Value = Tandem> {
    let crossing =
        (0.05..1.0f64, 0.1..4.0f64, prop::option::of((1.5..6.0f64, 0.1..0.9f64)), 0usize..4, 0usize..4);
    let crossings = prop::collection::vec(crossing, 1..6);
    let servers = prop::collection::vec((5.0..10.0f64, 0.0..0.5f64, any::<bool>()), 1..=4);
    (servers, crossings, any::<bool>()).prop_map(|(servers, drawn, over_links)| {
        let last = servers.len() - 1;
        let share = 0.9 * 5.0 / drawn.len() as f64;
        let links: Vec<TokenBucket> = (0..=last).map(|_| TokenBucket::new(9.0, 0.2).unwrap()).collect();
        let crossings = drawn.into_iter().enumerate().map(|(at, (rate, burst, second, from, to))| {
            let mut buckets = vec![TokenBucket::new(rate * share, burst).unwrap()];
            if let Some((faster, smaller)) = second {
                buckets.push(TokenBucket::new(rate * share * faster, burst * smaller).unwrap());
            }
            let (from, to) = (from.min(last), to.min(last));
            let (first, last) = if at == 0 { (0, last) } else { (from.min(to), from.max(to)) };
            let link = (at > 0 && over_links && from >= to).then_some(first);
            Crossing { arrivals: ArrivalCurve::new(&buckets).unwrap(), first, last, link }
        });
        let crossings = crossings.collect();
        let servers = servers.into_iter().map(|(rate, latency, link)| {
            server(rate, latency, link.then(|| TokenBucket::new(rate, 0.1).unwrap()))
        });
        Tandem { servers: servers.collect(), links, crossings }
    })
}

proptest! {
    #[test]
    fn plp_plus_plus_is_at_most_plp_and_both_analyses(tandem in tandems()) {
        let [total, separated, plain, tighter] = analyses(&tandem);
        let at_most = |a: f64, b: f64| a <= b * (1.0 + 1e-6);
        prop_assert!(at_most(tighter, total.min(separated)) && at_most(tighter, plain), "{} {} {} {}", total, separated, plain, tighter);
        // A bit that arrives at empty servers may wait for the latency of each server.
        let alone = tandem.servers.iter().map(|server| server.ends.latency()).sum::<f64>();
        prop_assert!(at_most(alone, tighter), "{} {}", alone, tighter);
        // More buckets and the limits of links only lower the bound.
        let fewer = longest_delay(&tandem, None, 1, total).unwrap();
        let mut free = tandem.clone();
        free.crossings.iter_mut().for_each(|of| of.link = None);
        free.servers.iter_mut().for_each(|of| of.link = None);
        let free = longest_delay(&free, None, 32, total).unwrap();
        prop_assert!(at_most(plain, fewer) && at_most(plain, free), "{} {} {}", plain, fewer, free);
        if tandem.servers.len() == 1 {
            prop_assert!((tighter - total).abs() <= 1e-6 * total, "{} {}", tighter, total);
        }
    }
}

#[test]
fn a_solver_failure_is_an_error() {
    // The load of each server exceeds its rate, so no constraint limits the delay. The program is unbounded.
    let tandem = Tandem {
        servers: vec![server(1.0, 0.0, None); 2],
        links: Vec::new(),
        crossings: vec![crossing(2.0, 1.0, 0, 1)],
    };
    assert_eq!(longest_delay(&tandem, None, 32, 1.0), Err(SolverError::Unbounded));
    // A negative delay contradicts the order of moments.
    let delays = Delays { servers: vec![-1.0, 1.0], crossings: vec![None] };
    assert_eq!(longest_delay(&tandem, Some(&delays), 32, 1.0), Err(SolverError::Infeasible));
    assert!(matches!(longest_delay(&tandem, None, 32, f64::NAN), Err(SolverError::Failed(_))));
}
