//! Contention with recorded traces and with correlated gaps, and statistics of gaps.

use leeward_experiments::{
    ContentionExperiment, ContentionResult, DrawnContention, Scheduler, TraceSettings, Traces, WorkloadDraw,
    gaps,
};
use leeward_fabric::Nanos;
use leeward_traces::device::Device;
use leeward_traces::synthetic::{Bursts, Shape, Sizes, Synthetic};
use leeward_traces::{Kind, Request};
use proptest::prelude::*;

use super::contention::{DEVICE, experiment, member};

const MILLI: u64 = 1_000_000;

/// A read of 4 KiB, of 1 ms at the device.
fn read(millis: u64) -> Request {
    Request { at: Nanos(millis * MILLI), kind: Kind::Read, size: 4096, offset: None }
}

/// Ten seconds with a burst of reads, 2 ms apart, in each of them.
fn bursts(reads: u64) -> Vec<Request> {
    (0..10).flat_map(|second| (0..reads).map(move |number| read(second * 1000 + 2 * number))).collect()
}

fn recorded(name: &str, load: f64, trace: usize) -> WorkloadDraw {
    WorkloadDraw { recorded: Some(trace), ..member(name, 1.0, load, 1.0) }
}

fn with_traces(members: Vec<WorkloadDraw>, traces: &[Vec<Request>]) -> ContentionExperiment {
    ContentionExperiment { traces: traces.to_vec(), ..experiment(members) }
}

fn run(experiment: ContentionExperiment, seed: u64, scheduler: Scheduler) -> Vec<ContentionResult> {
    DrawnContention::new(experiment, seed).unwrap().run(scheduler).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_recorded_trace_has_its_load_and_conforms_to_the_bound_of_priority_meister(
        times in prop::collection::vec((0u64..20_000, prop::bool::ANY), 20..200),
        load in 0.05..0.4f64,
        seed: u64,
    ) {
        let mut requests: Vec<Request> = times
            .iter()
            .map(|&(time, large)| Request { size: if large { 65536 } else { 4096 }, ..read(time) })
            .collect();
        requests.sort_by_key(|request| request.at);
        prop_assume!(requests[0].at < requests[requests.len() - 1].at);
        let work: f64 = requests.iter().map(|one| if one.size == 4096 { 1e-3 } else { 4e-3 }).sum();
        let members = vec![recorded("w", load, 0), member("drawn", 1.0, 0.2, 3.0)];
        let experiment = with_traces(members, std::slice::from_ref(&requests));
        let results = run(experiment, seed, Scheduler::PriorityMeister);
        // Whole periods have exactly the load; the last one is cut.
        let expected = load * 60.0 / work * requests.len() as f64;
        let off = (results[0].requests as f64 - expected).abs();
        prop_assert!(off <= requests.len() as f64, "{} requests, expected {expected}", results[0].requests);
        for result in &results {
            let bound = result.bound.expect("the load is below the capacity of the device");
            prop_assert!(result.tails[1] <= bound + 1e-8, "{:?} s, {bound} s", result.tails);
        }
    }
}

#[test]
fn a_recorded_trace_starts_at_a_drawn_place_and_is_the_same_under_every_scheduler() {
    let traces = [bursts(20)];
    let drawn = DrawnContention::new(with_traces(vec![recorded("w", 0.5, 0)], &traces), 3).unwrap();
    let results = Scheduler::ALL.map(|scheduler| drawn.run(scheduler).unwrap().remove(0).requests);
    assert!(results.iter().all(|&requests| requests == results[0]), "{results:?}");
    let at_seed = |seed| run(with_traces(vec![recorded("w", 0.5, 0)], &traces), seed, Scheduler::BySlo);
    assert_eq!(at_seed(3), at_seed(3));
    assert_ne!(at_seed(3)[0].intervals, at_seed(4)[0].intervals);
    // At the recorded pace, each read of 1 ms ends before the next one comes. At 25 times that pace, reads queue.
    let [calm, dense] = [0.02, 0.5]
        .map(|load| run(with_traces(vec![recorded("w", load, 0)], &traces), 3, Scheduler::BySlo)[0].tails[1]);
    assert!(calm < 2e-3 && dense > 5e-3, "{calm} s, {dense} s");
}

