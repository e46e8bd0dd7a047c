//! Workloads of hosts, and the order of their pieces.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::Nanos;
use leeward_packets::workload::collective::Collective;
use leeward_packets::workload::lists::{self, Transfer};
use leeward_packets::workload::pipeline::{ANSWERS, DATA, Dfsio, Pipeline};
use leeward_packets::workload::rings::{BIG, Rings};
use leeward_packets::workload::{Driver, Flow, Piece, Place, Workload, WorkloadError};
use leeward_testing::golden;
use proptest::prelude::*;

fn place(rack: u32, host: u32) -> Place {
    Place { rack, host }
}

fn ranks(count: u32) -> Vec<Place> {
    (0..count).map(|rank| place(rank % 4, rank / 4)).collect()
}

fn collective(count: u32, bytes: u64, rounds: u32) -> Collective {
    Collective { racks: 4, hosts: 16, ranks: ranks(count), bytes, rounds, compute: Nanos(7) }
}

/// Carries out a workload over a network in which each flow has its own time per piece, and sends its pieces one after
/// another. Returns the write and arrival times of each piece.
fn carry_out(workload: &Workload, takes: impl Fn(u32) -> u64) -> Vec<(Nanos, Nanos)> {
    let mut driver = Driver::new(workload.clone());
    let mut events: BTreeSet<(Nanos, u32, Option<u64>)> =
        driver.first().into_iter().map(|(at, piece)| (at, piece, None)).collect();
    let mut times = vec![(Nanos(u64::MAX), Nanos(u64::MAX)); workload.pieces().len()];
    let mut flows = vec![(Nanos(0), 0, false); workload.flows().len()];
    let mut due = Vec::new();
    while let Some((now, piece, delivered)) = events.pop_first() {
        let flow = workload.pieces()[piece as usize].flow;
        let (free, written, closed) = &mut flows[flow as usize];
        if let Some(delivered) = delivered {
            times[piece as usize].1 = now;
            driver.arrive(now, flow, delivered, &mut due);
            events.extend(due.drain(..).map(|(at, piece)| (at, piece, None)));
            continue;
        }
        assert_eq!(times[piece as usize].0, Nanos(u64::MAX), "piece {piece} is written twice");
        times[piece as usize].0 = now;
        let write = driver.write(piece);
        assert!(!*closed && write.opens == (*written == 0) && write.flow == flow);
        (*free, *written, *closed) =
            ((*free).max(now).plus(Nanos(takes(flow))), *written + write.bytes, write.closes);
        events.insert((*free, piece, Some(*written)));
    }
    assert!(driver.is_finished());
    assert!(flows.iter().all(|&(_, written, closed)| closed || written == 0));
    times
}

/// Checks that every piece is written exactly one wait after the last piece that it waits for.
fn check_order(workload: &Workload, times: &[(Nanos, Nanos)]) {
    for (number, piece) in workload.pieces().iter().enumerate() {
        let last = workload.after(number as u32).iter().map(|&after| times[after as usize].1).max();
        assert_eq!(times[number].0, last.unwrap_or_default().plus(piece.wait), "piece {number}");
    }
}

