//! Bounds: monotonicity, validity, and rejected inputs.

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Analysis, Expressions, Latency, Network, NetworkError, Queue, Stage, Workload};
use proptest::prelude::*;

/// Relative tolerance for the search's own error.
const ROOM: f64 = 1e-6;

/// Two states that alternate. Mean sizes are 1, so the mean work is about half the sum of the rates.
fn bursty(calm: f64, busy: f64, leave: f64) -> Mmpp {
    let state =
        |requests| State { requests: Requests::Poisson(requests), sizes: Sizes::Exponential { mean: 1.0 } };
    let rows = [vec![1.0 - leave, leave], vec![leave, 1.0 - leave]];
    Mmpp::new(1.0, vec![state(calm), state(busy)], &rows, Sigma::Stationary).unwrap()
}

/// The same model with rarer requests and longer sojourns.
fn rarer(model: &Mmpp, scale: f64) -> Mmpp {
    let requests = |at: usize| model.states()[at].requests.mean() * scale;
    bursty(requests(0), requests(1), model.transition(0, 1) * scale)
}

fn model() -> impl Strategy<Value = Mmpp> {
    (0.01..0.1f64, 0.1..0.5f64, 1e-4..0.4f64).prop_map(|(calm, busy, leave)| bursty(calm, busy, leave))
}

/// The bound of one flow beside `cross`, at a server of `rate`. Workloads of one group are dependent.
fn bound_beside(own: &Mmpp, cross: &[Mmpp], groups: &[usize], rate: f64, percentile: f64) -> Latency {
    let mut arena = Expressions::new(1.0, groups.len()).unwrap();
    let mut leaves = Vec::new();
    for (model, &group) in std::iter::once(own).chain(cross).zip(groups) {
        let id = arena.model(model).unwrap();
        leaves.push(arena.arrivals(id, group).unwrap());
    }
    let mut service = arena.server(rate).unwrap();
    if let Some(cross) = arena.aggregate_all(&leaves[1..]) {
        service = arena.leftover(service, cross);
    }
    arena.latency(leaves[0], service, percentile).unwrap()
}

fn seconds(latency: Latency) -> f64 {
    latency.seconds().unwrap_or(f64::INFINITY)
}

