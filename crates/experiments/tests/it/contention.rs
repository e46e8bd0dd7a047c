//! Contention experiments: every scheduler gets the same requests, loads are as configured, and guarantees hold.

use leeward_experiments::{
    ContentionExperiment, ContentionResult, DrawnContention, ExperimentError, Load, Scheduler, Shape,
    Traffic, TrafficChange, WorkloadDraw,
};
use leeward_requests::Cake;
use leeward_traces::Stage;
use leeward_traces::device::Device;
use proptest::prelude::*;

/// 1 ms per read of 4 KiB, 4 ms per read of 64 KiB.
pub(super) const DEVICE: &str = r#"{"table": [
    {"size_bytes": 4096, "read_iops": 1000, "write_iops": 500},
    {"size_bytes": 65536, "read_iops": 250, "write_iops": 125}
]}"#;
const SHAPE: Shape = Shape { clients: 1, slots: None, servers: 1, devices: 1, bytes: 125e6 };

pub(super) fn experiment(members: Vec<WorkloadDraw>) -> ContentionExperiment {
    ContentionExperiment {
        members,
        traces: Vec::new(),
        shape: SHAPE,
        device: Device::from_text("ssd", DEVICE).unwrap(),
        model: None,
        packet: 65536.0,
        seconds: 60.0,
        from: 0.0,
        percentile: 99.9,
        percentiles: vec![50.0, 99.9999],
    }
}

/// A workload that reads 4 KiB at a time.
pub(super) fn member(name: &str, slo: f64, load: f64, gap_c2: f64) -> WorkloadDraw {
    let traffic = Traffic {
        load: Load::Storage(load),
        gap_c2,
        bursts: None,
        sizes: vec![(4096, 1.0)],
        read_share: 1.0,
        sequential_share: 0.0,
    };
    WorkloadDraw {
        name: name.into(),
        slo: Some(slo),
        traffic,
        recorded: None,
        change: None,
        closed: None,
        client: 0,
        server: 0,
        device: Some(0),
        rates: None,
    }
}

/// A closed loop with `outstanding` reads of 64 KiB, such as a copy job.
fn copy(outstanding: u32) -> WorkloadDraw {
    let base = member("copy", 1.0, 0.1, 1.0);
    let traffic = Traffic { sizes: vec![(65536, 1.0)], ..base.traffic.clone() };
    WorkloadDraw { slo: None, closed: Some(outstanding), traffic, ..base }
}

fn flood(from: f64, seconds: f64, load: f64) -> Option<TrafficChange> {
    Some(TrafficChange { from, seconds, load: Load::Storage(load), gap_c2: 1.0 })
}

fn run(members: &[WorkloadDraw], seed: u64, scheduler: Scheduler) -> Vec<ContentionResult> {
    DrawnContention::new(experiment(members.to_vec()), seed).unwrap().run(scheduler).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_request_of_a_conforming_workload_exceeds_the_bound_of_priority_meister(
        seed: u64,
        loads in prop::collection::vec((0.02..0.25f64, 0.3..20.0f64, 0.01..1.0f64), 1..4),
        outstanding in 0u32..5,
        mixed_slo in 0.5..1.5f64,
    ) {
        let numbered = loads.iter().enumerate();
        let mut members: Vec<WorkloadDraw> = numbered
            .map(|(index, &(load, gap_c2, slo))| member(&format!("w{index}"), slo, load, gap_c2))
            .collect();
        members.push(WorkloadDraw {
            traffic: Traffic { sizes: vec![(4096, 2.0), (65536, 1.0)], read_share: 0.5, ..members[0].traffic.clone() },
            ..member("mixed", mixed_slo, 0.1, 2.0)
        });
        if outstanding > 0 {
            members.push(copy(outstanding));
        }
        for (result, member) in run(&members, seed, Scheduler::PriorityMeister).iter().zip(&members) {
            if member.closed.is_none() {
                let bound = result.bound.expect("the load is below the capacity of the device");
                prop_assert!(result.tails[1] <= bound + 1e-8, "{}: {:?} s, {bound} s", member.name, result.tails);
                prop_assert_eq!(result.late > 0, result.tails[1] > member.slo.unwrap());
            }
        }
    }

    #[test]
    fn the_offered_load_matches_its_setting(seed: u64, load in 0.1..0.9f64, gap_c2 in 0.0..4.0f64) {
        let results = run(&[member("w", 1.0, load, gap_c2)], seed, Scheduler::BySlo);
        // Each request takes 1 ms. Arrivals are a renewal process, so the variance of the number of requests is about
        // `gap_c2 * expected`. The test allows five standard deviations.
        let expected = load * 60_000.0;
        let off = (results[0].requests as f64 - expected).abs();
        prop_assert!(off <= 5.0 * (gap_c2 * expected).sqrt() + 3.0, "{off} of {expected}");
    }
}

