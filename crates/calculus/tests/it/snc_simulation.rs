//! Bounds against simulations of the same models: seeded, in discrete steps.
//!
//! The bound is on the stationary percentile. A finite run may exceed a tight bound, so the test requires at least
//! [`SHARE`] of [`RUNS`] runs to stay below.

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Analysis, Network, Queue, Stage, Workload};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RUNS: u64 = 20;
const SHARE: u64 = 19;
const STEPS: usize = 200_000;
const PERCENTILE: f64 = 99.0;

fn model(requests: [f64; 3], mean: f64, sigma: Sigma) -> Mmpp {
    let state =
        |requests| State { requests: Requests::Bernoulli(requests), sizes: Sizes::Exponential { mean } };
    let rows = [vec![0.98, 0.01, 0.01], vec![0.03, 0.95, 0.02], vec![0.0, 0.04, 0.96]];
    Mmpp::new(1.0, requests.map(state).to_vec(), &rows, sigma).unwrap()
}

/// Work of each step of one run.
fn arrivals(model: &Mmpp, random: &mut ChaCha8Rng) -> Vec<f64> {
    let pick = |random: &mut ChaCha8Rng, shares: &dyn Fn(usize) -> f64| {
        let mut rest = random.random::<f64>();
        (0..model.states().len() - 1)
            .find(|&at| {
                rest -= shares(at);
                rest < 0.0
            })
            .unwrap_or(model.states().len() - 1)
    };
    let mut state = pick(random, &|at| model.stationary()[at]);
    (0..STEPS)
        .map(|_| {
            let now = &model.states()[state];
            let comes = random.random::<f64>() < now.requests.mean();
            let work = if comes { -now.sizes.mean() * (1.0 - random.random::<f64>()).ln() } else { 0.0 };
            let from = state;
            state = pick(random, &|at| model.transition(from, at));
            work
        })
        .collect()
}

/// Departures of flows from a queue that serves `rate` per step, in order of flow.
fn serve(flows: &[&[f64]], rate: f64) -> Vec<Vec<f64>> {
    let mut backlog = vec![0.0; flows.len()];
    let mut departures = vec![vec![0.0; STEPS]; flows.len()];
    for step in 0..STEPS {
        let mut capacity = rate;
        for (flow, arrivals) in flows.iter().enumerate() {
            backlog[flow] += arrivals[step];
            let served = f64::min(backlog[flow], capacity);
            departures[flow][step] = served;
            backlog[flow] -= served;
            capacity -= served;
        }
    }
    departures
}

/// The percentile of the time that work takes from its arrival to its departure, over all steps, or over the steps with
/// requests.
fn percentile(arrivals: &[f64], departures: &[f64], by_request: bool) -> f64 {
    let (mut arrived, mut departed, mut at) = (0.0, 0.0, 0);
    let mut delays = Vec::with_capacity(STEPS);
    for (step, work) in arrivals.iter().enumerate() {
        arrived += work;
        at = at.max(step);
        while departed + 1e-6 < arrived && at < STEPS {
            departed += departures[at];
            at += 1;
        }
        // A delay is the number of steps from the step of arrival to the last step of service.
        if *work > 0.0 || !by_request {
            delays.push(at.saturating_sub(step + 1) as f64);
        }
    }
    delays.sort_by(f64::total_cmp);
    delays[(delays.len() as f64 * PERCENTILE / 100.0) as usize]
}

fn check_bound(name: &str, bound: f64, run: impl Fn(&mut ChaCha8Rng) -> f64) {
    let delays: Vec<f64> = (0..RUNS).map(|seed| run(&mut ChaCha8Rng::seed_from_u64(seed))).collect();
    let below = delays.iter().filter(|&&delay| delay <= bound).count() as u64;
    let largest = delays.iter().copied().fold(0.0, f64::max);
    println!("{name}: bound {bound:.1}, {below} of {RUNS} runs below, the largest {largest}");
    assert!(below >= SHARE, "{name}: {below} of {RUNS} below {bound}: {delays:?}");
    assert!(largest > 0.0, "{name}: no run has any delay");
}

/// The tightest bound of the last flow, which has the lowest priority.
fn bound(queues: &[(&str, f64)], flows: &[(&[&str], &Mmpp)]) -> f64 {
    let queues: Vec<Queue> = queues
        .iter()
        .map(|&(name, rate)| Queue { name: name.into(), rate, in_service: 0.0, latency: 0.0 })
        .collect();
    let workloads: Vec<Workload> = flows
        .iter()
        .enumerate()
        .map(|(at, (path, model))| Workload {
            name: format!("w{at}"),
            percentile: PERCENTILE,
            priority: at as u32,
            dependencies: Vec::new(),
            stages: vec![Stage {
                queues: path.iter().map(ToString::to_string).collect(),
                arrivals: (*model).clone(),
                packet: 0.0,
            }],
        })
        .collect();
    let last = workloads.len() - 1;
    let mut network = Network::new(&queues, &workloads).unwrap();
    let plain = network.bound(last, Analysis::Bipartite).unwrap().seconds.unwrap();
    network.set_lyapunov(true);
    let tight = network.bound(last, Analysis::Bipartite).unwrap().seconds.unwrap();
    network.set_blocks(true);
    let blocks = network.bound(last, Analysis::Bipartite).unwrap().seconds.unwrap();
    println!("bounds {plain:.1}, by Lyapunov's inequality {tight:.1}, and over blocks {blocks:.1}");
    tight.min(blocks)
}

