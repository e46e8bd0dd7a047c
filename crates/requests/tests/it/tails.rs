//! Times without queueing, drawn from a profile and replayed.

use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::Nanos;
use leeward_requests::{Arrival, OverLimit, Replay, Scheduling, tails};
use leeward_slo::bound::{BoundSettings, Method};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_traces::device::Device;
use leeward_traces::{Kind, Stage};

/// Half of all reads take up to 1 ms, 99 of a hundred take up to 4 ms, and the slowest thousandth takes up to 20 ms.
const PROFILE: &str = r#"{
  "table": [{"size_bytes": 4096, "read_iops": 10000, "write_iops": 10000}],
  "unloaded": [
    {"kind": "read", "size_bytes": 4096, "percentile": 50, "seconds": 0.001},
    {"kind": "read", "size_bytes": 4096, "percentile": 99, "seconds": 0.004},
    {"kind": "read", "size_bytes": 4096, "percentile": 99.9, "seconds": 0.02},
    {"kind": "write", "size_bytes": 4096, "percentile": 99.9, "seconds": 0.02}
  ],
  "outstanding_reads": 10
}"#;
const WORK: f64 = 1e-4;
const REQUESTS: u64 = 20_000;

fn device(text: &str) -> Device {
    Device::from_text("device.json", text).unwrap()
}

/// Reads that never overlap.
fn apart() -> Arc<[Arrival]> {
    let read = |index| Arrival {
        at: Nanos(index * 30_000_000),
        kind: Kind::Read,
        size: 4096,
        offset: None,
        work: [0.0, WORK, 0.0],
    };
    (0..REQUESTS).map(read).collect()
}

#[test]
fn draws_match_the_profile_and_depend_only_on_seed_and_number() {
    let (sent, device) = (apart(), device(PROFILE));
    let drawn = tails(&sent, &device, 7, 0).unwrap().unwrap();
    assert_eq!(drawn, tails(&sent, &device, 7, 0).unwrap().unwrap());
    assert_ne!(drawn, tails(&sent, &device, 7, 1).unwrap().unwrap());
    assert_ne!(drawn, tails(&sent, &device, 8, 0).unwrap().unwrap());
    for (seconds, share) in [(0.001, 0.5), (0.004, 0.99), (0.02, 1.0)] {
        let within = drawn.iter().filter(|tail| tail.as_secs_f64() + WORK <= seconds + 1e-9).count() as f64;
        let (count, room) = (REQUESTS as f64, 4.0 * (share * (1.0 - share) / REQUESTS as f64).sqrt());
        assert!((within / count - share).abs() <= room, "{} of {seconds} s, not {share}", within / count);
    }
}

#[test]
fn a_profile_without_unloaded_latencies_draws_none() {
    let text = r#"{"table": [{"size_bytes": 4096, "read_iops": 10000, "write_iops": 10000}]}"#;
    assert_eq!(tails(&apart(), &device(text), 7, 0), Ok(None));
}

#[test]
fn a_size_that_was_never_measured_draws_nothing_and_is_an_error() {
    let large: Arc<[Arrival]> = apart().iter().map(|arrival| Arrival { size: 8192, ..*arrival }).collect();
    let error = tails(&large, &device(PROFILE), 7, 0).unwrap_err().to_string();
    assert!(error.contains("for reads of 8KiB") && error.contains("only 4KiB"), "{error}");
}

fn system(percentile: f64, unloaded: f64) -> System {
    let arrivals = ArrivalCurve::new(&[TokenBucket::new(0.5, 3.0 * WORK).unwrap()]).unwrap();
    let demand = Demand {
        stage: Stage::Storage,
        arrivals: arrivals.clone(),
        largest: WORK,
        model: None,
        unloaded,
        outstanding: None,
    };
    let workload = Workload {
        name: "reads".into(),
        slo: Some(Slo { percentile, latency: 0.1 }),
        demands: vec![demand],
        dependencies: Vec::new(),
    };
    let promise = Promise {
        workload: Arc::new(workload),
        route: vec![vec![0]],
        priorities: vec![0],
        limits: vec![arrivals],
    };
    System {
        queues: vec![Queue { name: "disk".into(), capacity: 1.0, latency: 0.0, resource: None }],
        promises: vec![promise],
    }
}

#[test]
fn a_replay_uses_the_draws_and_its_percentile_meets_the_bound() {
    let (sent, device) = (apart(), device(PROFILE));
    let drawn = tails(&sent, &device, 7, 0).unwrap().unwrap();
    let longest = drawn.iter().max().unwrap().0 + (WORK * 1e9) as u64;
    let run = |percentile, unloaded, tails| {
        let system = system(percentile, unloaded);
        let replay = Replay {
            system: &system,
            bounds: BoundSettings::default(),
            method: Method::Dnc,
            over: OverLimit::Held,
            order: Scheduling::Priority,
            arrivals: vec![Some(sent.clone())],
            tails,
        };
        replay.run().unwrap().workloads[0].clone()
    };
    let drawn_of = |percentile, unloaded| run(percentile, unloaded, vec![drawn.clone()]);
    let check = drawn_of(98.0, 0.004);
    assert_eq!(check.measured.unwrap().worst, Nanos(longest));
    assert!(check.violated.is_empty(), "{check:?}");
    assert_eq!(run(98.0, 0.004, Vec::new()).measured.unwrap().worst, Nanos((WORK * 1e9) as u64));
    // A bound that adds less than the profiled time at its percentile is exceeded, and the check reports the violated
    // assumption.
    let short = drawn_of(98.0, 0.001);
    let is_named = short
        .violated
        .iter()
        .any(|assumption| assumption.to_string().contains("drew a longer time without queueing"));
    assert!(is_named, "{short:?}");
}