/// Returns the bytes that each host sends.
fn sent(workload: &Workload) -> BTreeMap<Place, u64> {
    let mut sent = BTreeMap::new();
    for piece in workload.pieces() {
        *sent.entry(workload.flows()[piece.flow as usize].source).or_default() += piece.bytes;
    }
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_piece_is_written_once_and_not_before_its_time(
        pieces in proptest::collection::vec((0u32..6, 1u64..1000, 0u64..50, proptest::collection::vec(any::<u32>(), 0..4)), 1..80),
        takes in proptest::collection::vec(1u64..40, 6),
    ) {
        let mut workload = Workload::new(2, 6);
        for host in 0..6 {
            workload.add_flow(Flow { source: place(0, host), destination: place(1, host), class: 0 }).unwrap();
        }
        for (number, (flow, bytes, wait, after)) in pieces.into_iter().enumerate() {
            let after: BTreeSet<u32> = after.into_iter().filter(|_| number > 0).map(|after| after % number.max(1) as u32).collect();
            let after: Vec<u32> = after.into_iter().collect();
            workload.add_piece(Piece { flow, bytes, wait: Nanos(wait) }, &after).unwrap();
        }
        let times = carry_out(&workload, |flow| takes[flow as usize]);
        check_order(&workload, &times);
    }

    #[test]
    fn collectives_send_the_bytes_of_the_formulas(count in 2u32..20, each in 1u64..5000, rounds in 1u32..4, parts in 1usize..6) {
        let (n, bytes) = (u64::from(count), each * u64::from(count));
        // A part has at least one byte.
        let parts = parts.min(bytes as usize);
        let collective = collective(count, bytes, rounds);
        let ring = collective.ring_all_reduce().unwrap();
        // Each rank sends 2 (n - 1) / n of the bytes.
        for (rank, sent) in sent(&ring) {
            prop_assert_eq!(sent, u64::from(rounds) * 2 * (n - 1) * each, "{:?}", rank);
        }
        let tree = collective.tree_all_reduce(parts).unwrap();
        prop_assert_eq!(tree.bytes(), u64::from(rounds) * 2 * (n - 1) * bytes);
        let all = collective.all_to_all().unwrap();
        for (_, sent) in sent(&all) {
            prop_assert_eq!(sent, u64::from(rounds) * (n - 1) * each);
        }
        // If every piece takes the same time, the total time is the number of steps.
        let took = |workload: &Workload| {
            let times = carry_out(workload, |_| 1000);
            check_order(workload, &times);
            times.iter().map(|times| times.1.0).max().unwrap()
        };
        prop_assert_eq!(took(&ring), u64::from(rounds) * (7 + 2000 * (n - 1)));
        prop_assert_eq!(took(&all), u64::from(rounds) * 1007);
        let depth = u64::from(count.ilog2());
        let each_round = 7 + 2000 * depth + 1000 * (parts as u64 - 1);
        prop_assert!(took(&tree) >= each_round && took(&tree) <= u64::from(rounds) * (each_round + 1000 * parts as u64));
    }

    #[test]
    fn indivisible_sizes_are_sent_without_loss(count in 2u32..20, bytes in 20u64..5000) {
        let ring = collective(count, bytes, 1).ring_all_reduce().unwrap();
        prop_assert_eq!(ring.bytes(), 2 * (u64::from(count) - 1) * bytes);
    }

    #[test]
    fn files_are_written_to_every_copy_with_a_window_of_packets(
        bytes in 1u64..3_000_000,
        copies in 1u32..4,
        window in 1u32..12,
        local in any::<bool>(),
        takes in proptest::collection::vec(1u64..100_000, 8),
    ) {
        let pipeline = Pipeline { block: 1 << 20, packet: 64 << 10, window, ..Pipeline::default() };
        let mut workload = Workload::new(4, 4);
        let writer = place(0, 0);
        let targets = |block: u32| {
            let others = (1..=copies).map(|copy| place((block + copy) % 4, copy));
            if local { std::iter::once(writer).chain(others).collect() } else { others.collect::<Vec<_>>() }
        };
        pipeline.write(&mut workload, writer, Nanos(5), bytes, targets).unwrap();
        let class_bytes = |class| {
            let is_class = |piece: &&Piece| workload.flows()[piece.flow as usize].class == class;
            workload.pieces().iter().filter(is_class).map(|piece| piece.bytes).sum::<u64>()
        };
        prop_assert_eq!(class_bytes(DATA), bytes * u64::from(copies));
        let packets = (0..bytes.div_ceil(1 << 20)).map(|block| (bytes - (block << 20)).min(1 << 20).div_ceil(64 << 10));
        prop_assert_eq!(class_bytes(ANSWERS), 32 * u64::from(copies) * packets.sum::<u64>());
        let times = carry_out(&workload, |flow| takes[flow as usize % takes.len()]);
        check_order(&workload, &times);
        // Data of the writer that is sent and not yet answered.
        let mut changes = Vec::new();
        for (piece, times) in workload.pieces().iter().zip(&times) {
            let flow = workload.flows()[piece.flow as usize];
            if flow.source == writer && flow.class == DATA {
                changes.push((times.0, 1, 1i64));
            } else if flow.destination == writer && flow.class == ANSWERS {
                changes.push((times.1, 0, -1));
            }
        }
        changes.sort();
        let mut open = 0;
        for (_, _, change) in changes {
            open += change;
            prop_assert!((0..=i64::from(window)).contains(&open), "{open} packets without an answer");
        }
        prop_assert_eq!(open, 0);
    }
}

