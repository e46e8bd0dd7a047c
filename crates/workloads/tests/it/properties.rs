//! Properties of workloads from every source: bytes are conserved, times are in order, and the seed
//! determines all draws.

use std::collections::BTreeMap;
use std::fmt::Write;

use leeward_fabric::{Bytes, Endpoint, HostId, Load, ResourceId};
use leeward_placement::replicas::Layout;
use leeward_workloads::{FileWrite, Flow, Job, RateChange, Share, Source, Workload};
use proptest::prelude::*;

use crate::support::{check, read, seconds, source, tree};

const HORIZON: f64 = 1000.0;

/// A coflow: arrival in ms, mapper racks, reducer racks with megabytes.
type Shuffle = (u32, Vec<u8>, Vec<(u8, f64)>);

fn shuffles() -> impl Strategy<Value = Vec<Shuffle>> {
    let racks = prop::collection::vec(0u8..5, 1..5);
    let reducers = prop::collection::vec((0u8..5, 0.0..1e5), 0..5);
    prop::collection::vec((0u32..1_500_000, racks, reducers), 0..20).prop_map(|mut all| {
        all.sort_by_key(|shuffle| shuffle.0);
        all
    })
}

fn coflow_text(shuffles: &[Shuffle]) -> String {
    let mut text = format!("5 {}\n", shuffles.len());
    for (id, (arrival, mappers, reducers)) in shuffles.iter().enumerate() {
        write!(text, "{id} {arrival} {}", mappers.len()).unwrap();
        mappers.iter().for_each(|rack| write!(text, " {rack}").unwrap());
        write!(text, " {}", reducers.len()).unwrap();
        reducers.iter().for_each(|(rack, megabytes)| write!(text, " {rack}:{megabytes}").unwrap());
        text += "\n";
    }
    text
}

/// Jobs: seconds since the one before, bytes of output.
fn jobs() -> impl Strategy<Value = Vec<(u16, u64)>> {
    prop::collection::vec((0u16..100, prop_oneof![Just(0), 1..5_000_000_000_u64]), 1..30)
}

fn swim_text(jobs: &[(u16, u64)]) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for (id, (gap, output)) in jobs.iter().enumerate() {
        at += u64::from(*gap);
        writeln!(text, "job{id}\t{at}\t{gap}\t1\t2\t{output}").unwrap();
    }
    text
}

fn rack(cluster: &leeward_fabric::Cluster, end: Endpoint) -> u32 {
    match end {
        Endpoint::Domain(rack) => rack.0,
        Endpoint::Host(host) => cluster.fabric.rack_of(host).0,
        _ => unreachable!("no source writes to a device"),
    }
}

/// Any workload on a cluster of 12 hosts.
fn workload() -> impl Strategy<Value = Workload> {
    let at = || (0u32..100).prop_map(f64::from);
    let host = || (0u32..12).prop_map(HostId);
    let flow = (at(), host(), host(), 0u64..1000).prop_map(|(start, from, to, bytes)| Flow {
        start,
        from: Endpoint::Host(from),
        to: Endpoint::Host(to),
        bytes: Bytes(bytes),
        coflow: None,
    });
    let rate = (at(), 0u32..4, 0i64..1000);
    let rate =
        rate.prop_map(|(at, link, rate)| RateChange { at, resource: ResourceId(link), rate: Load(rate) });
    let job = at().prop_map(|start| Job { name: format!("at {start}"), start });
    let file = (at(), prop::option::of(any::<prop::sample::Index>()), host());
    let files = prop::collection::vec(file, 0..10);
    let vectors = (prop::collection::vec(flow, 0..10), prop::collection::vec(rate, 0..10));
    (vectors, prop::collection::vec(job, 1..10), files).prop_map(
        |((mut flows, mut rates), mut jobs, files)| {
            jobs.sort_by(|a, b| a.start.total_cmp(&b.start));
            let file = |(start, job, writer): (f64, Option<prop::sample::Index>, HostId)| FileWrite {
                start,
                job: job.map(|job| job.index(jobs.len()) as u32),
                writer,
                bytes: Bytes(1),
                block: Bytes(1),
                replicas: 3,
                layout: Layout::Chain,
                fetches: Vec::new(),
                flexible: false,
                pace: f64::INFINITY,
                failure: None,
                choices: None,
            };
            let mut files: Vec<_> = files.into_iter().map(file).collect();
            flows.sort_by(|a, b| a.start.total_cmp(&b.start));
            rates.sort_by(|a, b| a.at.total_cmp(&b.at));
            files.sort_by(|a, b| a.start.total_cmp(&b.start));
            Workload { flows, rates, files, jobs, ..Workload::default() }
        },
    )
}

