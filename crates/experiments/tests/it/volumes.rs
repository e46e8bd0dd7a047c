//! Volume experiments: a seed always gives the same draws, and the number of threads that read traces changes no
//! result.

use leeward_experiments::{
    CacheShape, Draw, Enforcement, ExperimentError, PackingResult, Part, ReplaySettings, Shape, TailSettings,
    TraceSettings, Traces, admit, bounds_of_all, draws, first_fit, fits_alone, links, pack, peaks, replay,
    tails, visits,
};
use leeward_fabric::Nanos;
use leeward_fabric::input::Text;
use leeward_slo::bound::{BoundSettings, Method};
use leeward_slo::pack::PackSettings;
use leeward_traces::Stage;
use leeward_traces::device::Device;
use leeward_traces::synthetic::Sizes;
use proptest::prelude::*;

const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}]}"#;
const SHAPE: Shape = Shape { clients: 4, slots: None, servers: 30, devices: 1, bytes: 125e6 };

/// One trace of a minute for each size in `bursts`. A burst of that many requests, 10 ms apart, starts every second.
fn traces(bursts: &[u64], threads: usize) -> Traces {
    let steady: Vec<[u64; 2]> = bursts.iter().map(|&burst| [burst; 2]).collect();
    growing(&steady, threads)
}

/// Traces of the same kind, with different bursts in each half.
fn growing(bursts: &[[u64; 2]], threads: usize) -> Traces {
    let file = |(index, &halves): (usize, &[u64; 2])| {
        let rows = (0..60)
            .flat_map(|second| (0..halves[usize::from(second >= 30)]).map(move |number| (second, number)));
        let row = |(second, number): (u64, u64)| format!("{}.{:03},read,4096\n", second, number * 10);
        let text: String = std::iter::once("seconds,kind,size\n".to_owned()).chain(rows.map(row)).collect();
        let name = format!("t{index}.csv");
        (name.clone(), Text::from_bytes(&name, text.into_bytes()).unwrap())
    };
    let files = bursts.iter().enumerate().map(file).collect();
    Traces::read(files, Device::from_text("ssd", DEVICE).unwrap(), TraceSettings::default(), threads).unwrap()
}

/// Moves each draw to the start of its trace. A draw with a later start wraps around the end of the trace, and no curve
/// contains the requests around the wrap.
fn from_the_start(draws: Vec<Draw>) -> Vec<Draw> {
    draws.into_iter().map(|draw| Draw { start: 0.0, ..draw }).collect()
}

fn packed(traces: &Traces, draws: &[Draw], limits: &str) -> PackingResult {
    let settings = PackSettings { limits: limits.to_owned(), ..PackSettings::default() };
    pack(traces, Part::Whole, draws, None, &SHAPE, &settings, "").unwrap()
}