#[test]
fn etalons_files_cross_racks_once_for_each_copy_but_the_first() {
    // Section 6: 64 writers of 400 MB on 8 racks, with the first copy at the writer, give 25 GB for each other copy.
    let dfsio = Dfsio {
        racks: 8,
        hosts: 16,
        mappers: 8,
        file: 400_000_000,
        pipeline: Pipeline { packet: 4 << 20, ..Pipeline::default() },
    };
    let next_rack = |writer: Place, block: u32| {
        let rack = (writer.rack + 1) % 8;
        let copy = |copy| place(rack, (writer.host + block + copy) % 16);
        vec![writer, copy(0), copy(1)]
    };
    let workload = dfsio.workload(next_rack).unwrap();
    let across = |piece: &&Piece| {
        let flow = workload.flows()[piece.flow as usize];
        flow.class == DATA && flow.source.rack != flow.destination.rack
    };
    let bytes: u64 = workload.pieces().iter().filter(across).map(|piece| piece.bytes).sum();
    assert_eq!(bytes, 64 * 400_000_000);
}

/// Returns the offered bytes per second by pair of racks: all bytes except the last flow's, over the time until the
/// last flow starts.
fn offered(flows: &[Transfer]) -> BTreeMap<(u32, u32), (u32, f64, usize)> {
    let mut pairs: BTreeMap<(u32, u32), Vec<&Transfer>> = BTreeMap::new();
    for transfer in flows {
        pairs.entry((transfer.flow.source.rack, transfer.flow.destination.rack)).or_default().push(transfer);
    }
    let rate = |flows: Vec<&Transfer>| {
        let (last, rest) = flows.split_last().unwrap();
        let bytes: u64 = rest.iter().map(|transfer| transfer.bytes).sum();
        (last.flow.class, bytes as f64 / last.start.as_secs_f64(), flows.len())
    };
    pairs.into_iter().map(|(pair, flows)| (pair, rate(flows))).collect()
}

fn transfers(workload: &Workload) -> Vec<Transfer> {
    let pieces = workload.pieces().iter();
    pieces
        .map(|piece| Transfer {
            flow: workload.flows()[piece.flow as usize],
            start: piece.wait,
            bytes: piece.bytes,
        })
        .collect()
}

#[test]
fn ring_responses_follow_their_flows_and_do_not_change_the_draws() {
    let plain = Rings { end: Nanos(50_000_000), ..Rings::paper(1, 7) };
    let requests = plain.workload().unwrap();
    let both = Rings { answer: 60, ..plain }.workload().unwrap();
    assert_eq!(both.flows().len(), 2 * requests.flows().len());
    for (at, (flow, piece)) in requests.flows().iter().zip(requests.pieces()).enumerate() {
        let [request, answer] = [2 * at, 2 * at + 1];
        assert_eq!((both.flows()[request], both.pieces()[request].bytes), (*flow, piece.bytes));
        let back = both.flows()[answer];
        assert_eq!((back.source, back.destination), (flow.destination, flow.source));
        assert_eq!(back.class, flow.class + leeward_packets::workload::rings::ANSWER);
        assert_eq!((both.pieces()[answer].bytes, both.after(answer as u32)), (60, &[request as u32][..]));
    }
}

