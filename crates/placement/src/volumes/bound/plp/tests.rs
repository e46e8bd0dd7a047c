//! Tandems against values by hand, and against those of the author's own program (`golden/qos/peers_panco_tandem.json`).

#[path = "../../../../../calculus/tests/shared/mod.rs"]
#[allow(dead_code, reason = "each test uses some of it")]
mod shared;

use leeward_calculus::{ArrivalCurve, Crossing, RateLatency, Server, ServiceCurve, Tandem, TokenBucket};
use leeward_solver::SolverError;
use serde_json::Value;
use shared::{each, number};

use super::program::{Delays, longest};

fn server(rate: f64, latency: f64, link: Option<TokenBucket>) -> Server {
    let service: ServiceCurve = RateLatency::new(rate, latency).unwrap().into();
    Server { ends: service.clone(), passes_on: service, link }
}

fn crossing(rate: f64, burst: f64, first: usize, last: usize) -> Crossing {
    let arrivals: ArrivalCurve = TokenBucket::new(rate, burst).unwrap().into();
    Crossing { arrivals, first, last, link: None }
}

/// Total flow analysis, separated flow analysis, PLP and PLP++, for the first crossing.
fn analyses(tandem: &Tandem) -> [f64; 4] {
    let servers = tandem.total_flow().unwrap();
    let crossings = tandem.separated_flow();
    let (total, separated) = (servers.iter().sum::<f64>(), crossings[0].unwrap());
    let plain = longest(tandem, None, 32, total).unwrap();
    let tighter = longest(tandem, Some(&Delays { servers, crossings }), 32, total).unwrap();
    [total, separated, plain, tighter]
}

#[test]
fn two_servers_are_as_by_hand() {
    // 0 to 1 twice, 0, 1; a half of each server, and nothing limits what passes from one to the other.
    let rate = 5.0 / 3.0;
    let crossings = [(0, 1), (0, 1), (0, 0), (1, 1)].map(|(first, last)| crossing(rate, 1.0, first, last));
    let servers = vec![server(10.0, 0.1, None); 2];
    let tandem = Tandem { servers, links: Vec::new(), crossings: crossings.to_vec() };
    // 0.1 + 3 / 10, and 0.1 + (3 + 2 x 0.4 x 5 / 3) / 10.
    let by_queue = 0.4 + 0.4 + 2.0 * 0.4 * rate / 10.0;
    // 0.1 + 2 / 10; what comes then: 1 of the last, 1 + 0.3 x 5 / 3 of the other; and the own burst at 10 less two.
    let by_flow = 0.3 + (0.1 + (2.0 + 0.3 * rate) / 10.0) + 1.0 / (10.0 - 2.0 * rate);
    for (found, expected) in analyses(&tandem).into_iter().zip([by_queue, by_flow, 0.68, 0.633_333_333_333]) {
        assert!((found - expected).abs() < 1e-8, "{found}, expected {expected}");
    }
}

#[test]
fn tandems_are_as_the_author_of_the_program_has_them() {
    let Some(folder) = shared::folder() else { return };
    let given = shared::json(folder.join("peers_panco_tandem.json"));
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
        // The delays of queues that it sums, and tells the program, are of six digits.
        let digits = [("TFA", 2e-6), ("SFA", 1e-6), ("PLP", 1e-8), ("PLP++", 1e-6)];
        for (found, (name, digits)) in analyses(&tandem).into_iter().zip(digits) {
            let expected = number(&given[name]);
            let of = &given["name"];
            assert!((found / expected - 1.0).abs() < digits, "{of} {name}: {found}, expected {expected}");
            compared += 1;
        }
    }
    println!("{compared} values");
    assert!(compared >= 80);
}

#[test]
fn what_the_solver_cannot_do_is_an_error() {
    // Nothing delays what comes to a server that gives less than comes, so the end may be as late as one likes.
    let tandem = Tandem {
        servers: vec![server(1.0, 0.0, None); 2],
        links: Vec::new(),
        crossings: vec![crossing(2.0, 1.0, 0, 1)],
    };
    assert_eq!(longest(&tandem, None, 32, 1.0), Err(SolverError::Unbounded));
    // A delay below nothing contradicts the order of moments.
    let delays = Delays { servers: vec![-1.0, 1.0], crossings: vec![None] };
    assert_eq!(longest(&tandem, Some(&delays), 32, 1.0), Err(SolverError::Infeasible));
    assert!(matches!(longest(&tandem, None, 32, f64::NAN), Err(SolverError::Failed(_))));
}