proptest! {
    #[test]
    fn a_larger_draw_starts_with_the_smaller_one(seed: u64, few in 0_usize..20, more in 0_usize..20) {
        let from = [(0, 0.1), (1, 0.25), (2, 1.0)];
        let (all, some) = (draws(seed, few + more, &from).unwrap(), draws(seed, few, &from).unwrap());
        prop_assert_eq!(&all[..few], &some[..]);
        for draw in all {
            prop_assert!(from.contains(&(draw.trace, draw.slo)));
            prop_assert!((0.0..1.0).contains(&draw.start));
        }
        let (all, some) = (links(seed, few + more, 3, 2).unwrap(), links(seed, few, 3, 2).unwrap());
        prop_assert_eq!(&all[..few], &some[..]);
        prop_assert!(all.iter().all(|&(client, server)| client < 3 && server < 2));
    }

    #[test]
    fn every_visitor_arrives_once_and_then_leaves_once(seed: u64, count in 0_usize..30, stay in 0.01..2.0f64) {
        let events = visits(seed, count, stay).unwrap();
        prop_assert_eq!(events.len(), 2 * count);
        for index in 0..count {
            let own: Vec<bool> = events.iter().filter(|event| event.0 == index).map(|event| event.1).collect();
            prop_assert_eq!(own, vec![true, false]);
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_the_traces() {
    let bursts = [1, 5, 20, 40, 3, 8, 30];
    let (one, many) = (traces(&bursts, 1), traces(&bursts, 5));
    let drawn = draws(7, 12, &[(0, 0.5), (2, 0.5), (3, 1.0), (6, 0.5)]).unwrap();
    for limits in ["compactor", "effective-bandwidth", "knee"] {
        assert_eq!(packed(&one, &drawn, limits), packed(&many, &drawn, limits), "{limits}");
    }
}

#[test]
fn every_limit_policy_places_all_draws() {
    let traces = traces(&[2, 10, 25], 2);
    let drawn = draws(1, 10, &[(0, 0.5), (1, 0.5), (2, 0.5)]).unwrap();
    let all: Vec<usize> = (0..10).collect();
    for limits in ["compactor", "effective-bandwidth", "knee", "average"] {
        let packed = packed(&traces, &drawn, limits);
        assert_eq!(packed.refused, []);
        assert_eq!(packed.placed, all, "{limits}");
        for (promise, draw) in packed.system.promises.iter().zip(&drawn) {
            assert_eq!(promise.workload.slo.unwrap().latency, draw.slo);
        }
    }
}

#[test]
fn workloads_that_fit_alone_are_exactly_those_placed_alone() {
    // Each read takes 1 ms, and reads are 10 ms apart. An SLO of 1 ms is too short, because the margin raises the time
    // of a read to 1.1 ms.
    let traces = traces(&[1, 40], 1);
    let settings = PackSettings::default();
    for (slo, fits) in [(0.001, false), (0.5, true)] {
        let fitting = fits_alone(&traces, Part::Whole, slo, &SHAPE, &settings, "").unwrap();
        assert_eq!(fitting, [fits; 2], "{slo} s");
        let alone = [Draw { trace: 1, start: 0.0, slo }];
        let packed = pack(&traces, Part::Whole, &alone, None, &SHAPE, &settings, "").unwrap();
        assert_eq!(packed.placed.len(), usize::from(fits));
        assert_eq!(packed.refused.len(), usize::from(!fits));
    }
}

#[test]
fn after_all_departures_no_server_is_used_and_the_peak_is_recorded() {
    let traces = traces(&[20, 30], 1);
    let drawn = draws(3, 8, &[(0, 0.1), (1, 0.1)]).unwrap();
    let (steps, settings) = (visits(3, 8, 0.5).unwrap(), PackSettings::default());
    let visited = pack(&traces, Part::Whole, &drawn, Some(&steps), &SHAPE, &settings, "").unwrap();
    assert_eq!((visited.servers, visited.placed.len()), (0, 0));
    let stayed = packed(&traces, &drawn, "compactor");
    assert!(visited.most >= 1 && visited.most <= stayed.most, "{} of {}", visited.most, stayed.most);
    assert_eq!(stayed.most, stayed.servers);
}

#[test]
fn packed_workloads_meet_their_slos_in_a_replay_of_the_same_part() {
    let traces = traces(&[5, 20, 35], 2);
    let drawn = from_the_start(draws(5, 9, &[(0, 0.3), (1, 0.3), (2, 0.3)]).unwrap());
    let packed = packed(&traces, &drawn, "compactor");
    let outcomes =
        replay(&traces, Part::Whole, &drawn, &packed.placed, &packed.system, ReplaySettings::default())
            .unwrap();
    assert_eq!(outcomes.len(), 9);
    for (outcome, draw) in outcomes.iter().zip(&drawn) {
        let requests = [300, 1200, 2100][draw.trace];
        assert_eq!((outcome.requests, outcome.late, outcome.met), (requests, 0, outcome.windows));
        assert!(outcome.tail <= outcome.slo && outcome.largest <= outcome.slo);
    }
}

#[test]
fn first_fit_without_fifo_needs_no_fewer_servers() {
    let traces = traces(&[5, 20, 35], 2);
    let drawn = draws(5, 24, &[(0, 0.02), (1, 0.02), (2, 0.02)]).unwrap();
    let servers = |settings: &str| {
        let packed = first_fit(&traces, Part::Whole, &drawn, &SHAPE, 0.0, "dnc", settings).unwrap();
        assert_eq!((packed.placed.len(), packed.refused.len()), (24, 0));
        packed.servers
    };
    let fluid = r#"{"bounds": {"unit": "fluid"}}"#;
    let published =
        r#"{"method": "priority-meister", "search": false, "bounds": {"unit": "fluid", "fifo": false}}"#;
    assert!(servers(fluid) >= 2 && servers(published) >= servers(fluid));
    let few = Shape { servers: 1, ..SHAPE };
    let packed = first_fit(&traces, Part::Whole, &drawn, &few, 0.0, "dnc", fluid).unwrap();
    assert_eq!(packed.servers, 1);
    assert!(packed.refused.iter().all(|(_, why)| why == "every server is in use"), "{:?}", packed.refused);
}

#[test]
fn only_enforced_limits_delay_a_workload_that_outgrows_them() {
    // The second half has more than twice the requests of the first half, but fewer than the device can serve.
    let traces = growing(&[[40, 90]], 1);
    let drawn = [Draw { trace: 0, start: 0.0, slo: 1.0 }];
    let settings = PackSettings::default();
    let packed = pack(&traces, Part::First, &drawn, None, &SHAPE, &settings, "").unwrap();
    let late = [Enforcement::Enforced, Enforcement::Demoted, Enforcement::Unlimited].map(|enforcement| {
        let settings = ReplaySettings { enforcement, packet: None };
        let outcomes =
            replay(&traces, Part::Second, &drawn, &packed.placed, &packed.system, settings).unwrap();
        outcomes[0].late
    });
    assert!(late[0] > 1000, "{late:?}");
    assert_eq!(late[1..], [0, 0]);
}

#[test]
fn admitted_workloads_meet_their_slos_and_no_bound_admits_all() {
    let traces = traces(&[5, 20, 60], 1);
    let drawn = from_the_start(draws(2, 20, &[(0, 0.05), (1, 0.1), (2, 0.2)]).unwrap());
    let shape = Shape { clients: 2, servers: 1, bytes: 1e6, ..SHAPE };
    let links = links(2, 20, 2, 1).unwrap();
    let admit_under = |policy: &str| {
        admit(
            &traces,
            Part::First,
            &drawn,
            &links,
            &shape,
            &[Stage::NetworkIn, Stage::NetworkOut],
            policy,
            "",
            None,
        )
        .unwrap()
    };
    let (none, dnc) = (admit_under("none"), admit_under("dnc"));
    assert_eq!(none.admitted.len(), 20);
    assert!(!dnc.admitted.is_empty() && dnc.admitted.len() < 20, "{}", dnc.admitted.len());
    // The second half is like the first.
    let outcomes =
        replay(&traces, Part::Second, &drawn, &dnc.admitted, &dnc.system, ReplaySettings::default()).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.met == outcome.windows && outcome.windows > 0));
    let late = replay(&traces, Part::Second, &drawn, &none.admitted, &none.system, ReplaySettings::default())
        .unwrap();
    assert!(late.iter().any(|outcome| outcome.met < outcome.windows));
}

#[test]
fn invalid_experiments_are_rejected_with_the_problem() {
    let traces = traces(&[5], 1);
    let strange = [Draw { trace: 1, start: 0.0, slo: 0.1 }];
    let settings = PackSettings::default();
    let error = pack(&traces, Part::Whole, &strange, None, &SHAPE, &settings, "").unwrap_err();
    assert_eq!(error.to_string(), "trace 1: there are 1 traces, numbered from 0");
    assert!(matches!(draws(1, 1, &[]), Err(ExperimentError::Draw { .. })));
    assert!(matches!(links(1, 1, 0, 1), Err(ExperimentError::Draw { .. })));
    assert!(matches!(visits(1, 1, f64::NAN), Err(ExperimentError::Draw { .. })));
    let empty = Text::from_bytes("one.csv", *b"seconds,kind,size\n0,read,4096\n").unwrap();
    let device = Device::from_text("ssd", DEVICE).unwrap();
    let one = Traces::read(vec![("one.csv".into(), empty)], device, TraceSettings::default(), 1);
    assert!(one.is_err_and(|error| error.to_string().starts_with("trace one.csv: fewer than two requests")));
}

/// Synthetic cache traces of five minutes.
fn caches(seed: u64, count: u64) -> Traces {
    let shape = CacheShape::of(300.0);
    let drawn = (0..count).map(|index| (format!("c{index}"), shape.draw(seed, index).unwrap())).collect();
    Traces::of(drawn, Device::from_text("ssd", DEVICE).unwrap(), TraceSettings::default(), 1).unwrap()
}

fn draws_of(traces: std::ops::Range<usize>) -> Vec<Draw> {
    traces.map(|trace| Draw { trace, start: 0.3, slo: 0.05 }).collect()
}

#[test]
fn drawn_cache_traces_match_the_thesis() {
    let shape = CacheShape::of(600.0);
    let (mut requests, mut bytes) = (0.0, 0.0);
    for index in 0..20 {
        let trace = shape.draw(3, index).unwrap();
        assert_eq!(trace, shape.draw(3, index).unwrap(), "the same on every run");
        assert!(trace.is_sorted_by_key(|request| request.at));
        assert!(trace.iter().all(|request| request.size <= 256 << 10 && request.size > 0));
        // The thesis has 100 to 600 thousand requests in half an hour. This trace is a third as long.
        assert!((30e3..200e3).contains(&(trace.len() as f64)), "{}", trace.len());
        requests += trace.len() as f64;
        bytes += trace.iter().map(|request| request.size as f64).sum::<f64>();
    }
    assert!((22e3..34e3).contains(&(bytes / requests)), "{} bytes on average", bytes / requests);
    let traces = caches(3, 20);
    let (each, all) = peaks(&traces, Part::Whole, &draws_of(0..20), Nanos::SECOND).unwrap();
    let ratios: Vec<f64> = each.iter().map(|peak| peak.requests / peak.mean_requests).collect();
    assert!(ratios.iter().all(|ratio| (1.5..7.0).contains(ratio)), "{ratios:?}");
    assert!(ratios.iter().any(|&ratio| ratio < 3.0) && ratios.iter().any(|&ratio| ratio > 4.0), "{ratios:?}");
    // All traces together are smoother than each alone. Their peak is at most the sum of all peaks.
    let sum: f64 = each.iter().map(|peak| peak.requests).sum();
    assert!(all.requests < 0.7 * sum && all.requests >= all.mean_requests, "{} of {sum}", all.requests);
}

#[test]
fn invalid_caches_and_windows_are_rejected() {
    let shape = CacheShape::of(60.0);
    let wrong = [
        CacheShape { seconds: f64::NAN, ..shape.clone() },
        CacheShape { seconds: 1e12, ..shape.clone() },
        CacheShape { burst: 0.0, ..shape.clone() },
        CacheShape { rate: (20.0, 10.0), ..shape.clone() },
        CacheShape { height: (0.0, 2.0), ..shape.clone() },
        CacheShape { sizes: Sizes::Choice(Vec::new()), ..shape },
    ];
    for shape in wrong {
        let error = shape.draw(1, 0).unwrap_err();
        assert!(matches!(error, ExperimentError::Draw { .. }), "{error}");
    }
    assert!(peaks(&traces(&[3], 1), Part::Whole, &draws_of(0..1), Nanos(10)).is_err());
}

#[test]
fn the_bipartite_bound_is_the_lowest_stochastic_bound_of_a_path() {
    let traces = caches(5, 6);
    let settings =
        TailSettings { bytes: 125e6, dependent: 0, excess: 1e-3, bounds: BoundSettings::default() };
    let compute =
        |draws: &[Draw], settings: &TailSettings| tails(&traces, Part::Whole, draws, settings).unwrap();
    let bounds = compute(&draws_of(0..6), &settings);
    let [bipartite, hop_by_hop, convolution] =
        [bounds.bipartite, bounds.hop_by_hop, bounds.convolution].map(Option::unwrap);
    assert!(bipartite <= hop_by_hop && bipartite <= convolution, "{bounds:?}");
    assert!(bounds.dnc.unwrap() > 0.0 && bounds.priority_meister.unwrap() > 0.0);
    let dependent = compute(&draws_of(0..6), &TailSettings { dependent: 6, ..settings });
    assert!(dependent.bipartite.unwrap() > bipartite && dependent.dnc == bounds.dnc);
    // A lower excess raises stochastic bounds. The deterministic bound does not depend on it.
    let rarer = compute(&draws_of(0..6), &TailSettings { excess: 1e-40, ..settings });
    assert!(rarer.bipartite.unwrap() > bipartite && rarer.dnc == bounds.dnc);
    for excess in [0.0, 1.0, f64::NAN] {
        assert!(tails(&traces, Part::Whole, &draws_of(0..1), &TailSettings { excess, ..settings }).is_err());
    }
    assert!(tails(&traces, Part::Whole, &[], &settings).is_err());
}

#[test]
fn replayed_tails_stay_below_bounds_by_models() {
    let traces = caches(7, 6);
    let drawn: Vec<Draw> =
        (0..6).map(|trace| Draw { trace, start: 0.1, slo: 0.02 * (1 + trace) as f64 }).collect();
    let shape = Shape { clients: 1, servers: 1, bytes: 50e6, ..SHAPE };
    let (links, stages) = (vec![(0, 0); 6], [Stage::NetworkIn, Stage::NetworkOut]);
    let bounds = |settings| {
        bounds_of_all(&traces, Part::Whole, &drawn, &links, &shape, &stages, Method::Snc, settings).unwrap()
    };
    let all = admit(&traces, Part::Whole, &drawn, &links, &shape, &stages, "none", "", None).unwrap();
    let free = ReplaySettings { enforcement: Enforcement::Unlimited, packet: Some(1500.0) };
    let outcomes = replay(&traces, Part::Whole, &drawn, &all.admitted, &all.system, free).unwrap();
    let (ours, steps) = (
        bounds(BoundSettings::default()),
        bounds(BoundSettings { blocks: false, ..BoundSettings::default() }),
    );
    for ((outcome, ours), steps) in outcomes.iter().zip(ours).zip(steps) {
        let (ours, steps) = (ours.unwrap(), steps.unwrap());
        assert!(outcome.tail <= ours && ours <= steps, "{} {ours} {steps}", outcome.tail);
    }
}

#[test]
fn only_a_replay_with_limits_delays_requests() {
    let traces = traces(&[40, 40], 1);
    let drawn = from_the_start(draws(2, 2, &[(0, 0.4), (1, 0.4)]).unwrap());
    let shape = Shape { clients: 1, servers: 1, bytes: 1e6, ..SHAPE };
    let links = links(2, 2, 1, 1).unwrap();
    let stages = [Stage::NetworkOut];
    let limited = admit(&traces, Part::Whole, &drawn, &links, &shape, &stages, "silo++", "", None).unwrap();
    assert_eq!(limited.admitted.len(), 2);
    let largest = |enforcement| {
        let settings = ReplaySettings { enforcement, packet: None };
        let outcomes =
            replay(&traces, Part::Whole, &drawn, &limited.admitted, &limited.system, settings).unwrap();
        outcomes.iter().map(|outcome| outcome.largest).fold(0.0, f64::max)
    };
    let (held, free) = (largest(Enforcement::Enforced), largest(Enforcement::Unlimited));
    assert!(held > 2.0 * free, "{held} and {free}");
}

#[test]
fn a_lower_slo_percentile_admits_no_fewer_workloads_by_models() {
    let traces = caches(9, 8);
    let drawn: Vec<Draw> =
        (0..16).map(|index| Draw { trace: index % 8, start: index as f64 / 16.0, slo: 0.02 }).collect();
    let shape = Shape { clients: 2, servers: 1, bytes: 60e6, ..SHAPE };
    let links = links(9, 16, 2, 1).unwrap();
    let count = |policy: &str, percentile| {
        let stages = [Stage::NetworkIn, Stage::NetworkOut];
        let admission =
            admit(&traces, Part::First, &drawn, &links, &shape, &stages, policy, "", percentile).unwrap();
        admission.admitted.len()
    };
    let (often, seldom) = (count("snc", Some(90.0)), count("snc", Some(99.999)));
    assert!(often > seldom, "{often} at 90 %, {seldom} at 99.999 %");
    assert_eq!(count("dnc", Some(90.0)), count("dnc", None));
}