#[test]
fn rings_offer_a_third_of_each_switch() {
    for (rings, own_rack, small_pairs, small_share) in
        [(1, true, 7, 8.0), (2, true, 6, 8.0), (1, false, 6, 6.0), (2, false, 5, 5.0)]
    {
        let settings = Rings { own_rack, ..Rings::paper(rings, 7) };
        let workload = settings.workload().unwrap();
        assert_eq!(workload, settings.workload().unwrap());
        assert_ne!(workload, Rings { seed: 8, ..settings }.workload().unwrap());
        let pairs = offered(&transfers(&workload));
        for rack in 0..8 {
            let from_rack = pairs.iter().filter(|((from, _), _)| *from == rack);
            let big: Vec<_> = from_rack.clone().filter(|(_, (class, ..))| *class == BIG).collect();
            let ahead: BTreeSet<u32> = big.iter().map(|((from, to), _)| (to + 8 - from) % 8).collect();
            assert_eq!(ahead, (1..=rings).collect());
            let rate: f64 = big.iter().map(|(_, (_, rate, _))| rate * 8.0).sum();
            assert!((rate / (80e9 / 3.0) - 1.0).abs() < 1e-6, "{rate}");
            let small: Vec<f64> = from_rack
                .filter(|(_, (class, ..))| *class != BIG)
                .map(|(_, (_, rate, _))| rate * 8.0)
                .collect();
            assert_eq!(small.len(), small_pairs);
            assert!(
                small.iter().all(|rate| (rate / (10e9 / 3.0 / small_share) - 1.0).abs() < 1e-6),
                "{small:?}"
            );
        }
        let ends = workload.flows().iter().all(|flow| flow.source != flow.destination);
        assert!(ends && transfers(&workload).iter().all(|transfer| transfer.start < Nanos(2_000_000_000)));
    }
}

#[test]
fn rings_match_the_published_draws() {
    let Some(folder) = golden::folder("circuits") else { return };
    for (rings, spread) in [(1, 0.03), (2, 0.03)] {
        let content = golden::json(&folder.join(format!("workload_etalon_{rings}ring.json.gz")));
        let row = |row: &serde_json::Value| {
            let number = |at: usize| row[at].as_f64().unwrap();
            let [source, destination] =
                [0, 2].map(|at| place(number(at) as u32 - 1, number(at + 1) as u32 - 1));
            let flow = Flow { source, destination, class: number(6) as u32 };
            Transfer { flow, start: Nanos::from_secs_f64(number(4)), bytes: number(5) as u64 }
        };
        let flows: Vec<Transfer> = content["flows"].as_array().unwrap().iter().map(row).collect();
        // Some of the authors' flows are from a host to itself and cross no network.
        let crosses = |transfer: &&Transfer| transfer.flow.source != transfer.flow.destination;
        let crossing: Vec<Transfer> = flows.iter().filter(crosses).copied().collect();
        assert!(flows.len() - crossing.len() < 150);
        let theirs = lists::listed(8, 16, &crossing).unwrap();
        let ours = Rings::paper(rings, 92611).workload().unwrap();
        let [few, many] = [ours.pieces().len(), theirs.pieces().len()].map(|count| count as f64);
        assert!((few / many - 1.0).abs() < spread, "{few} flows, not {many}");
        assert!((ours.bytes() as f64 / theirs.bytes() as f64 - 1.0).abs() < spread);
        let [ours, theirs] = [transfers(&ours), flows].map(|flows| offered(&flows));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (pair, (class, rate, _)) in &theirs {
            let (our_class, our_rate, _) = ours[pair];
            assert!(
                our_class == *class && (our_rate / rate - 1.0).abs() < 1e-5,
                "{pair:?}: {our_rate}, not {rate}"
            );
        }
    }
}

#[test]
fn long_flows_go_from_host_to_host() {
    let workload = lists::long(8, 16, [0, 1], 16, 1 << 30).unwrap();
    assert_eq!((workload.flows().len(), workload.bytes()), (16, 16 << 30));
    assert!(workload.flows().iter().all(|flow| flow.source.host == flow.destination.host));
    assert_eq!(workload.flows().iter().map(|flow| flow.source.host).collect::<BTreeSet<_>>().len(), 16);
    assert_eq!(Driver::new(workload).first().len(), 16);
}