proptest! {
    #[test]
    fn a_bound_falls_with_capacity_and_rises_with_percentile_and_cross_traffic(
        own in model(), cross in prop::collection::vec(model(), 1..5), rate in 0.6..4.0f64, p in 50.0..99.9f64,
    ) {
        let groups: Vec<usize> = (0..=cross.len()).collect();
        let bound = seconds(bound_beside(&own, &cross, &groups, rate, p));
        prop_assert!(!bound.is_nan() && bound > 0.0);
        let faster = seconds(bound_beside(&own, &cross, &groups, rate * 1.1, p));
        let laxer = seconds(bound_beside(&own, &cross, &groups, rate, p - 10.0));
        let alone = seconds(bound_beside(&own, &cross[1..], &groups[..cross.len()], rate, p));
        for (name, lower) in [("faster", faster), ("laxer", laxer), ("less cross traffic", alone)] {
            prop_assert!(lower <= bound * (1.0 + ROOM), "{name}: {lower} above {bound}");
        }
    }

    #[test]
    fn the_independent_form_is_never_above_the_dependent_one(
        own in model(), cross in prop::collection::vec(model(), 1..4), rate in 2.5..5.0f64, p in 50.0..99.9f64,
    ) {
        let apart: Vec<usize> = (0..=cross.len()).collect();
        let free = seconds(bound_beside(&own, &cross, &apart, rate, p));
        let some = seconds(bound_beside(&own, &cross, &[vec![0], vec![1; cross.len()]].concat(), rate, p));
        let all = seconds(bound_beside(&own, &cross, &vec![0; cross.len() + 1], rate, p));
        prop_assert!(free <= some * (1.0 + ROOM), "{free} above {some}");
        prop_assert!(some <= all * (1.0 + ROOM), "{some} above {all}");
        prop_assert!(all.is_finite(), "stable on average, so a bound exists for any dependence");
    }

    #[test]
    fn multiplexing_lowers_the_bound_below_equal_shares(
        one in model(), count in 2usize..12, p in 90.0..99.99f64,
    ) {
        let rate = 0.55;
        let alone = seconds(bound_beside(&one, &[], &[0], rate, p));
        let mut arena = Expressions::new(1.0, count).unwrap();
        let id = arena.model(&one).unwrap();
        let leaves: Vec<_> = (0..count).map(|group| arena.arrivals(id, group).unwrap()).collect();
        let all = arena.aggregate_all(&leaves).unwrap();
        let server = arena.server(rate * count as f64).unwrap();
        let together = arena.latency(all, server, p).unwrap().seconds().unwrap();
        // Backlogs are rate times wait. The backlog of all n flows is below n times the backlog of one flow.
        prop_assert!(together < alone, "{together} of {count} not below {alone}");
    }

    #[test]
    fn any_network_is_bounded_or_named_unstable_and_the_same_on_every_run(
        models in prop::collection::vec(model(), 2..8),
        places in prop::collection::vec((0usize..3, 0usize..3, 0u32..3, any::<bool>()), 8),
        rate in 0.2..3.0f64,
    ) {
        let (queues, workloads) = bipartite(&models, &places, rate);
        for analysis in [Analysis::Bipartite, Analysis::HopByHop, Analysis::Convolution] {
            let bounds = Network::new(&queues, &workloads).unwrap().bounds(analysis);
            let again = Network::new(&queues, &workloads).unwrap().bounds(analysis);
            prop_assert_eq!(&bounds, &again);
            for bound in bounds {
                match bound.stages[0] {
                    Latency::Bounded(tail) => {
                        prop_assert!(tail.seconds.is_finite() && tail.seconds > 0.0 && tail.theta > 0.0);
                        prop_assert_eq!(bound.seconds, Some(tail.seconds));
                    }
                    Latency::Unstable(unstable) => {
                        prop_assert!(unstable.load >= unstable.service, "{unstable}");
                        prop_assert_eq!(bound.seconds, None);
                    }
                }
            }
        }
    }

    #[test]
    fn lyapunov_never_loosens_a_bound(
        models in prop::collection::vec(model(), 2..6),
        places in prop::collection::vec((0usize..2, 0usize..2, 0u32..3, any::<bool>()), 8),
    ) {
        let (queues, workloads) = bipartite(&models, &places, 3.0);
        let mut network = Network::new(&queues, &workloads).unwrap();
        let plain = network.bounds(Analysis::Bipartite);
        network.set_lyapunov(true);
        for (plain, tight) in plain.iter().zip(network.bounds(Analysis::Bipartite)) {
            prop_assert!(tight.seconds.unwrap() <= plain.seconds.unwrap());
        }
    }

    #[test]
    fn blocks_never_loosen_a_bound_and_short_steps_gain_by_them(
        models in prop::collection::vec(model(), 2..6),
        places in prop::collection::vec((0usize..2, 0usize..2, 0u32..3, Just(false)), 8),
        short in 0usize..3,
    ) {
        // The same traffic in steps of a tenth or a hundredth of the length: rates per step shrink with the step,
        // request sizes stay.
        let scale = [1.0, 0.1, 0.01][short];
        let models: Vec<Mmpp> = models.iter().map(|model| rarer(model, scale)).collect();
        let (queues, workloads) = bipartite(&models, &places, 3.0 * scale);
        let mut network = Network::new(&queues, &workloads).unwrap();
        let plain = network.bounds(Analysis::Bipartite);
        network.set_blocks(true);
        for (plain, tight) in plain.iter().zip(network.bounds(Analysis::Bipartite)) {
            let (plain, tight) = (plain.seconds.unwrap(), tight.seconds.unwrap());
            prop_assert!(tight <= plain * (1.0 + ROOM), "{tight} above {plain}");
            if short == 2 {
                prop_assert!(tight < 0.9 * plain, "{tight} of {plain}");
            }
        }
    }

    #[test]
    fn the_exact_m_m_1_quantile_is_below_its_bound(
        load in 0.05..0.95f64,
        nines in 1.0..6.0f64,
    ) {
        // A single state in short steps is nearly an M/M/1 queue. Its unfinished work is above x with probability load
        // exp(-(1 - load) x).
        let (step, excess) = (1e-3, 10f64.powf(-nines));
        let state = State { requests: Requests::Poisson(load * step), sizes: Sizes::Exponential { mean: 1.0 } };
        let model = Mmpp::new(1.0, vec![state], &[vec![1.0]], Sigma::Stationary).unwrap();
        let mut arena = Expressions::new(1.0, 1).unwrap();
        let id = arena.model(&model).unwrap();
        let (arrivals, server) = (arena.arrivals(id, 0).unwrap(), arena.server(step).unwrap());
        let mut bound = |on| {
            arena.set_blocks(on);
            seconds(arena.latency(arrivals, server, 100.0 * (1.0 - excess)).unwrap()) * step
        };
        let (plain, tight) = (bound(false), bound(true));
        let exact = ((load / excess).ln() / (1.0 - load)).max(0.0);
        prop_assert!(exact <= tight && tight <= plain, "{exact} {tight} {plain}");
        // exp(1) for arrivals within a block, and a tolerance for the union over blocks.
        prop_assert!(tight <= 1.6 * exact + 6.0 * (1.0 + (1.0 / (1.0 - load)).ln()) / (1.0 - load), "{exact} {tight}");
    }

    #[test]
    fn with_lyapunov_a_dependency_never_lowers_a_bound_of_a_network(
        models in prop::collection::vec(model(), 3..6),
        places in prop::collection::vec((0usize..2, 0usize..2, 0u32..3, any::<bool>()), 8),
    ) {
        let (queues, mut workloads) = bipartite(&models, &places, 4.0);
        let mut dependent = Network::new(&queues, &workloads).unwrap();
        workloads.iter_mut().for_each(|workload| workload.dependencies.clear());
        let mut free = Network::new(&queues, &workloads).unwrap();
        dependent.set_lyapunov(true);
        free.set_lyapunov(true);
        let (free, dependent) = (free.bounds(Analysis::Bipartite), dependent.bounds(Analysis::Bipartite));
        for (free, dependent) in free.iter().zip(&dependent) {
            let (free, dependent) = (free.seconds.unwrap(), dependent.seconds.unwrap());
            prop_assert!(free <= dependent * (1.0 + 1e-3), "{free} above {dependent}");
        }
    }

    #[test]
    fn the_bound_of_a_whole_path_is_never_above_the_sum_of_its_queues(
        models in prop::collection::vec(model(), 2..6),
        places in prop::collection::vec((0usize..2, 0usize..2, Just(0u32), Just(false)), 8),
    ) {
        // All priorities differ; the comparisons hold only then.
        let (queues, mut workloads) = bipartite(&models, &places, 4.0);
        for (at, workload) in workloads.iter_mut().enumerate() {
            workload.priority = at as u32;
        }
        let mut network = Network::new(&queues, &workloads).unwrap();
        // The highest priority shares its two queues with no other flow. One bound for both queues is below the union
        // bound over the two queues.
        let at_once = network.bound(0, Analysis::Bipartite).unwrap().seconds.unwrap();
        let in_turn = network.bound(0, Analysis::HopByHop).unwrap().seconds.unwrap();
        prop_assert!(at_once <= in_turn * (1.0 + ROOM), "{at_once} above {in_turn}");
    }
}

