//! Replays of traces at a server in memory: times, latencies and failures of requests.

use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_nfs::calls::WRITE;
use leeward_nfs::replay::{ReplayArguments, ReplaySettings, ReplayStop, Summary, remove_file, replay};
use leeward_traces::{Kind, Request};

use crate::support::memory_server::{Behaviour, MemoryServer};

const MIB: u64 = 1 << 20;
/// A device that serves one request at a time.
const SERIAL: Behaviour =
    Behaviour { delay: Duration::from_millis(4), is_serial: true, ignored: None, answers_backwards: false };

fn arguments(server: &MemoryServer) -> ReplayArguments {
    let port = Some(server.address.port());
    ReplayArguments {
        nfs: "127.0.0.1:/vol".to_owned(),
        nfsport: port,
        mountport: port,
        file_size: Some("4MiB".to_owned()),
        keep: true,
        ..ReplayArguments::default()
    }
}

/// Requests of 4 KiB in a row, one each number of milliseconds.
fn requests(kind: Kind, count: u64, millis: u64) -> Vec<Request> {
    let request =
        |at: u64| Request { at: Nanos(at * millis * 1_000_000), kind, size: 4096, offset: Some(at * 4096) };
    (0..count).map(request).collect()
}

fn run(arguments: ReplayArguments, requests: &[Request]) -> Result<Summary, ReplayStop<()>> {
    replay(&ReplaySettings::new(arguments).unwrap(), "trace.csv", requests, |share| {
        assert!((0.0..=1.0).contains(&share));
        Ok(())
    })
}

fn milliseconds(time: Option<f64>) -> f64 {
    1e3 * time.expect("a time")
}

#[test]
fn requests_are_sent_at_their_times_and_latencies_count_from_there() {
    let server =
        MemoryServer::on_thread(Behaviour { delay: Duration::from_millis(5), ..Behaviour::default() });
    let summary = run(arguments(&server), &requests(Kind::Read, 40, 10)).unwrap();
    assert_eq!((summary.requests, summary.reads, summary.read_bytes), (40, 40, 40 * 4096));
    assert_eq!((summary.failed, summary.short, summary.unanswered, summary.problem.clone()), (0, 0, 0, None));
    assert!(summary.elapsed_s >= 0.395, "{summary:?}");
    assert!(milliseconds(summary.latency.p50_s) >= 5.0, "{summary:?}");
    assert_eq!(summary.lateness.requests, 40);
    assert!(milliseconds(summary.lateness.p50_s) < 5.0, "{summary:?}");
    // The file was made with all of its bytes, by writes in order.
    assert_eq!(server.file(b"leeward-replay").len() as u64, 4 * MIB);
    let offsets: Vec<u64> =
        server.seen().iter().filter(|seen| seen.procedure == WRITE).map(|seen| seen.offset).collect();
    assert_eq!(offsets, [0, MIB, 2 * MIB, 3 * MIB]);
}

#[test]
fn a_slow_server_delays_replies_and_no_requests() {
    let server = MemoryServer::on_thread(SERIAL);
    // The server takes four times as long as there is.
    let summary = run(arguments(&server), &requests(Kind::Read, 60, 1)).unwrap();
    assert!(milliseconds(summary.latency.max_s) > 120.0, "{summary:?}");
    assert!(milliseconds(summary.lateness.p50_s) < 5.0, "{summary:?}");
    assert!(summary.most_open > 20, "{summary:?}");
}

#[test]
fn a_closed_loop_keeps_its_number_of_requests_open_and_repeats_the_trace() {
    let server =
        MemoryServer::on_thread(Behaviour { delay: Duration::from_millis(2), ..Behaviour::default() });
    let given = ReplayArguments {
        closed: Some(3),
        duration: Some("300ms".to_owned()),
        connections: Some(2),
        ..arguments(&server)
    };
    let summary = run(given, &requests(Kind::Read, 7, 1_000)).unwrap();
    assert_eq!((summary.most_open, server.most()), (3, 3));
    assert!(summary.reads > 20 && summary.reads < 500, "{summary:?}");
    let once = ReplayArguments { closed: Some(3), ..arguments(&server) };
    assert_eq!(run(once, &requests(Kind::Read, 7, 1_000)).unwrap().requests, 7);
}

#[test]
fn writes_of_any_size_arrive_whole_and_a_file_is_filled_once() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let sizes = [1, 2, 3, 4, 4097, MIB];
    let requests: Vec<Request> = sizes
        .iter()
        .enumerate()
        .map(|(at, &size)| Request { at: Nanos(at as u64), kind: Kind::Write, size, offset: Some(0) })
        .collect();
    let summary = run(arguments(&server), &requests).unwrap();
    assert_eq!((summary.writes, summary.written_bytes), (6, sizes.iter().sum::<u64>()));
    assert_eq!(summary.problem, None);
    let file = server.file(b"leeward-replay");
    assert!(file.len() as u64 == 4 * MIB && file[..MIB as usize].iter().all(|&byte| byte == 0xa5));
    let before = server.seen().len();
    run(arguments(&server), &requests[..1]).unwrap();
    assert_eq!(server.seen().len(), before + 1, "the file is there already");
}