#[test]
fn invalid_workloads_are_named() {
    let mut workload = Workload::new(2, 2);
    let flow = Flow { source: place(0, 0), destination: place(1, 1), class: 0 };
    let errors = [
        workload.add_flow(Flow { source: place(2, 0), ..flow }).unwrap_err(),
        workload.add_flow(Flow { destination: place(0, 0), ..flow }).unwrap_err(),
        workload.add_piece(Piece { flow: 0, bytes: 1, wait: Nanos(0) }, &[]).unwrap_err(),
        Rings { rings: 8, ..Rings::paper(1, 0) }.workload().unwrap_err(),
        collective(1, 10, 1).ring_all_reduce().unwrap_err(),
        collective(4, 3, 1).all_to_all().unwrap_err(),
        collective(4, 4, 1).tree_all_reduce(5).unwrap_err(),
        lists::long(2, 0, [0, 1], 1, 1).unwrap_err(),
        Pipeline::default()
            .write(&mut workload, place(0, 0), Nanos(0), 1, |_| vec![place(0, 0)])
            .unwrap_err(),
    ];
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "flow 0: source r2h0 does not exist: the workload has 2 racks of 2 hosts, numbered from 0",
            "flow 0: r0h0 is both source and destination: expected two hosts",
            "piece 0: flow 0 does not exist: the workload has 0, numbered from 0",
            "rings: 8: must be above 0 and below the number of racks",
            "ranks: 1: must be at least 2",
            "bytes: 3: must be at least one for each rank",
            "parts: 5: must be above 0, and at most the number of bytes",
            "hosts: 0: must be above 0",
            "copies: block 0: none on another host: must be on distinct hosts, and at least one of them not the writer's",
        ]
    );
    workload.add_flow(flow).unwrap();
    let empty = workload.add_piece(Piece { flow: 0, bytes: 0, wait: Nanos(0) }, &[]).unwrap_err();
    assert_eq!(empty, WorkloadError::Empty { piece: 0 });
    let later = workload.add_piece(Piece { flow: 0, bytes: 1, wait: Nanos(0) }, &[0]).unwrap_err();
    assert_eq!(later.to_string(), "piece 0: waits for piece 0: expected an earlier piece");
}

#[test]
fn a_block_accepts_only_a_chain_of_the_same_length() {
    let mut workload = Workload::new(4, 2);
    let pipeline = Pipeline { block: 1 << 20, ..Pipeline::default() };
    let chain = |_| vec![place(0, 0), place(1, 0), place(1, 1)];
    pipeline.write(&mut workload, place(0, 0), Nanos(0), 3 << 20, chain).unwrap();
    assert_eq!(workload.blocks().iter().map(|block| block.left).collect::<Vec<_>>(), [3, 2, 1]);
    let (before, first) = (workload.clone(), workload.blocks()[1].first);
    assert_eq!(
        (workload.block_of_first_flow(first), workload.block_of_first_flow(first + 1)),
        (Some(1), None)
    );
    let wrong: [&[Place]; 5] = [
        &[place(0, 0), place(2, 0)],
        &[place(0, 1), place(2, 0), place(2, 1)],
        &[place(0, 0), place(2, 0), place(2, 0)],
        &[place(0, 0), place(2, 0), place(4, 0)],
        &[],
    ];
    for chain in wrong {
        let error = workload.set_chain(1, chain).unwrap_err().to_string();
        assert!(error.starts_with("copies: block 1 on"), "{error}");
        assert_eq!(workload, before);
    }
    workload.set_chain(1, &[place(0, 0), place(2, 0), place(3, 1)]).unwrap();
    let ends = |flow: usize| (workload.flows()[flow].source, workload.flows()[flow].destination);
    let first = first as usize;
    assert_eq!([ends(first), ends(first + 1)], [(place(0, 0), place(2, 0)), (place(2, 0), place(0, 0))]);
    assert_eq!([ends(first + 2), ends(first + 3)], [(place(2, 0), place(3, 1)), (place(3, 1), place(2, 0))]);
    let moved = first..first + 4;
    assert!(
        (0..12)
            .filter(|flow| !moved.contains(flow))
            .all(|flow| workload.flows()[flow] == before.flows()[flow])
    );
}