/// Three queues on each side. A workload depends on the previous one if its position requires it.
fn bipartite(
    models: &[Mmpp],
    places: &[(usize, usize, u32, bool)],
    rate: f64,
) -> (Vec<Queue>, Vec<Workload>) {
    let queue = |side: &str, at: usize| format!("{side}{at}");
    let queues = (0..3)
        .flat_map(|at| {
            ["s", "v"].map(|side| Queue { name: queue(side, at), rate, in_service: 0.0, latency: 0.0 })
        })
        .collect();
    let workload = |at: usize, model: &Mmpp| {
        let (first, second, priority, follows) = places[at];
        let dependencies = if follows && at > 0 { vec![format!("w{}", at - 1)] } else { vec![] };
        let stage = Stage {
            queues: vec![queue("s", first), queue("v", second)],
            arrivals: model.clone(),
            packet: 0.0,
        };
        Workload { name: format!("w{at}"), percentile: 99.0, priority, dependencies, stages: vec![stage] }
    };
    (queues, models.iter().enumerate().map(|(at, model)| workload(at, model)).collect())
}

#[test]
fn an_overload_is_an_error_with_its_load_and_never_a_number() {
    let own = bursty(0.4, 0.4, 0.1);
    for rate in [0.1, 0.399, 0.4] {
        let Latency::Unstable(unstable) = bound_beside(&own, &[], &[0], rate, 99.0) else {
            panic!("0.4 of work for a service of {rate} has no bound")
        };
        assert!((unstable.load - 0.4).abs() < 1e-12 && unstable.service == rate);
        assert!(unstable.to_string().contains("unstable"));
    }
    let bound = seconds(bound_beside(&own, &[], &[0], 0.4001, 99.0));
    assert!(bound.is_finite() && bound > 1e3, "close to capacity the bound is large: {bound}");
}