/// Returns the rate of a link just after `at`.
fn carried(workload: &Workload, link: u32, at: f64) -> i64 {
    let mut before = workload.rates.iter().filter(|change| change.resource.0 == link && change.at <= at);
    before.next_back().map_or(0, |change| change.rate.0)
}

proptest! {
    #[test]
    fn every_byte_of_a_coflow_trace_is_in_a_flow_or_stays_in_its_rack(
        shuffles in shuffles(), hosts in any::<bool>(), seed in any::<u64>(),
    ) {
        let cluster = tree(5, 3);
        let spread = if hosts { "hosts" } else { "racks" };
        let source = source(&format!("{{coflow: {{file: f, spread: {spread}}}}}"));
        let loaded = read(&source, coflow_text(&shuffles).as_bytes(), &cluster, seed, HORIZON).unwrap();
        check(&loaded.workload, &cluster, HORIZON);
        // Bytes from rack to rack, of the trace and of the flows.
        let mut expected = BTreeMap::<(u32, u32), f64>::new();
        for (arrival, mappers, reducers) in &shuffles {
            for (to, megabytes) in reducers.iter().filter(|_| f64::from(*arrival) < HORIZON * 1e3) {
                for from in mappers.iter().filter(|from| *from != to) {
                    let bytes = megabytes * 1_048_576.0 / mappers.len() as f64;
                    *expected.entry((u32::from(*from), u32::from(*to))).or_default() += bytes;
                }
            }
        }
        for flow in &loaded.workload.flows {
            let pair = (rack(&cluster, flow.from), rack(&cluster, flow.to));
            *expected.get_mut(&pair).expect("a pair of the trace") -= flow.bytes.0 as f64;
        }
        for (pair, left) in expected {
            prop_assert!(left.abs() <= 2.0 * 5.0 * 20.0, "{pair:?}: {left} bytes");
        }
    }

    #[test]
    fn a_reducer_gets_exactly_its_bytes_from_its_mappers(megabytes in 0u32..1_000_000, mappers in 1usize..5) {
        let from = ["1", "2", "3", "4"][..mappers].join(" ");
        let text = format!("5 1\n1 0 {mappers} {from} 1 0:{megabytes}\n");
        let loaded = read(&source("{coflow: {file: f}}"), text.as_bytes(), &tree(5, 1), 0, HORIZON).unwrap();
        let bytes: Vec<u64> = loaded.workload.flows.iter().map(|flow| flow.bytes.0).collect();
        prop_assert_eq!(bytes.iter().sum::<u64>(), u64::from(megabytes) * 1_048_576);
        prop_assert!(bytes.iter().max().unwrap() - bytes.iter().min().unwrap() <= 1);
    }

    #[test]
    fn every_byte_of_a_job_is_in_one_of_its_files(jobs in jobs(), seed in any::<u64>()) {
        let cluster = tree(5, 3);
        let source = source("{swim: {file: f, bytes_per_writer: 100MB, block: 30MB, replicas: 2}}");
        let loaded = read(&source, swim_text(&jobs).as_bytes(), &cluster, seed, 1e9).unwrap();
        check(&loaded.workload, &cluster, 1e9);
        let mut written = vec![0; loaded.workload.jobs.len()];
        for file in &loaded.workload.files {
            prop_assert!(file.bytes.0 <= 100_000_000 && file.block == Bytes(30_000_000) && file.replicas == 2);
            written[file.job.unwrap() as usize] += file.bytes.0;
        }
        let output: Vec<u64> = jobs.iter().map(|job| job.1).filter(|&output| output > 0).collect();
        prop_assert_eq!(written, output);
    }

    #[test]
    fn every_byte_of_a_shuffle_is_fetched_or_already_local(
        jobs in jobs(), seed in any::<u64>(), mappers in 1u64..40, shuffle in 0u64..1_000_000_000,
    ) {
        let cluster = tree(5, 3);
        let text = swim_text(&jobs).replace("\t1\t2\t", &format!("\t9999999999\t{shuffle}\t"));
        let load = |phases: &str| {
            let source = source(&format!("{{swim: {{file: f, bytes_per_writer: 500MB{phases}}}}}"));
            read(&source, text.as_bytes(), &cluster, seed, 1e9).unwrap()
        };
        let (with, without) = (load(&format!(", phases: {{mappers: {mappers}}}")), load(""));
        prop_assert_eq!(&with, &load(&format!(", phases: {{mappers: {mappers}}}")));
        check(&with.workload, &cluster, 1e9);
        // 38 maps, on at most as many hosts as allowed.
        let most = mappers.min(15);
        let (mut all, mut remote) = (vec![0; with.workload.jobs.len()], vec![0; with.workload.jobs.len()]);
        let mut tasks = vec![0u64; with.workload.jobs.len()];
        for file in &with.workload.files {
            let job = file.job.unwrap() as usize;
            tasks[job] += 1;
            all[job] += file.fetches.iter().map(|fetch| fetch.bytes.0).sum::<u64>();
            remote[job] += file.remote_fetches(file.writer).map(|fetch| fetch.bytes.0).sum::<u64>();
            prop_assert!(file.fetches.len() as u64 <= most);
        }
        for ((all, remote), tasks) in all.into_iter().zip(remote).zip(tasks) {
            prop_assert_eq!(all, shuffle);
            // At most one part of each task is on its own host.
            let local = shuffle - remote;
            prop_assert!(local <= tasks * shuffle.div_ceil(tasks).div_ceil(most), "{local} of {shuffle} local");
        }
        // Files are the same with and without phases, except for their start.
        let of = |workload: &Workload| {
            let files = workload.files.iter().map(|file| (file.job, file.writer, file.bytes, file.replicas));
            let mut files: Vec<_> = files.collect();
            files.sort();
            (files, workload.jobs.clone())
        };
        prop_assert_eq!(of(&with.workload), of(&without.workload));
        prop_assert!(without.workload.files.iter().all(|file| file.fetches.is_empty()));
        // Jobs without output are background.
        let flows: u64 = with.workload.flows.iter().map(|flow| flow.bytes.0).sum();
        let only = jobs.iter().filter(|job| job.1 == 0).count() as u64;
        prop_assert!(flows <= only * shuffle && (most == 1 || only * shuffle < 100 || flows >= only * shuffle / 3));
    }

    #[test]
    fn each_round_of_a_matrix_carries_its_total_between_distinct_hosts(
        numbers in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1e6], 81), total in 0u64..1_000_000_000_000,
        rounds in 1u32..5, drawn in any::<bool>(), seed in any::<u64>(),
    ) {
        let cluster = tree(5, 2);
        let rows: Vec<String> = numbers.chunks(9).map(|row| {
            row.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
        }).collect();
        let text = rows.join("\n");
        let order = if drawn { "drawn" } else { "file" };
        let settings = format!("{{matrix: {{file: f, total: {total}B, every: 10s, order: {order}}}}}");
        let loaded = read(&source(&settings), text.as_bytes(), &cluster, seed, f64::from(rounds) * 10.0);
        let between = (0..81).any(|at| at % 9 != at / 9 && numbers[at] > 0.0);
        prop_assert_eq!(loaded.is_ok(), between);
        if let Ok(loaded) = loaded {
            check(&loaded.workload, &cluster, f64::from(rounds) * 10.0);
            let all: u64 = loaded.workload.flows.iter().map(|flow| flow.bytes.0).sum();
            prop_assert!(all.abs_diff(u64::from(rounds) * total) <= u64::from(rounds), "{all}");
            let again = read(&source(&settings), text.as_bytes(), &cluster, seed, f64::from(rounds) * 10.0);
            prop_assert_eq!(loaded, again.unwrap());
        }
    }

    #[test]
    fn thinning_leaves_jobs_intact_and_a_larger_share_has_more_of_them(
        jobs in jobs(), seed in any::<u64>(), less in 0.0..1.0, more in 0.0..1.0,
    ) {
        let (less, more) = if less < more { (less, more) } else { (more, less) };
        let cluster = tree(5, 3);
        let load = |keep: f64| {
            let Source::Swim(mut swim) = source("{swim: {file: f}}") else { unreachable!("the source is swim") };
            swim.keep = Share::new(keep).unwrap();
            read(&Source::Swim(swim), swim_text(&jobs).as_bytes(), &cluster, seed, 1e9).unwrap().workload
        };
        let (few, many) = (load(less), load(more));
        let of = |workload: &Workload, name: &str| -> Option<Vec<(Bytes, HostId)>> {
            let job = workload.jobs.iter().position(|job| job.name == name)? as u32;
            let files = workload.files.iter().filter(|file| file.job == Some(job));
            Some(files.map(|file| (file.bytes, file.writer)).collect())
        };
        for job in &few.jobs {
            prop_assert_eq!(of(&few, &job.name), of(&many, &job.name));
        }
    }

    #[test]
    fn a_window_is_the_same_part_of_the_whole(shuffles in shuffles(), from in 0u64..2000, length in 1u64..2000) {
        let cluster = tree(5, 3);
        let Source::Coflow(mut settings) = source("{coflow: {file: f, spread: hosts}}") else {
            unreachable!("the source is coflow")
        };
        let text = coflow_text(&shuffles);
        let whole = read(&Source::Coflow(settings.clone()), text.as_bytes(), &cluster, 3, 1e9).unwrap().workload;
        (settings.from, settings.duration) = (seconds(from), Some(seconds(length)));
        let part = read(&Source::Coflow(settings), text.as_bytes(), &cluster, 3, 1e9).unwrap().workload;
        let (from, until) = (from as f64, (from + length) as f64);
        // Hosts are drawn for each coflow by its number, so a window does not change them.
        let expected = whole.flows.iter().filter(|flow| flow.start >= from && flow.start - from < until - from);
        // The coflows of a window count from its first one.
        let before = whole.coflows.iter().filter(|coflow| coflow.arrive < from).count() as u32;
        let expected: Vec<Flow> = expected
            .map(|flow| Flow { start: flow.start - from, coflow: flow.coflow.map(|at| at - before), ..*flow })
            .collect();
        prop_assert_eq!(part.flows, expected);
        for (at, coflow) in (0..).zip(&part.coflows) {
            let same = &whole.coflows[(before + at) as usize];
            prop_assert_eq!((&coflow.id, coflow.bytes, coflow.flows), (&same.id, same.bytes, same.flows));
        }
    }

    #[test]
    fn merging_preserves_all_items_and_sums_rates(a in workload(), b in workload()) {
        let mut merged = a.clone();
        merged.merge(b.clone());
        prop_assert_eq!(merged.flows.len(), a.flows.len() + b.flows.len());
        prop_assert_eq!(merged.coflows.len(), a.coflows.len() + b.coflows.len());
        prop_assert!(merged.flows.is_sorted_by_key(|flow| flow.start));
        prop_assert!(merged.rates.is_sorted_by_key(|change| change.at));
        prop_assert!(merged.files.is_sorted_by_key(|file| file.start));
        prop_assert!(merged.jobs.is_sorted_by_key(|job| job.start));
        for link in 0..4 {
            for at in 0..100 {
                let at = f64::from(at);
                prop_assert_eq!(carried(&merged, link, at), carried(&a, link, at) + carried(&b, link, at));
            }
        }
        // Each file still has its own job.
        let named = |workload: &Workload| {
            let name = |file: &FileWrite| file.job.map(|job| workload.jobs[job as usize].name.clone());
            workload.files.iter().map(|file| (file.start.to_bits(), file.writer, name(file))).collect::<Vec<_>>()
        };
        let (mut expected, mut found) = (named(&a), named(&merged));
        expected.extend(named(&b));
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn merging_with_an_empty_workload_changes_nothing(a in workload()) {
        let (mut left, mut right) = (Workload::default(), a.clone());
        left.merge(a.clone());
        right.merge(Workload::default());
        prop_assert_eq!(&left, &a);
        prop_assert_eq!(&right, &a);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
}

#[test]
fn equal_seeds_give_equal_workloads_and_other_seeds_others() {
    let cluster = tree(15, 20);
    let swim = source("{swim: {file: f, keep: 0.5}}");
    let coflow = source("{coflow: {file: f, spread: hosts}}");
    let jobs: String = (0..200).map(|job| format!("job{job}\t{job}\t1\t0\t0\t2000000000\n")).collect();
    let load =
        |source: &Source, text: &str, seed| read(source, text.as_bytes(), &cluster, seed, HORIZON).unwrap();
    for (source, text) in
        [(&swim, jobs.as_str()), (&coflow, "3 1\n1 0 2 0 1 1 2:1\n"), (&source("{facebook: {}}"), "")]
    {
        let first = load(source, text, 1);
        assert_eq!(first, load(source, text, 1));
        assert_ne!(first.workload, load(source, text, 2).workload);
    }
}