#[test]
fn correlated_gaps_make_longer_queues_of_the_same_load_and_c2() {
    let drawn = |bursts| {
        let mut member = member("w", 1.0, 0.4, 14.0);
        member.traffic.bursts = bursts;
        run(experiment(vec![member]), 1, Scheduler::BySlo)[0].tails[1]
    };
    let correlated = drawn(Some(Bursts { height: 10.0, persistence: 0.8 }));
    assert!(correlated > 2.0 * drawn(None), "{correlated} s, {} s", drawn(None));
}

#[test]
fn invalid_recorded_traces_are_rejected() {
    let error = |member: WorkloadDraw, traces: &[Vec<Request>]| {
        DrawnContention::new(with_traces(vec![member], traces), 1).expect_err("an error").to_string()
    };
    assert_eq!(
        error(recorded("w", 0.1, 1), &[bursts(2)]),
        "workload w: recorded trace 1: there are 1, numbered from 0"
    );
    let problem = "expected requests at two times or more";
    for requests in [vec![], vec![read(1)], vec![read(1), read(1)]] {
        assert!(error(recorded("w", 0.1, 0), &[requests]).ends_with(problem));
    }
    let closed = WorkloadDraw { closed: Some(1), slo: None, ..recorded("w", 0.1, 0) };
    assert_eq!(
        error(closed, &[bursts(2)]),
        "workload w: a closed loop with a recorded trace: expected no trace"
    );
    assert!(error(recorded("w", 1e6, 0), &[bursts(2)]).contains("expected at most 20000000 requests"));
    assert_eq!(
        error(recorded("w", f64::NAN, 0), &[bursts(2)]),
        "workload w: a load of NaN: expected a share above 0"
    );
}

fn traces(requests: Vec<Request>) -> Traces {
    let device = Device::from_text("ssd", DEVICE).unwrap();
    Traces::of(vec![("t".into(), requests)], device, TraceSettings::default(), 1).unwrap()
}

#[test]
fn gaps_of_a_small_trace_match_a_count_by_hand() {
    // Gaps of 2, 2 and 996 ms, again and again: the mean is 1000 / 3 ms without the last one.
    let traces = traces((0..40).flat_map(|second| [0, 2, 4].map(|at| read(second * 1000 + at))).collect());
    let found = gaps(&traces, 0, Nanos(1000 * MILLI)).unwrap();
    assert_eq!(found.requests, 120);
    let mean = 39_004.0 / 119.0;
    let variance = (80.0 * (2.0f64 - mean).powi(2) + 39.0 * (996.0f64 - mean).powi(2)) / 119.0;
    assert!((found.c2 - variance / (mean * mean)).abs() < 1e-9, "{found:?}");
    assert!((found.median - 2.0 / mean).abs() < 1e-9, "{found:?}");
    // Every second has three requests, and a long gap comes after two short ones.
    assert_eq!(found.dispersion, 0.0);
    assert!((-0.6..-0.4).contains(&found.correlation), "{found:?}");
}

#[test]
fn gaps_of_a_poisson_stream_are_independent() {
    let shape = Shape {
        rate: 50.0,
        gap_c2: 1.0,
        bursts: None,
        sizes: Sizes::Choice(vec![(4096, 1.0)]),
        read_share: 1.0,
        sequential_share: 0.0,
        volume: 1 << 30,
    };
    let traces = traces(Synthetic::new(shape, 2).unwrap().take(20_000).collect());
    let found = gaps(&traces, 0, Nanos(1000 * MILLI)).unwrap();
    assert!((found.c2 - 1.0).abs() < 0.1 && found.correlation.abs() < 0.05, "{found:?}");
    assert!((found.dispersion - 1.0).abs() < 0.4, "{found:?}");
    assert!((found.median - f64::ln(2.0)).abs() < 0.05, "{found:?}");
}

#[test]
fn gaps_need_a_trace_and_two_windows() {
    let traces = traces(bursts(3));
    for (trace, window) in [(1, 1000), (0, 0), (0, 8000)] {
        assert!(gaps(&traces, trace, Nanos(window * MILLI)).is_err(), "{trace} {window}");
    }
}