#[test]
fn a_workload_without_work_waits_only_for_others() {
    let idle = Mmpp::new(
        1.0,
        vec![State { requests: Requests::Poisson(0.0), sizes: Sizes::Exponential { mean: 0.0 } }],
        &[vec![1.0]],
        Sigma::Stationary,
    )
    .unwrap();
    let alone = seconds(bound_beside(&idle, &[], &[0], 1.0, 99.9));
    let crossed = seconds(bound_beside(&idle, &[bursty(0.1, 0.3, 0.1)], &[0, 1], 1.0, 99.9));
    assert!((0.0..1e-3).contains(&alone), "{alone}");
    assert!(crossed > 1.0, "{crossed}");
}

#[test]
fn empty_servers_in_sequence_are_the_slowest_of_them() {
    let model = bursty(0.05, 0.4, 0.1);
    let alone = seconds(bound_beside(&model, &[], &[0], 0.5, 99.0));
    let queues = [("a", 0.5), ("b", 0.7)].map(|(name, rate)| Queue {
        name: name.into(),
        rate,
        in_service: 0.0,
        latency: 0.0,
    });
    for path in [["a", "b"], ["b", "a"]] {
        let stage = Stage { queues: path.map(String::from).to_vec(), arrivals: model.clone(), packet: 0.0 };
        let workload = Workload {
            name: "w".into(),
            percentile: 99.0,
            priority: 0,
            dependencies: vec![],
            stages: vec![stage],
        };
        let mut network = Network::new(&queues, &[workload]).unwrap();
        assert_eq!(network.bound(0, Analysis::Bipartite).unwrap().seconds, Some(alone));
    }
}

#[test]
fn invalid_expressions_are_rejected_with_a_reason() {
    let reason = |error: &dyn std::error::Error| error.to_string();
    assert!(reason(&Expressions::new(0.0, 1).unwrap_err()).contains("step of 0 s"));
    let mut arena = Expressions::new(1.0, 1).unwrap();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(reason(&arena.server(rate).unwrap_err()).contains("must be positive and finite"));
    }
    let model = arena.model(&bursty(0.1, 0.2, 0.1)).unwrap();
    assert!(reason(&arena.arrivals(model, 1).unwrap_err()).contains("no workload group 1: there are 1"));
    let arrivals = arena.arrivals(model, 0).unwrap();
    let server = arena.server(1.0).unwrap();
    for percentile in [0.0, 100.0, -1.0, f64::NAN] {
        let error = arena.latency(arrivals, server, percentile).unwrap_err();
        assert!(reason(&error).contains("must be above 0 and below 100"));
    }
    let slow = Mmpp::new(
        2.0,
        vec![State { requests: Requests::Poisson(0.1), sizes: Sizes::Exponential { mean: 1.0 } }],
        &[vec![1.0]],
        Sigma::Zero,
    );
    assert!(
        reason(&arena.model(&slow.unwrap()).unwrap_err()).contains("steps of 2 s, others in steps of 1 s")
    );
}