#[test]
fn every_scheduler_gets_the_same_requests_with_or_without_other_workloads() {
    let all = [member("a", 0.1, 0.2, 5.0), member("b", 0.2, 0.3, 2.0), copy(2)];
    let drawn = DrawnContention::new(experiment(all.to_vec()), 3).unwrap();
    let alone = run(&all[..1], 3, Scheduler::Shares)[0].requests;
    for scheduler in Scheduler::ALL {
        let results = drawn.run(scheduler).unwrap();
        assert_eq!(results, drawn.run(scheduler).unwrap(), "{scheduler:?}");
        assert_eq!(results[0].requests, alone, "{scheduler:?}");
        let counted: u64 = results[1].intervals.iter().map(|&(_, requests, _)| requests).sum();
        assert_eq!(results[1].requests, counted, "{scheduler:?}");
    }
    assert_ne!(alone, run(&all[..1], 4, Scheduler::Shares)[0].requests);
}

#[test]
fn each_scheduler_serves_in_its_own_order() {
    // `tight` and `loose` together use 80 % of the device, and the copy takes a share of the rest.
    let all = [member("tight", 0.02, 0.2, 2.0), member("loose", 0.5, 0.6, 2.0), copy(4)];
    let results = |scheduler| run(&all, 1, scheduler);
    let median =
        |scheduler| -> Vec<f64> { results(scheduler).iter().map(|result| result.tails[0]).collect() };
    let by_slo = median(Scheduler::BySlo);
    assert!(by_slo[0] < by_slo[1], "{by_slo:?}");
    // With shares, the copy takes half of the device time that `tight` leaves, and `loose` needs more than the other
    // half. The feedback of Cake gives `loose` more time.
    let (shares, cake) = (median(Scheduler::Shares), median(Scheduler::Cake(Cake::DEFAULT)));
    assert!(shares[1] > 10.0 * by_slo[1], "{shares:?}, {by_slo:?}");
    assert!(cake[1] < shares[1], "{cake:?}, {shares:?}");
    // With a raised upper bound, the copy gets no more time than before.
    let raised = results(Scheduler::Cake(Cake { upper: 4.0, ..Cake::DEFAULT }));
    assert!(raised[2].requests <= results(Scheduler::Cake(Cake::DEFAULT))[2].requests);
    assert!(results(Scheduler::BySlo)[2].requests < results(Scheduler::Shares)[2].requests);
    // With deadlines, `tight` goes before `loose` if both wait.
    let deadline = median(Scheduler::Deadline);
    assert!(deadline[0] <= deadline[1], "{deadline:?}");
}

#[test]
fn priority_meister_protects_others_from_an_excessive_sender_but_slo_and_deadline_order_do_not() {
    let calm = member("calm", 0.3, 0.4, 2.0);
    let wild = WorkloadDraw { change: flood(20.0, 20.0, 2.0), ..member("wild", 0.1, 0.1, 2.0) };
    let both = [calm, wild];
    let late = |scheduler| run(&both, 5, scheduler)[0].late;
    assert_eq!(late(Scheduler::PriorityMeister), 0);
    assert!(late(Scheduler::BySlo) > 1000, "{}", late(Scheduler::BySlo));
    assert!(late(Scheduler::Deadline) > 1000, "{}", late(Scheduler::Deadline));
}

#[test]
fn device_limits_demote_a_flood_but_not_the_configured_load() {
    let limited = |change| WorkloadDraw {
        rates: Some(vec![0.11, 0.3, 0.9]),
        change,
        ..member("limited", 0.05, 0.1, 10.0)
    };
    let demoted = |change| run(&[limited(change)], 2, Scheduler::BySlo)[0].demoted;
    assert_eq!(demoted(None), 0);
    assert!(demoted(flood(10.0, 5.0, 2.0)) > 1000);
}

#[test]
fn a_lone_closed_loop_is_served_without_idle_time() {
    let results = run(&[copy(4)], 1, Scheduler::PriorityMeister);
    // Each request takes 4 ms at the device, and less on the network.
    assert!((results[0].requests as i64 - 15_000).abs() <= 5, "{}", results[0].requests);
    assert_eq!((results[0].late, results[0].bound), (0, None));
}

#[test]
fn a_volume_in_memory_uses_only_the_network() {
    let base = member("memory", 0.1, 0.3, 1.0);
    let traffic = Traffic { load: Load::NetworkOut(0.3), ..base.traffic.clone() };
    let results = run(&[WorkloadDraw { device: None, traffic, ..base }], 1, Scheduler::PriorityMeister);
    let stages: Vec<Stage> = results[0].priorities.iter().map(|priority| priority.0).collect();
    assert_eq!(stages, [Stage::NetworkIn, Stage::NetworkOut]);
    // A response sends 200 B plus 1.1 times its 4 KiB over a link of 125 MB/s.
    let expected = 0.3 * 125e6 * 60.0 / (200.0 + 1.1 * 4096.0);
    assert!((results[0].requests as f64 / expected - 1.0).abs() < 0.01, "{}", results[0].requests);
}