#[test]
fn a_file_that_a_replay_made_is_removed_at_its_end_however_it_ends() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let given = || ReplayArguments { keep: false, file: Some("own".to_owned()), ..arguments(&server) };
    let summary = run(given(), &requests(Kind::Read, 2, 1)).unwrap();
    assert_eq!((summary.failed, summary.short, summary.left), (0, 0, None));
    assert!(!server.has_file(b"own"));
    let settings = ReplaySettings::new(given()).unwrap();
    let mut ticks = 0;
    let stopped = replay(&settings, "trace.csv", &requests(Kind::Read, 100, 20), |_| {
        ticks += 1;
        // The first calls are those of the file.
        if ticks > 6 { Err("enough") } else { Ok(()) }
    });
    assert!(matches!(&stopped, Err(ReplayStop::Stopped("enough"))) && !server.has_file(b"own"));
    let past = ReplayArguments { at: Some(1e9), ..given() };
    assert!(run(past, &requests(Kind::Read, 1, 1)).is_err() && !server.has_file(b"own"));
    // One that was there is not the replay's.
    server.put(b"own", vec![7; 4 * MIB as usize]);
    run(given(), &requests(Kind::Read, 2, 1)).unwrap();
    assert!(server.has_file(b"own"));
    // Each has a file of its own by default.
    let default = ReplayArguments { file: None, ..given() };
    let summary = run(default, &requests(Kind::Read, 2, 1)).unwrap();
    assert!(summary.file.starts_with("leeward-replay-") && !server.has_file(summary.file.as_bytes()));
}

#[test]
fn a_new_file_may_not_be_there_already_and_is_removed() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let new = || ReplayArguments { new: true, ..arguments(&server) };
    run(new(), &requests(Kind::Read, 2, 1)).unwrap();
    let again = run(new(), &requests(Kind::Read, 2, 1));
    let is_refused = |error: &str| error.ends_with("`leeward-replay`: the file exists");
    assert!(matches!(&again, Err(ReplayStop::Input(error)) if is_refused(&error.to_string())), "{again:?}");
    let settings = ReplaySettings::new(new()).unwrap();
    // One that has gone already is no error.
    for _ in 0..2 {
        remove_file(&settings).unwrap();
    }
    run(new(), &requests(Kind::Read, 2, 1)).unwrap();
}

#[test]
fn requests_without_a_reply_are_counted_and_each_request_is_a_row() {
    let server = MemoryServer::on_thread(Behaviour { ignored: Some(8192), ..Behaviour::default() });
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.csv");
    let given = ReplayArguments {
        patience: Some("300ms".to_owned()),
        out: Some(rows.display().to_string()),
        ..arguments(&server)
    };
    let summary = run(given, &requests(Kind::Read, 5, 5)).unwrap();
    assert_eq!((summary.requests, summary.reads, summary.unanswered), (5, 4, 1));
    let text = std::fs::read_to_string(rows).unwrap();
    let states: Vec<&str> = text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(states, ["done", "done", "unanswered", "done", "done"]);
}

#[test]
fn a_server_that_goes_and_an_export_that_is_not_there_end_the_replay() {
    let server =
        MemoryServer::on_thread(Behaviour { delay: Duration::from_millis(300), ..Behaviour::default() });
    let missing = ReplayArguments { nfs: "127.0.0.1:/other".to_owned(), ..arguments(&server) };
    match run(missing, &requests(Kind::Read, 1, 1)) {
        Err(ReplayStop::Input(error)) => {
            assert_eq!(error.to_string(), "--nfs: 127.0.0.1:/other: no such export")
        }
        other => panic!("{other:?}"),
    }
    // The file has its size, so that no write waits for the server.
    server.put(b"leeward-replay", vec![7; 4 * MIB as usize]);
    let past = ReplayArguments { at: Some(1e9), ..arguments(&server) };
    match run(past, &requests(Kind::Read, 1, 1)) {
        Err(ReplayStop::Input(error)) => assert_eq!(error.file, "--at", "{error}"),
        other => panic!("{other:?}"),
    }
    let settings = ReplaySettings::new(arguments(&server)).unwrap();
    let interrupted = replay(&settings, "trace.csv", &requests(Kind::Read, 100, 20), |_| Err("enough"));
    assert!(matches!(&interrupted, Err(ReplayStop::Stopped("enough"))), "{interrupted:?}");
    let mut server = Some(server);
    let stopped = replay(&settings, "trace.csv", &requests(Kind::Read, 100, 20), |share| {
        if share > 0.2
            && let Some(server) = server.take()
        {
            server.stop();
        }
        Ok::<(), ()>(())
    });
    assert!(matches!(&stopped, Err(ReplayStop::Failed(_))), "{stopped:?}");
}
