//! Requests of workload files: the times between traces, and the rules of enforcers that files state.

use leeward_fabric::input::{Files, InputError, Text};
use leeward_fabric::{Cluster, Nanos};
use leeward_requests::{EnforcerRules, OverLimit, Replay, Scheduling, Sources};
use leeward_slo::bound::Method;
use leeward_slo::file::{TraceStart, Workloads};
use leeward_testing::rows::{check_rows, equal};

const CLUSTER: &str = "{racks: 1, hosts_per_rack: 3, nic: 8Mbps, rack_link: 24Mbps}";

/// Requests of 800 bytes in Leeward's dialect, which take 1 ms on a link of 8 Mb/s.
fn leeward(seconds: &[&str]) -> String {
    let rows: String = seconds.iter().map(|at| format!("{at},write,800\n")).collect();
    format!("seconds,kind,size\n{rows}")
}

/// A request for each time, in microseconds since 1970.
fn alibaba(micros: &[u64]) -> String {
    micros.iter().map(|at| format!("419,W,8192,800,{at}\n")).collect()
}

/// The same in ticks of 100 ns since 1601.
fn msr(micros: &[u64]) -> String {
    let ticks = |micros: &u64| (11_644_473_600_000_000 + micros) * 10;
    micros.iter().map(|at| format!("{},usr,0,Write,0,800,41286\n", ticks(at))).collect()
}

/// A file with a workload for each trace, from clients of their own to one server.
fn workloads(traces: &[String], head: &str) -> (Workloads, Cluster) {
    let cluster = Cluster::from_text("cluster", CLUSTER).unwrap();
    let entry = |at: usize| {
        format!("  - {{name: w{at}, client: r0h{at}, server: r0h2, trace: t{at}, priority: {at}}}\n")
    };
    let entries: String = (0..traces.len()).map(entry).collect();
    let network = "network: {overhead: 200, payload: 1, other: 0}";
    let text = format!("margin: 0%\nstages: [network-in]\n{network}\n{head}\nworkloads:\n{entries}");
    let files = Files::default();
    let open = |name: &str| open(traces, name);
    (Workloads::from_text("w", &text, &cluster, &files, &open, None).unwrap(), cluster)
}

fn open(traces: &[String], name: &str) -> Result<Text, InputError> {
    let number: usize = name.trim_start_matches('t').parse().unwrap();
    Text::from_bytes(name, traces[number].as_bytes())
}

/// Time of each first request in nanoseconds, and the notes.
fn firsts(traces: &[String], start: TraceStart) -> (Vec<u64>, Vec<String>) {
    let (workloads, _) = workloads(traces, "");
    let sources = Sources::read(&workloads, start, &|name| open(traces, name)).unwrap();
    let firsts = sources.arrivals.iter().map(|requests| requests.as_ref().unwrap()[0].at.0);
    (firsts.collect(), sources.notes)
}

#[test]
fn traces_keep_the_times_between_them() {
    let day = 1_577_808_000_000_000;
    let rows = [
        // Half a millisecond apart in recordings that started together.
        (leeward(&["3", "4"]), leeward(&["3.0005", "4.0005"]), [0, 500_000]),
        (leeward(&["3.25", "4"]), leeward(&["3", "4"]), [250_000_000, 0]),
        // Absolute times of two dialects on one clock.
        (alibaba(&[day, day + 2_000_000]), msr(&[day + 7, day + 1_000_007]), [0, 7_000]),
        // Recordings have nothing in common with absolute times.
        (leeward(&["3", "4"]), alibaba(&[day, day + 2_000_000]), [0, 0]),
    ];
    check_rows(rows, |(one, other, expected)| {
        let traces = [one, other];
        equal(&firsts(&traces, TraceStart::Recorded).0[..], &expected[..])?;
        equal(&firsts(&traces, TraceStart::Together).0[..], &[0_u64, 0][..])
    });
}

#[test]
fn notes_name_traces_that_meet_no_other_and_clocks_that_have_nothing_in_common() {
    let day = 1_577_808_000_000_000;
    let apart = [leeward(&["0", "1"]), leeward(&["3600", "3601"])];
    let (firsts_apart, notes) = firsts(&apart, TraceStart::Recorded);
    assert_eq!(firsts_apart, [0, 3600 * Nanos::SECOND.0]);
    assert!(notes.len() == 2 && notes[0].starts_with("t0: its requests come when no other"), "{notes:?}");
    assert!(firsts(&apart, TraceStart::Together).1.is_empty());
    let mixed = [leeward(&["3", "4"]), alibaba(&[day, day + 2_000_000])];
    let (_, notes) = firsts(&mixed, TraceStart::Recorded);
    assert!(notes.len() == 1 && notes[0].contains("times since 1970"), "{notes:?}");
    let meeting = [leeward(&["0", "1"]), leeward(&["1", "2"])];
    assert!(firsts(&meeting, TraceStart::Recorded).1.is_empty());
}

#[test]
fn correlated_traces_meet_in_a_replay_as_they_met_when_they_were_recorded() {
    // Each request of the second workload comes half a millisecond after one of the first, which takes 1 ms at the
    // server's link, as it does itself. It then waits for half a millisecond; together, it would wait for 1 ms.
    let traces = [leeward(&["1", "2", "3"]), leeward(&["1.0005", "2.0005", "3.0005"])];
    let (workloads, cluster) = workloads(&traces, "");
    let placed = workloads.system(&cluster).unwrap();
    let rows = [(TraceStart::Recorded, 2_500_000), (TraceStart::Together, 3_000_000)];
    check_rows(rows, |(start, worst)| {
        let sources = Sources::read(&workloads, start, &|name| open(&traces, name)).unwrap();
        let replay = Replay {
            system: &placed.system,
            bounds: workloads.bounds,
            method: Method::Dnc,
            over: OverLimit::Held,
            order: Scheduling::Priority,
            arrivals: sources.arrivals,
            tails: Vec::new(),
        };
        let result = replay.run().unwrap();
        equal(&result.workloads[1].measured.unwrap().worst, &Nanos(worst))
    });
}

#[test]
fn handling_of_requests_over_a_limit_is_that_of_the_workload_its_stage_or_the_file() {
    let traces = [leeward(&["1", "2"]), leeward(&["1", "2"])];
    let rows = [
        ("", Some(OverLimit::Held)),
        ("over: demoted", Some(OverLimit::Demoted)),
        ("over: {storage: demoted}", None),
    ];
    check_rows(rows, |(head, uniform)| {
        let (workloads, cluster) = workloads(&traces, head);
        let placed = workloads.system(&cluster).unwrap();
        let rules = EnforcerRules::of_file(&workloads, &placed.system, workloads.bounds);
        equal(&rules.uniform_over(), &uniform)?;
        equal(&rules.caps, &vec![None; placed.system.queues.len()])
    });
}
