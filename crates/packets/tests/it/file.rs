//! Scenario files of the packet simulator: their settings, results and errors.

use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;
use leeward_packets::{FlowRecord, Outcome, Scenario, ScenarioError, Settings};
use leeward_testing::rows::{check_rows, contains};
use proptest::prelude::*;

const LONG: &str = "workload: {long: {from: 0, to: 1}}\nhorizon: 10ms\n";

fn run(text: &str) -> Outcome {
    let scenario = Scenario::from_text("rdcn.yaml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario.run(&|_| true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn defaults_match_the_testbed() {
    let scenario = Scenario::from_text("rdcn.yaml", LONG).expect("a valid file");
    assert_eq!(scenario.settings(), &Settings { seed: 1, ..Settings::etalon(8) });
    assert_eq!(scenario.horizon(), Nanos(10_000_000));
}

#[test]
fn the_example_uses_circuits_within_16_points_of_figure_6b() {
    let text = include_str!("../../../../examples/circuits/strobe.yaml");
    let outcome = run(text);
    let used = outcome.records.circuit_utilization(0, 1, 80e9, Nanos(10_000_000)).expect("days");
    // The paper reports 88 %.
    assert!((0.72..=1.0).contains(&used), "{used}");
    assert_eq!(outcome.records.samples.len(), 5001);
    assert!(outcome.records.samples.iter().any(|sample| sample.capacity == 128 && sample.packets > 16));
}

#[test]
fn circuit_marks_for_retcp_start_at_the_time_in_the_file() {
    let marks = |ece: &str| {
        let text = format!(
            "{LONG}scheduler: {{name: strobe}}\ntcp: {{control: retcp{ece}}}\nresize: {{small: 16, big: 50, tau: 150us}}\n"
        );
        Scenario::from_text("rdcn.yaml", &text).expect("a valid file").settings().switch.circuit_marks
    };
    assert_eq!(marks(""), Some(Nanos(0)));
    assert_eq!(marks(", ece: at_circuit"), Some(Nanos(0)));
    assert_eq!(marks(", ece: tau_early"), Some(Nanos(150_000)));
    let fixed = format!("{LONG}scheduler: {{name: strobe}}\ntcp: {{control: retcp, ece: tau_early}}\n");
    let fixed = Scenario::from_text("rdcn.yaml", &fixed).expect("a valid file");
    assert_eq!(fixed.settings().switch.circuit_marks, Some(Nanos(600_000)));
}

#[test]
fn queue_marks_and_circuit_marks_never_share_a_segment() {
    // Queues do not mark segments of reTCP, so its echo signals only circuits. Circuits do not mark DCTCP's segments.
    let run_with = |network: &str, tcp: &str| {
        run(&format!("{LONG}scheduler: {{name: strobe}}\nnetwork: {{{network}}}\ntcp: {{{tcp}}}\n"))
    };
    assert_eq!(run_with("mark_at: 1", "control: retcp, ecn: true"), run_with("", "control: retcp"));
    assert_ne!(run_with("mark_at: 1", "control: dctcp"), run_with("mark_at: 100", "control: dctcp"));
    let text =
        format!("{LONG}scheduler: {{name: strobe}}\nnetwork: {{mark_at: 10}}\ntcp: {{control: dctcp}}\n");
    let dctcp = Scenario::from_text("rdcn.yaml", &text).expect("a valid file");
    assert_eq!(dctcp.settings().switch.circuit_marks, None);
}

#[test]
fn a_flow_over_its_time_limit_is_abandoned_and_the_run_ends() {
    let outcome = run(
        "workload: {flows: [{from: [0, 0], to: [1, 0], bytes: 1GB}, {from: [2, 0], to: [3, 0], bytes: 90kB}]}\n\
                       give_up: 5ms\nhorizon: 1s\n",
    );
    let [long, short] = &outcome.records.flows[..] else { panic!("two flows") };
    assert!(long.finished.is_none() && short.finished.is_some());
    // At most the bytes that its host could send until then.
    assert!(long.delivered > 0 && long.delivered <= 6_250_000, "{}", long.delivered);
    assert!(outcome.ended < Nanos(50_000_000), "{:?}", outcome.ended);
}

#[test]
fn a_flow_does_not_wait_for_the_window_of_another_in_its_hosts_nic() {
    let took = |limit: &str| {
        let outcome = run(&format!(
            "network: {{packet_rate: 80Gbps, voq_capacity: 4096{limit}}}\nhorizon: 100ms\n\
             workload: {{flows: [{{from: [0, 0], to: [1, 0], bytes: 1GB}},\
             {{from: [0, 0], to: [2, 0], bytes: 90kB, start: 20ms}}]}}\n"
        ));
        let flow = &outcome.records.flows[1];
        flow.finished.expect("the flow ends").since(flow.began.expect("the flow has a start"))
    };
    let (limited, unlimited) = (took(""), took(", nic_limit: null"));
    // 90 kB, beside a flow with 128 KiB in the NIC at 10 Gb/s.
    assert!(limited < Nanos(1_000_000) && unlimited.0 > 4 * limited.0, "{limited:?} {unlimited:?}");
}

/// Runs a train of two bursts of `packets` with a limit of its host.
fn train(packets: u32, limit: &str) -> Outcome {
    run(&format!(
        "network: {{racks: 2, hosts_per_rack: 1, limits: [{{host: [0, 0], {limit}}}]}}\nhorizon: 10s\n\
         trains: [{{from: [0, 0], to: [1, 0], start: 1ms, bursts: 2, packets: {packets}}}]\n"
    ))
}

#[test]
fn a_train_leaves_at_the_nic_rate_for_the_bucket_and_then_at_the_limit() {
    let outcome = train(100, "rate: 100Mbps, bucket: 15kB");
    let [train] = &outcome.records.trains[..] else { panic!("one train") };
    assert_eq!((train.began, train.sent, train.arrivals.len()), (Some(Nanos(1_000_000)), 200, 200));
    assert!(train.arrivals.iter().map(|arrival| arrival.packet).eq(0..200));
    // 1500 bytes take 1.2 us at 10 Gb/s and 120 us at 100 Mb/s. The first ten are in the bucket. All others follow each
    // other without a pause, because the NIC has 128 KiB of the first burst when the second begins.
    let gaps = train.arrivals.windows(2).map(|two| two[1].at.since(two[0].at));
    let fast = gaps.clone().take_while(|gap| *gap == Nanos(1_200)).count();
    assert_eq!(fast, 9);
    assert!(gaps.skip(10).all(|gap| gap.0.abs_diff(120_000) <= 1), "{:?}", train.arrivals);
    // The run ends with its train.
    assert_eq!(outcome.ended, train.arrivals[199].at);
}

#[test]
fn a_pause_refills_the_bucket() {
    // The bucket refills 5 packets in a time that is 60 us shorter than the pause.
    let outcome = train(5, "rate: 100Mbps, bucket: 7500B");
    let at: Vec<u64> = outcome.records.trains[0].arrivals.iter().map(|arrival| arrival.at.0).collect();
    assert!([&at[..5], &at[5..]].iter().all(|burst| burst[4] - burst[0] == 4 * 1_200), "{at:?}");
    assert_eq!(at[5] - at[4], 1_000_000 - 4 * 1_200);
}

#[test]
fn a_train_loses_packets_at_a_full_queue_and_still_ends() {
    let outcome = run("network: {racks: 2, hosts_per_rack: 1, packet_rate: 1Gbps}\nhorizon: 10s\n\
         trains: [{from: [0, 0], to: [1, 0]}]\n");
    let train = &outcome.records.trains[0];
    assert_eq!(train.sent, 2000);
    assert_eq!(train.arrivals.len() as u64 + outcome.records.dropped.packets, 2000);
    assert!(outcome.records.dropped.packets > 1000, "{}", outcome.records.dropped.packets);
    assert!(outcome.ended < Nanos(100_000_000), "{:?}", outcome.ended);
}

#[test]
fn limits_hold_for_tcp_and_a_train_waits_for_its_share() {
    let text = "network: {racks: 2, hosts_per_rack: 1, limits: [{host: [0, 0], rate: 1Gbps, bucket: 16kB}]}\n\
        workload: {flows: [{from: [0, 0], to: [1, 0], bytes: 1GB}]}\nhorizon: 100ms\n";
    let alone = run(text).records.flows[0].delivered;
    // The limit's rate for 100 ms, without headers, plus the bucket.
    assert!((12_300_000..=12_530_000).contains(&alone), "{alone}");
    let outcome = run(&format!("{text}trains: [{{from: [0, 0], to: [1, 0], start: 20ms}}]\n"));
    let train = &outcome.records.trains[0];
    let bytes = 1500 * train.arrivals.len() as u64;
    assert!(train.arrivals.len() == 2000, "{}", train.arrivals.len());
    assert!(outcome.records.flows[0].delivered.abs_diff(alone - bytes) < 200_000);
    // Both flows have 128 KiB in the NIC, so each gets half.
    let took = train.arrivals[1999].at.since(train.arrivals[0].at);
    assert!((40_000_000..56_000_000).contains(&took.0), "{took:?}");
}

#[test]
fn every_workload_and_demand_estimate_runs_to_its_end() {
    let small = "network: {racks: 4, hosts_per_rack: 4}\nhorizon: 1s\n";
    let rings =
        "{rings: {big_rate: 1Gbps, small_rate: 100Mbps, big_bytes: [90MB, 90MB], small_bytes: [9MB, 9MB]}}";
    let workloads = [
        "{flows: [{from: [0, 1], to: [2, 3], start: 1ms, bytes: 10MB, class: 3}]}",
        rings,
        "{dfsio: {mappers: 8, bytes: 4MB, block: 2MB}}",
        "{dfsio: {mappers: 8, bytes: 4MB, replication: 3, copies: rehdfs}}",
        "{dfsio: {mappers: 8, bytes: 4MB, block: 1MB, copies: 'leeward:circuit_turn=2ms', report: 1ms}}",
        "{collective: {kind: ring, bytes: 10MB, ranks_per_rack: 2, rounds: 2, compute: 100us}}",
        "{collective: {kind: tree, bytes: 10MB}}",
        "{collective: {kind: all_to_all, bytes: 10MB}}",
    ];
    for workload in workloads {
        for demand in ["voq", "adu", "socket", "oracle"] {
            let text =
                format!("{small}workload: {workload}\nscheduler: {{name: solstice, demand: {demand}}}\n");
            let outcome = run(&text);
            let records = &outcome.records;
            assert!(records.flows.iter().all(|flow| flow.finished.is_some()), "{text}");
            // Queues of 16 packets hold less than a circuit carries in a day, so Solstice leaves them to the packet
            // switch.
            let days = records.days.iter().any(|day| day.bytes > 0);
            assert!(days || demand == "voq" || workload.contains("tree"), "{text}");
            assert!(outcome.ended < Nanos(1_000_000_000), "{text}");
        }
    }
}

/// Returns the racks of copies, as distances from their writers' racks, with the start times of the blocks.
fn ahead(outcome: &Outcome) -> Vec<(Nanos, u32)> {
    let blocks = outcome.records.blocks.iter();
    blocks
        .flat_map(|block| {
            let began = block.began.expect("all are written");
            block.copies.iter().map(move |copy| (began, (copy.rack + 8 - block.writer.rack) % 8))
        })
        .collect()
}

#[test]
fn the_policy_places_copies_at_the_start_of_each_block() {
    let text = "workload: {dfsio: {mappers: 16, bytes: 4MB, block: 1MB, report: 1ms, copies: COPIES}}\n\
        scheduler: {name: solstice, demand: oracle}\nhorizon: 1s\n";
    let distances = |copies: &str| ahead(&run(&text.replace("COPIES", copies)));
    assert!(distances("rehdfs").iter().all(|&(_, ahead)| ahead == 1));
    for copies in ["uniform", "leeward", "sinbad:threshold=1B"] {
        let ahead = distances(copies);
        assert!(ahead.iter().all(|&(_, to)| to != 0), "{copies}: {ahead:?}");
        assert!(ahead.iter().any(|&(_, to)| to != ahead[0].1), "{copies}: {ahead:?}");
    }
    // Before the first block, the policy got one idle report, so its time is one report interval ahead.
    let turned = distances("{leeward: {circuit_turn: 2ms}}");
    assert!(
        turned.iter().all(|&(began, to)| u64::from(to) == 1 + (began.0 + 1_000_000) / 2_000_000 % 7),
        "{turned:?}"
    );
    assert!(turned.iter().any(|&(_, to)| to != turned[0].1), "{turned:?}");
}

#[test]
fn blocks_of_one_mapper_are_written_whole_and_one_after_another() {
    let outcome = run("network: {hosts_per_rack: 1, nic: 800Gbps}\nhorizon: 1s\n\
        workload: {dfsio: {mappers: 24, bytes: 3MB, block: 1MB}}\nscheduler: {name: strobe}\n");
    let blocks = &outcome.records.blocks;
    assert_eq!(blocks.len(), 24 * 3);
    for file in blocks.chunks(3) {
        let times: Vec<_> =
            file.iter().map(|block| (block.began.unwrap(), block.finished.unwrap())).collect();
        assert!(times.windows(2).all(|pair| pair[0].1 == pair[1].0) && times[0].0 == Nanos(0), "{times:?}");
        assert!(file.iter().all(|block| block.file == file[0].file && block.copies.len() == 1));
    }
    let data: u64 = outcome.records.flows.iter().filter(|f| f.flow.class == 0).map(|f| f.delivered).sum();
    assert_eq!(data, 24 * 3_000_000);
}

#[test]
fn a_run_ends_with_the_last_byte_of_its_workload_whatever_its_horizon() {
    let run_until = |horizon: &str| {
        run(&format!(
            "network: {{racks: 4, hosts_per_rack: 2}}\nscheduler: {{name: solstice, demand: adu}}\nhorizon: {horizon}\n\
             workload: {{collective: {{kind: all_to_all, bytes: 5MB, ranks_per_rack: 2}}}}\n\
             sample: {{every: 100us, pairs: [[0, 1]]}}\n"
        ))
    };
    let outcome = run_until("1s");
    let last = outcome.records.flows.iter().map(|flow| flow.finished).max().flatten();
    assert_eq!(Some(outcome.ended), last, "the run ends with the last byte");
    for horizon in ["777ms", "20s", "10min"] {
        assert_eq!(run_until(horizon), outcome, "{horizon}");
    }
    // The last sample includes all arrived data.
    let sample = outcome.records.samples.last().expect("samples");
    let of_pair = |flow: &&FlowRecord| (flow.flow.source.rack, flow.flow.destination.rack) == (0, 1);
    let written: u64 = outcome.records.flows.iter().filter(of_pair).map(|flow| flow.written).sum();
    assert_eq!((sample.at, sample.delivered), (outcome.ended, written));
    // An earlier horizon ends the run.
    assert_eq!(run_until("1ms").ended, Nanos(1_000_000));
}

#[test]
fn listed_days_equal_those_of_the_matching_scheduler() {
    let run_by = |scheduler: &str| {
        run(&format!(
            "network: {{racks: 3, hosts_per_rack: 2}}\nscheduler: {{{scheduler}}}\nhorizon: 1s\n\
             workload: {{collective: {{kind: all_to_all, bytes: 5MB, ranks_per_rack: 2}}}}\n"
        ))
    };
    let round = "days: [{length: 180us, circuits: [[0, 1], [1, 2], [2, 0]]},\
                 {length: 180us, circuits: [[0, 2], [1, 0], [2, 1]]}]";
    assert_eq!(run_by(round), run_by("name: strobe"));
    // Listed days may be longer than a scheduler's week, and have their own nights.
    let long = run_by("night: 3ms, days: [{length: 5ms, circuits: [[2, 0]]}]");
    let first = long.records.days.first().expect("a day has ended");
    assert_eq!((first.source, first.destination), (2, 0));
    assert_eq!((first.began, first.ended), (Nanos(3_000_000), Nanos(8_000_000)));
}

#[test]
fn a_run_stops_on_request() {
    let scenario = Scenario::from_text("rdcn.yaml", LONG).expect("a valid file");
    assert_eq!(scenario.run(&|share| share < 0.1), Err(ScenarioError::Stopped));
}

#[test]
fn without_a_scheduler_there_are_no_circuits() {
    let outcome = run(LONG);
    assert!(outcome.records.days.is_empty());
    assert!(outcome.records.delivered[Via::Packet as usize].bytes > 0);
    assert_eq!(outcome.records.delivered[Via::Circuit as usize].bytes, 0);
}

#[test]
fn errors_in_a_file_name_the_field() {
    let table = [
        ("network: {racks: 8, speed: 10Gbps}\n", "network.speed"),
        ("network: {packet_rate: 10}\n", "such as 10Gbps"),
        ("network: {packet_rate: 0Gbps}\n", "network: packet_rate of 0 bit/s: must be above 0"),
        ("network: {racks: 4000}\n", "network: 4000 racks: must be 1 to 1024"),
        ("network: {hosts_per_rack: 0}\n", "network.hosts_per_rack: 0: must be above 0"),
        ("network: {racks: 1000, hosts_per_rack: 1000}\n", "network.hosts_per_rack: 1000000 hosts in all"),
        ("network: {racks: 1}\n", "workload.long: flow 0: destination r1h0"),
        ("network: {limits: [{host: [0, 16], rate: 1Gbps}]}\n", "network.limits: r0h16: must be a host"),
        (
            "network: {limits: [{host: [0, 1], rate: 1Gbps}, {host: [0, 1], rate: 2Gbps}]}\n",
            "network.limits: r0h1: must be a host of the network, listed once",
        ),
        ("network: {limits: [{host: [0, 1], rate: 0bps}]}\n", "network.limits: rate: 0bps: must be above 0"),
        ("trains: [{from: [0, 0], to: [8, 0]}]\n", "trains[0]: to: r8h0: must be an existing host"),
        (
            "trains: [{from: [0, 0], to: [0, 0]}]\n",
            "trains[0]: to: r0h0: must be another host than the sender",
        ),
        ("trains: [{from: [0, 0], to: [0, 1], bursts: 0}]\n", "trains[0]: bursts: 0: must be above 0"),
        ("trains: [{from: [0, 0], to: [0, 1], packets: 1}]\n", "trains[0]: packets: 1: must be at least 2"),
        ("trains: [{from: [0, 0], to: [0, 1], payload: 65508}]\n", "payload: 65508: must be from 1 to 65507"),
        (
            "trains: [{from: [0, 0], to: [0, 1], bursts: 1000000}]\n",
            "packets: 200000000: must be at most 20 million in all",
        ),
        (
            "trains: [{from: [0, 0], to: [0, 1], bursts: 99999}, {from: [0, 0], to: [0, 1]}]\n",
            "trains[1]: packets: 20001800: must be at most 20 million in all",
        ),
        ("scheduler: {name: sunday}\n", "scheduler.name: unknown scheduler `sunday`"),
        ("scheduler: {name: solstice}\n", "scheduler.demand: `solstice` computes schedules from demand"),
        ("scheduler: {name: solstice, demand: guess}\n", "scheduler.demand"),
        (
            "scheduler: {name: strobe, night: 3ms}\n",
            "scheduler: night: 3ms: must be shorter than the week of 2ms",
        ),
        ("routing: {name: vlb}\n", "routing: `vlb` routes over circuits: expected `scheduler`"),
        (
            "scheduler: {name: strobe}\nrouting: {name: ecmp}\n",
            "routing.name: unknown routing `ecmp`; there are: direct, vlb",
        ),
        (
            "scheduler: {name: strobe}\nrouting: {name: rotorlb:seed=1}\n",
            "seed: unknown field; expected none",
        ),
        ("scheduler: {name: strobe}\nrouting: {name: hoho:most_hops=0}\n", "most_hops: 0: expected 1 to 4"),
        (
            "scheduler: {name: solstice, demand: adu}\nrouting: {name: hoho}\n",
            "routing.name: `hoho` looks ahead to later days: expected a schedule that repeats, `scheduler` without `demand`",
        ),
        (
            "scheduler: {name: fixed}\nrouting: {name: rotorlb}\n",
            "routing.name: rotorlb: no day has a circuit from rack 0 to rack 2: every pair must have one",
        ),
        (
            "scheduler: {name: fixed}\nrouting: {name: hoho}\n",
            "routing.name: hoho: no path of at most 4 circuits leads from rack 1 to rack 0: every pair must have one",
        ),
        (
            "network: {packet_switch: false}\n",
            "network.packet_switch: false: no packet could be delivered without circuits",
        ),
        (
            "network: {packet_switch: false}\nscheduler: {name: fixed}\n",
            "network.packet_switch: false: no day has a circuit from rack 0 to rack 2",
        ),
        (
            "network: {packet_switch: false}\nscheduler: {name: eclipse, demand: voq}\n",
            "network.packet_switch: false: pairs without demand have no circuit",
        ),
        ("network: {relay_capacity: 0}\n", "network: relay_capacity of 0 packets: must be at least 1"),
        ("network: {circuit_rate: 0bps}\n", "network: circuit_rate of 0 bit/s: must be above 0"),
        ("tcp: {control: vegas}\n", "tcp.control"),
        ("tcp: {mss: 0}\n", "tcp: mss: 0: must be above 0"),
        (
            "tcp: {control: dctcp}\n",
            "tcp.control: `dctcp` requires marks of queues: expected `network.mark_at`",
        ),
        ("tcp: {ecn: true}\n", "tcp.ecn: ECN requires marks of queues: expected `network.mark_at`"),
        ("tcp: {control: retcp}\n", "tcp.control: `retcp` requires circuits: expected `scheduler`"),
        ("tcp: {divisions: 2}\n", "tcp.divisions: divisions require circuits: expected `scheduler`"),
        (
            "resize: {small: 16, big: 128, tau: 1ms}\n",
            "resize: queues grow ahead of circuits: expected `scheduler`",
        ),
        ("give_up: 0s\n", "rdcn.yaml: give_up: 0s: must be above 0"),
        ("scheduler: {}\n", "scheduler: expected `name` or `days`"),
        ("scheduler: {days: []}\n", "scheduler.days: empty: expected at least one"),
        (
            "scheduler: {name: strobe, days: [{length: 1ms, circuits: [[0, 1]]}]}\n",
            "scheduler.days: given together with `name`: expected one of them",
        ),
        (
            "scheduler: {demand: adu, days: [{length: 1ms, circuits: [[0, 1]]}]}\n",
            "scheduler.demand: listed days do not depend on demand",
        ),
        (
            "scheduler: {days: [{length: 1ms, circuits: [[0, 1]]}, {length: 1ms, circuits: [[0, 1], [0, 2]]}]}\n",
            "scheduler.days: day 1: source 0 has circuits to 1 and 2: a port has one",
        ),
        (
            "scheduler: {days: [{length: 1ms, circuits: [[0, 1], [2, 1]]}]}\n",
            "scheduler.days: day 0: destination 1 has circuits from 0 and 2: a port has one",
        ),
        (
            "scheduler: {days: [{length: 1ms, circuits: [[0, 8]]}]}\n",
            "scheduler.days: day 0: circuit to rack 8: there are 8 racks",
        ),
        (
            "scheduler: {days: [{length: 0s, circuits: [[0, 1]]}]}\n",
            "scheduler.days: day 0: a length of 0: must be above 0",
        ),
        ("scheduler: {days: [{length: 1ms}]}\n", "scheduler.days[0].circuits: missing"),
        (
            "scheduler: {days: [{length: 1ms, circuits: [[0, 1]]}]}\nrouting: {name: rotorlb}\n",
            "routing.name: rotorlb: no day has a circuit from rack 0 to rack 2",
        ),
        ("tcp: {ece: at_circuit}\n", "tcp.ece: applies to `control: retcp` only"),
        ("tcp: {control: retcp, alpha: 0.5}\n", "tcp: alpha: 0.5: must be from 1 to 1000"),
        (
            "resize: {small: 16, big: 4, tau: 1ms}\n",
            "resize: small 16 packets, big 4: small must not be above big",
        ),
        ("sample: {every: 0s, pairs: [[0, 1]]}\n", "sample.every: 0s: must be above 0"),
        (
            "sample: {every: 1us, pairs: [[0, 9]]}\n",
            "rdcn.yaml: sample.pairs: pair 0 to 9 does not exist: the network has 8 racks, numbered from 0",
        ),
        ("sample: {every: 1ns, pairs: [[0, 1], [1, 2], [2, 3]]}\n", "sample.every: 30000000 samples"),
    ];
    let problem = |text: &str| {
        let scenario = Scenario::from_text("rdcn.yaml", text);
        scenario.err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
    };
    let check = |text: &str, expected: &str| {
        let problem = problem(text);
        if problem.starts_with("rdcn.yaml") {
            contains(&problem, expected)
        } else {
            Err(format!("{problem:?}, expected the name of the file first"))
        }
    };
    check_rows(table, |(extra, expected)| check(&format!("{LONG}{extra}"), expected));
    let workloads = [
        (
            "{long: {from: 0, to: 0}}",
            "workload.long: flow 0: r0h0 is both source and destination: expected two hosts",
        ),
        ("{long: {from: 0, to: 1, flows: 0}}", "workload.long: flows: 0: must be above 0"),
        ("{flows: []}", "workload.flows: flows: 0: must be above 0"),
        ("{flows: [{from: [0, 0], to: [1, 0], bytes: 0B}]}", "workload.flows: piece 0: 0 bytes"),
        ("{rings: {rings: 8}}", "workload.rings: rings: 8: must be above 0 and below"),
        ("{rings: {small_bytes: [1B, 2B]}}", "workload.rings: small_rate: "),
        ("{rings: {until: 0s}}", "workload.rings: until: 0: must be above 0"),
        ("{dfsio: {replication: 1}}", "workload.dfsio: replication: 1: must be from 2"),
        ("{dfsio: {mappers: 0}}", "workload.dfsio: mappers: 0: must be above 0"),
        ("{dfsio: {report: 0s}}", "workload.dfsio: report: 0: must be above 0"),
        (
            "{dfsio: {replication: 129}}",
            "workload.dfsio: replication: 129: must be from 2 to the number of hosts",
        ),
        (
            "{dfsio: {copies: best}}",
            "workload.dfsio.copies: copies: unknown policy `best` for replicas; there are:",
        ),
        ("{dfsio: {copies: 'leeward:circuit_turn=0s'}}", "circuit_turn: 0s: expected more than nothing"),
        ("{dfsio: {copies: sinbad-file}}", "`sinbad-file` delays blocks by 1s: expected interval=0s"),
        ("{dfsio: {packet: 1B}}", "workload.dfsio: bytes: "),
        ("{collective: {kind: ring, bytes: 1MB, ranks_per_rack: 0}}", "ranks_per_rack: 0: must be above 0"),
        ("{collective: {kind: tree, bytes: 1MB, parts: 0}}", "parts: 0: must be above 0"),
        (
            "{collective: {kind: tree, bytes: 9000000TB, parts: 1152921504606846976}}",
            "workload.collective: rounds: 18446744073709551615 pieces in all: must be at most 20 million",
        ),
        (
            "{collective: {kind: star, bytes: 1MB}}",
            "workload.collective.kind: `star`: expected one of ring, tree",
        ),
        ("{rumours: {}}", "workload.rumours: unknown field; expected one of"),
        ("{}", "workload: none: expected one of long, flows, rings, dfsio, collective"),
        (
            "{long: {from: 0, to: 1}, collective: {kind: ring, bytes: 1MB}}",
            "workload: `long` and `collective`: expected one of them",
        ),
    ];
    check_rows(workloads, |(workload, expected)| {
        check(&format!("workload: {workload}\nhorizon: 2s\n"), expected)
    });
    assert!(problem("workload: {long: {from: 0, to: 1}}\n").contains("horizon"));
    assert!(problem("horizon: 1s\n").contains("workload: none, and no `trains`: expected one of them"));
    assert!(
        problem("workload: {long: {from: 0, to: 1}}\nhorizon: 0s\n").contains("horizon: 0s: must be above 0")
    );
}

#[test]
fn every_routing_delivers_all_tcp_bytes_without_a_packet_switch() {
    // All routings, two of them with settings that change the number of hops.
    for routing in ["direct", "vlb:seed=3", "rotorlb", "hoho", "hoho:most_hops=2"] {
        for control in ["reno", "cubic"] {
            let text = format!(
                "network: {{racks: 6, hosts_per_rack: 2, packet_switch: false, voq_capacity: 256}}\n\
                 scheduler: {{name: strobe}}\nrouting: {{name: {routing}}}\ntcp: {{control: {control}}}\n\
                 workload: {{collective: {{kind: all_to_all, bytes: 4MB, ranks_per_rack: 2}}}}\nhorizon: 4s\n"
            );
            let outcome = run(&text);
            let records = &outcome.records;
            assert!(records.flows.iter().all(|flow| flow.finished.is_some()), "{text}");
            assert_eq!(records.delivered[Via::Packet as usize].packets, 0, "{text}");
            let hops = records.hops.map(|traffic| traffic.packets);
            let expected = [("direct", 1), ("vlb", 2), ("rotorlb", 2), ("hoho:", 2), ("hoho", 4)];
            let most = expected
                .iter()
                .find(|(name, _)| routing.starts_with(name))
                .expect("each routing is listed")
                .1;
            assert!(hops[most..].iter().all(|&packets| packets == 0), "{text}: {hops:?}");
            assert!(hops[..most.min(3)].iter().all(|&packets| packets > 0), "{text}: {hops:?}");
            assert_eq!(hops.iter().sum::<u64>(), records.delivered[Via::Circuit as usize].packets);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_bit_identical_and_delivers_all_bytes(
        racks in 2_u32..5,
        flows in 1_u32..6,
        bytes in 1_u64..1_000_000,
        scheduler in prop::sample::select(vec!["", "scheduler: {name: strobe}\n", "scheduler: {name: eclipse, demand: adu}\n"]),
        control in prop::sample::select(vec!["reno", "cubic", "dctcp", "retcp"]),
        shorter in 1_u64..10,
        jitter in 0_u64..1000,
        seed: u64,
    ) {
        let text = format!(
            "network: {{racks: {racks}, hosts_per_rack: 2, jitter: {jitter}ns, mark_at: 10}}\n{scheduler}tcp: {{control: {control}}}\n\
             workload: {{long: {{from: 0, to: 1, flows: {flows}, bytes: {bytes}B}}}}\nhorizon: 10s\nseed: {seed}\n"
        );
        // reTCP needs announced circuits.
        prop_assume!(control != "retcp" || !scheduler.is_empty());
        let outcome = run(&text);
        let records = &outcome.records;
        prop_assert!(records.flows.iter().all(|flow| flow.delivered == bytes && flow.finished.is_some()));
        prop_assert_eq!(Some(outcome.ended), records.flows.iter().map(|flow| flow.finished).max().flatten());
        prop_assert_eq!(&outcome, &run(&text));
        // A longer horizon does not change a run. A run cut at any time loses no byte.
        prop_assert_eq!(&outcome, &run(&text.replace("horizon: 10s", "horizon: 9s")));
        let cut = outcome.ended.0 * shorter / 10;
        let cut = run(&text.replace("horizon: 10s", &format!("horizon: {}ns", cut.max(1))));
        for outcome in [&outcome, &cut] {
            let [packet, circuit] = outcome.records.delivered;
            let arrived = packet.bytes + circuit.bytes + outcome.records.local.bytes;
            let undelivered = outcome.records.dropped.bytes + outcome.bytes_in_switch;
            prop_assert_eq!(outcome.records.sent.bytes, arrived + undelivered);
        }
    }
}