#[test]
fn a_queue_alone_stays_below_its_bound() {
    for (name, requests) in [("rising states", [0.1, 0.3, 0.9]), ("states in no order", [0.2, 0.9, 0.1])] {
        let model = model(requests, 1.0, Sigma::Stationary);
        for load in [0.5, 0.8] {
            let rate = model.mean() / load;
            let limit = bound(&[("q", rate)], &[(&["q"], &model)]);
            check_bound(&format!("{name} at {load}"), limit, |random| {
                let work = arrivals(&model, random);
                percentile(&work, &serve(&[&work], rate)[0], false)
            });
        }
    }
}

#[test]
fn a_path_with_cross_traffic_of_every_kind_stays_below_its_bound() {
    let sent = model([0.05, 0.2, 0.5], 1.0, Sigma::Stationary);
    // Flow x shares the path, y shares the first queue only, z comes from another first queue, and w is the analysed
    // flow.
    let (x, y, z, w) = (&sent, &sent, &sent, &sent);
    let rate = sent.mean() * 3.0 / 0.75;
    let paths: [&[&str]; 4] = [&["s1", "v1"], &["s1", "v2"], &["s2", "v1"], &["s1", "v1"]];
    let limit = bound(
        &[("s1", rate), ("s2", rate), ("v1", rate), ("v2", rate)],
        &[(paths[0], x), (paths[1], y), (paths[2], z), (paths[3], w)],
    );
    check_bound("two queues", limit, |random| {
        let [x, y, z, w] = [x, y, z, w].map(|model| arrivals(model, random));
        let first = serve(&[&x, &y, &w], rate);
        let other = serve(&[&z], rate);
        let second = serve(&[&first[0], &other[0], &first[2]], rate);
        percentile(&w, &second[2], false)
    });
}

#[test]
fn a_path_in_short_steps_stays_below_its_bound_over_blocks() {
    for requests in [[0.002, 0.008, 0.02], [0.005, 0.02, 0.002]] {
        let sent = model(requests, 1.0, Sigma::Stationary);
        let rate = sent.mean() * 3.0 / 0.6;
        let paths: [&[&str]; 4] = [&["s1", "v1"], &["s1", "v2"], &["s2", "v1"], &["s1", "v1"]];
        let queues = [("s1", rate), ("s2", rate), ("v1", rate), ("v2", rate)];
        let limit = bound(&queues, &paths.map(|path| (path, &sent)));
        check_bound("two queues, short steps", limit, |random| {
            let [x, y, z, w] = [(); 4].map(|()| arrivals(&sent, random));
            let first = serve(&[&x, &y, &w], rate);
            let other = serve(&[&z], rate);
            let second = serve(&[&first[0], &other[0], &first[2]], rate);
            percentile(&w, &second[2], false)
        });
    }
}

#[test]
fn three_queues_with_mixed_cross_traffic_stay_below_their_bound() {
    let sent = model([0.05, 0.2, 0.5], 1.0, Sigma::Stationary);
    let models = [&sent; 6];
    let rate = sent.mean() * 4.0 / 0.7;
    // The flows cross, in order: the whole path; its first two queues; its last two queues; another queue, then the
    // last queue; the second queue alone; the whole path (the analysed flow).
    let paths: [&[&str]; 6] =
        [&["a", "b", "c"], &["a", "b", "d"], &["b", "c"], &["e", "c"], &["b"], &["a", "b", "c"]];
    let queues =
        ["a", "b", "c", "d", "e"].map(|name| (name, if name == "b" { 5.0 / 4.0 * rate } else { rate }));
    let flows: Vec<(&[&str], &Mmpp)> = paths.into_iter().zip(models).collect();
    let limit = bound(&queues, &flows);
    check_bound("three queues", limit, |random| {
        let [whole, first, last, elsewhere, alone, own] = models.map(|model| arrivals(model, random));
        let a = serve(&[&whole, &first, &own], rate);
        let b = serve(&[&a[0], &a[1], &last, &alone, &a[2]], 5.0 / 4.0 * rate);
        let e = serve(&[&elsewhere], rate);
        let c = serve(&[&b[0], &b[2], &e[0], &b[4]], rate);
        percentile(&own, &c[3], false)
    });
}

#[test]
fn rare_requests_stay_below_their_bound_by_request() {
    let state = State { requests: Requests::Bernoulli(1e-3), sizes: Sizes::Exponential { mean: 1.0 } };
    let rare = Mmpp::new(1.0, vec![state], &[vec![1.0]], Sigma::Stationary).unwrap();
    let (rate, stage) =
        (0.02, |model: &Mmpp| Stage { queues: vec!["q".into()], arrivals: model.clone(), packet: 0.0 });
    let workload = Workload {
        name: "w".into(),
        percentile: PERCENTILE,
        priority: 0,
        dependencies: Vec::new(),
        stages: vec![stage(&rare)],
    };
    let mut network =
        Network::new(&[Queue { name: "q".into(), rate, in_service: 0.0, latency: 0.0 }], &[workload])
            .unwrap();
    let over_time = network.bound(0, Analysis::Bipartite).unwrap().seconds.unwrap();
    network.set_by_request(true);
    let by_request = network.bound(0, Analysis::Bipartite).unwrap().seconds.unwrap();
    assert!(by_request > over_time, "{by_request} not above {over_time}");
    check_bound("rare requests", by_request, |random| {
        let work = arrivals(&rare, random);
        percentile(&work, &serve(&[&work], rate)[0], true)
    });
}