#[test]
fn invalid_networks_are_rejected_with_a_reason() {
    type Change = fn(&mut Vec<Queue>, &mut Vec<Workload>);
    let table: [(Change, &str); 14] = [
        (|queues, _| queues[1].name = "s0".into(), "duplicate queue s0"),
        (|_, workloads| workloads[1].name = "w0".into(), "duplicate workload w0"),
        (|queues, _| queues[0].rate = 0.0, "queue s0: 0 work a second"),
        (|queues, _| queues[0].rate = f64::NAN, "queue s0: NaN work a second"),
        (|_, workloads| workloads[1].percentile = 0.0, "workload w1: percentile 0: must be"),
        (|_, workloads| workloads[1].percentile = 100.0, "workload w1: percentile 100: must be"),
        (|_, workloads| workloads[1].percentile = f64::NAN, "workload w1: percentile NaN: must be"),
        (|_, workloads| workloads[0].stages.clear(), "workload w0: no stage"),
        (|_, workloads| workloads[0].stages[0].queues.clear(), "workload w0, stage 0: 0 queues"),
        (|_, workloads| workloads[0].stages[0].queues[1] = "s0".into(), "workload w0, stage 0: 2 queues"),
        (|_, workloads| workloads[0].stages[0].queues[1] = "v9".into(), "queue v9 is not in the network"),
        (|_, workloads| workloads[1].stages[0].queues.reverse(), "form a cycle through queue"),
        (|_, workloads| workloads[1].dependencies = vec!["w7".into()], "w1: depends on w7, which is not"),
        (|_, workloads| workloads[1].dependencies = vec!["w1".into()], "w1: depends on itself"),
    ];
    let models = [bursty(0.1, 0.2, 0.1), bursty(0.1, 0.3, 0.1)];
    for (change, reason) in table {
        let (mut queues, mut workloads) = bipartite(&models, &[(0, 0, 0, false), (0, 0, 1, false)], 1.0);
        change(&mut queues, &mut workloads);
        let error: NetworkError = Network::new(&queues, &workloads).expect_err(reason);
        assert!(error.to_string().contains(reason), "{:?} does not say {reason:?}", error.to_string());
    }
    let (queues, workloads) = bipartite(&models, &[(0, 0, 0, false), (0, 0, 1, false)], 1.0);
    let mut network = Network::new(&queues, &workloads).unwrap();
    assert!(network.bound(2, Analysis::Bipartite).is_err());
    assert!(network.stage_bound(0, 1, 99.0, Analysis::Bipartite).is_err());
    assert!(network.stage_bound(0, 0, 100.0, Analysis::Bipartite).is_err());
    assert!(Network::new(&[], &[]).unwrap().bounds(Analysis::Bipartite).is_empty());
}

#[test]
fn cyclic_dependencies_are_one_group() {
    let models = vec![bursty(0.1, 0.2, 0.1); 3];
    let places = [(0, 0, 0, false), (0, 0, 1, false), (0, 0, 2, false)];
    let with = |dependencies: [&[&str]; 3]| {
        let (queues, mut workloads) = bipartite(&models, &places, 2.0);
        for (workload, names) in workloads.iter_mut().zip(dependencies) {
            workload.dependencies = names.iter().map(ToString::to_string).collect();
        }
        Network::new(&queues, &workloads).unwrap().bounds(Analysis::Bipartite)
    };
    let cycle = with([&["w1"], &["w2"], &["w0"]]);
    assert_eq!(cycle, with([&["w1", "w2"], &[], &[]]));
    assert_eq!(cycle, with([&[], &["w0"], &["w1"]]));
    assert!(cycle[2].seconds > with([&[], &[], &[]])[2].seconds);
}

#[test]
fn coarse_bounds_are_at_most_30_percent_above_the_least() {
    let models = [bursty(0.1, 0.2, 0.1), bursty(0.1, 0.3, 0.1), bursty(0.2, 0.1, 0.1)];
    let places = [(0, 0, 0, false), (0, 0, 1, false), (1, 0, 2, false), (1, 0, 3, false)];
    let (queues, workloads) = bipartite(&models, &places, 2.0);
    let mut network = Network::new(&queues, &workloads).unwrap();
    let least = network.bounds(Analysis::Bipartite);
    network.set_coarse(true);
    for (coarse, least) in network.bounds(Analysis::Bipartite).into_iter().zip(least) {
        let (coarse, least) = (coarse.seconds.unwrap(), least.seconds.unwrap());
        assert!(coarse >= least && coarse <= 1.3 * least, "{coarse} {least}");
    }
}