#[test]
fn a_slower_device_model_raises_bounds_and_changes_no_request() {
    let own = experiment(vec![member("w", 1.0, 0.3, 3.0)]);
    let slow = Device::from_text("slow", &DEVICE.replace("1000", "800")).unwrap();
    let experiments = [own.clone(), ContentionExperiment { model: Some(slow), ..own }];
    let [own, slower] = experiments.map(|experiment| {
        let drawn = DrawnContention::new(experiment, 1).unwrap();
        drawn.run(Scheduler::PriorityMeister).unwrap().remove(0)
    });
    assert!(slower.bound.unwrap() > own.bound.unwrap());
    assert_eq!((slower.requests, slower.tails), (own.requests, own.tails));
}

#[test]
fn measuring_starts_at_the_set_time() {
    let whole = experiment(vec![member("w", 1.0, 0.5, 0.0)]);
    let half = ContentionExperiment { from: 30.0, ..whole.clone() };
    let requests =
        |experiment| DrawnContention::new(experiment, 1).unwrap().run(Scheduler::BySlo).unwrap()[0].requests;
    assert_eq!((requests(whole), requests(half)), (29_999, 15_000));
}

#[test]
fn invalid_experiments_are_rejected() {
    let valid = || member("w", 1.0, 0.1, 1.0);
    let error_of = |member: WorkloadDraw| {
        DrawnContention::new(experiment(vec![member]), 1).err().map(|error| error.to_string())
    };
    let error_after = |change: fn(&mut WorkloadDraw)| {
        let mut member = valid();
        change(&mut member);
        error_of(member).expect("an error")
    };
    assert_eq!(error_of(valid()), None);
    assert_eq!(
        error_after(|member| member.device = Some(1)),
        "workload w: client 0, server 0, device 1: expected numbers below 1, 1 and 1"
    );
    assert_eq!(
        error_after(|member| member.traffic.load = Load::Storage(0.0)),
        "workload w: a load of 0: expected a share above 0"
    );
    assert_eq!(
        error_after(|member| member.device = None),
        "workload w: a storage load without a device: expected a network load"
    );
    assert_eq!(
        error_after(|member| member.traffic.gap_c2 = f64::NAN),
        "workload w: gap_c2 NaN: expected 0 to 1e6"
    );
    assert_eq!(
        error_after(|member| member.rates = Some(vec![])),
        "workload w: no rate: expected at least one"
    );
    assert_eq!(
        error_after(|member| member.closed = Some(1)),
        "workload w: a closed loop with an SLO: expected no SLO"
    );
    assert_eq!(
        error_after(|member| member.change =
            Some(TrafficChange { from: -1.0, seconds: 1.0, load: Load::Storage(1.0), gap_c2: 1.0 })),
        "workload w: a change from -1 s for 1 s: expected a start of at least 0 s, and a duration above 0 s"
    );
    assert!(
        error_after(|member| member.traffic.load = Load::Storage(1e-6))
            .contains("in 60 s: expected at least two")
    );
    assert!(
        error_after(|member| member.traffic.load = Load::Storage(1e6))
            .contains("expected at most 20000000 requests")
    );
    assert!(
        error_after(|member| member.slo = Some(f64::NAN)).contains("SLO NaN: must be finite and above 0")
    );
    let error = |change: fn(&mut ContentionExperiment)| {
        let mut experiment = experiment(vec![valid()]);
        change(&mut experiment);
        let result =
            DrawnContention::new(experiment, 1).and_then(|drawn| drawn.run(Scheduler::Cake(Cake::DEFAULT)));
        result.expect_err("an error")
    };
    assert!(matches!(error(|experiment| experiment.from = 60.0), ExperimentError::Draw { .. }));
    assert!(matches!(error(|experiment| experiment.seconds = f64::INFINITY), ExperimentError::Draw { .. }));
    assert!(matches!(error(|experiment| experiment.percentiles = vec![100.0]), ExperimentError::Draw { .. }));
    assert!(matches!(error(|experiment| experiment.percentile = 0.0), ExperimentError::System(_)));
    assert!(matches!(error(|experiment| experiment.packet = 0.0), ExperimentError::System(_)));
    let drawn = DrawnContention::new(experiment(vec![valid()]), 1).unwrap();
    let unstable = Cake { step: 1.0, ..Cake::DEFAULT };
    assert!(matches!(drawn.run(Scheduler::Cake(unstable)), Err(ExperimentError::Requests(_))));
}

#[test]
fn a_scheduler_is_found_by_its_name() {
    for scheduler in Scheduler::ALL {
        assert_eq!(Scheduler::from_name(scheduler.name()), Some(scheduler));
    }
    assert_eq!(Scheduler::from_name("fifo"), None);
}
