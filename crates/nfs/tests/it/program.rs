//! The program `leeward-nfs`: its errors, reports and signals, and kills without loss.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leeward_nfs::calls::{NFS, VERSION};

use crate::support::client::Client;
use crate::support::memory_server::{Behaviour, MemoryServer};
use crate::support::program::{Program, command};
use crate::support::{pattern, run};

/// Bytes of a block that a writer writes at once.
const BLOCK: usize = 20_000;

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

fn output(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("the program starts");
    (status.code(), String::from_utf8(stderr).expect("a text"))
}

#[test]
fn a_start_without_server_export_or_port_says_what_is_missing() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let free = free_port();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).unwrap();
    let cases: [(Command, i32, &[&str]); 8] = [
        (command("127.0.0.1:/other", server.address), 1, &["127.0.0.1:/other", "no such export"]),
        (command("127.0.0.1:/vol", free), 1, &["127.0.0.1:/vol", "no NFS version 3", "refused"]),
        // No name server has a name of this length.
        (command(&format!("{}:/vol", "a".repeat(64)), server.address), 1, &["aaaa:/vol", "unknown server"]),
        (
            {
                let mut command = command("127.0.0.1:/vol", server.address);
                command.args(["--listen", &taken.1]);
                command
            },
            1,
            &["--listen", "the port is in use"],
        ),
        (command("nas", server.address), 2, &["--export", "such as nas:/vol"]),
        (
            {
                let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-nfs"));
                command.args(["--export", "127.0.0.1:/vol"]);
                command
            },
            2,
            &["--allow: missing", "client lists of its exports do not apply", "such as 10.0.0.0/8, or all"],
        ),
        (
            {
                let mut command = command("127.0.0.1:/vol", server.address);
                command.args(["--workloads", "/nonexistent/w.yaml", "--cluster", "/nonexistent/c.yaml"]);
                command
            },
            2,
            &["/nonexistent/c.yaml", "no such file"],
        ),
        (
            {
                let mut command = command("127.0.0.1:/vol", server.address);
                command.args(["--device", "/nonexistent/ssd.json"]);
                command
            },
            2,
            &["/nonexistent/ssd.json", "no such file"],
        ),
    ];
    for (mut command, code, parts) in cases {
        let (actual, error) = output(&mut command);
        assert_eq!(actual, Some(code), "{error}");
        assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}: {parts:?}");
    }
}

#[test]
fn reports_are_lines_of_json_at_each_interval_and_at_the_end() {
    let server = MemoryServer::on_thread(Behaviour::default());
    let mut command = command("127.0.0.1:/vol", server.address);
    command.args(["--listen", "127.0.0.1:0", "-o", "json", "--interval", "100ms"]);
    let program = Program::start(command);
    run(async {
        let mut client = Client::connect(program.address).await;
        for at in 0..10 {
            assert!(client.write("file", at * 10, &pattern(at, 10)).await);
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    });
    let (code, text) = program.terminate();
    assert_eq!(code, Some(0));
    let reports: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(reports.len() >= 3, "{text}");
    for report in &reports {
        assert_eq!(report["exports"], serde_json::json!(["127.0.0.1:/vol"]));
    }
    let last = &reports[reports.len() - 1]["workloads"][0];
    assert_eq!(last["writes"], 10, "{last}");
    assert_eq!(last["written_bytes"], 100, "{last}");
    assert!(last["latency"]["p999_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{last}");
    assert_eq!(last["recent"]["requests"], 0, "{last}");
    let requests =
        |report: &serde_json::Value| report["workloads"][0]["recent"]["requests"].as_u64().unwrap_or(0);
    assert_eq!(reports.iter().map(requests).sum::<u64>(), 10, "intervals have each request once");
}

#[test]
fn a_hangup_reads_the_workloads_again_and_keeps_them_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let row = |name: &str, client: &str| {
        format!(
            "  - {{name: {name}, client: {client}, server: r0h2, unloaded: 1ms, curves: {{storage: [{{rate: 50%, burst: 1ms}}]}}}}\n"
        )
    };
    let cluster = "racks: 1\nhosts_per_rack: 3\nnic: 1Gbps\nrack_link: 4Gbps\n\
                   devices: [{name: ssd, read: 450MB/s, write: 330MB/s}]\n";
    let device =
        r#"{"table": [{"size_bytes": 4096, "read_iops": 10000, "write_iops": 10000}], "outstanding": 4}"#;
    let workloads = write("w.yaml", &format!("workloads:\n{}", row("mail", "r0h0")));
    let server = MemoryServer::on_thread(Behaviour::default());
    let mut command = command("127.0.0.1:/vol", server.address);
    command.args(["--listen", "127.0.0.1:0", "-o", "json", "--workloads", &workloads]);
    command.args(["--cluster", &write("cluster.yaml", cluster), "--device", &write("ssd.json", device)]);
    command.args(["--addresses", &write("names.csv", "address,host\n127.0.0.1,r0h0\n127.0.0.2,r0h1\n")]);
    let program = Program::start(command);
    write("w.yaml", "workloads: [");
    program.signal("-HUP");
    program.wait_for("workloads not replaced: ");
    let two = format!("workloads:\n{}{}", row("mail", "r0h0"), row("web", "r0h1"));
    write("w.yaml", &two);
    program.signal("-HUP");
    program.wait_for("workloads replaced: 2");
    run(async {
        for (address, writes) in [("127.0.0.1", 1), ("127.0.0.2", 2)] {
            let mut client = Client::connect_from(address, program.address).await;
            for _ in 0..writes {
                assert!(client.write("file", 0, b"data").await);
            }
        }
    });
    let (code, text) = program.terminate();
    assert_eq!(code, Some(0));
    let report: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a report")).expect("JSON");
    let writes =
        |at: usize| (report["workloads"][at]["workload"].clone(), report["workloads"][at]["writes"].clone());
    assert_eq!((writes(0), writes(1)), (("mail".into(), 1.into()), ("web".into(), 2.into())), "{text}");
}

#[test]
fn a_hangup_brings_no_limits_without_a_device_and_no_other_device() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let best_effort = "workloads:\n  - {name: backup, client: c0, server: s0, trace: x.csv}\n";
    let mail = "workloads:\n  - {name: mail, client: c0, server: s0, trace: x.csv, priority: 0, \
                slo: {percentile: 99, latency: 50ms}, limits: {storage: [{rate: 20%, burst: 8ms}]}}\n";
    let device = |iops: u32| {
        format!(r#"{{"table": [{{"size_bytes": 4096, "read_iops": {iops}, "write_iops": 1000}}]}}"#)
    };
    let server = MemoryServer::on_thread(Behaviour::default());
    let start = |more: &[&str]| {
        let mut command = command("127.0.0.1:/vol", server.address);
        command.args(["--listen", "127.0.0.1:0", "--workloads", &write("w.yaml", best_effort)]);
        command.args(["--addresses", &write("names.csv", "address,host\n10.0.0.1,c0\n")]).args(more);
        Program::start(command)
    };
    let program = start(&[]);
    write("w.yaml", mail);
    program.signal("-HUP");
    program.wait_for("workloads not replaced: --device: missing; the limits of workloads");
    write("ssd.json", &device(1000));
    write("w.yaml", &format!("device: ssd.json\n{mail}"));
    program.signal("-HUP");
    program.wait_for(
        "workloads not replaced: their device differs from that of the start; a restart applies it",
    );
    drop(program);
    let program = start(&["--device", &write("ssd.json", &device(1000))]);
    write("w.yaml", mail);
    program.signal("-HUP");
    program.wait_for("workloads replaced: 1");
    write("ssd.json", &device(2000));
    program.signal("-HUP");
    program.wait_for("workloads not replaced: their device differs");
}

/// Writes blocks of a file until `stops`, and again after each connection that ended. Returns the number of blocks.
fn write_blocks(to: SocketAddr, file: &str, stops: &AtomicBool) -> usize {
    run(async {
        let mut client = None;
        let mut block = 0;
        while !stops.load(Ordering::Relaxed) {
            let mut connected = match client.take() {
                Some(client) => client,
                None => match Client::try_connect("127.0.0.1", to).await {
                    Ok(client) => client,
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
                    }
                },
            };
            let data = pattern(block as u64, BLOCK);
            let is_written = connected.write(file, (block * BLOCK) as u64, &data).await
                && (block % 8 != 7 || connected.commit(file).await);
            if is_written {
                block += 1;
                client = Some(connected);
            }
        }
        block
    })
}

#[test]
fn a_proxy_that_is_killed_again_and_again_loses_nothing() {
    let server =
        MemoryServer::on_thread(Behaviour { delay: Duration::from_micros(200), ..Behaviour::default() });
    let address = free_port();
    let start = || {
        let mut command = command("127.0.0.1:/vol", server.address);
        command.args(["--listen", &address.to_string(), "--outstanding", "2"]);
        Program::start(command)
    };
    let stops = Arc::new(AtomicBool::new(false));
    let mut program = start();
    let files = ["one", "two", "three"];
    let writers = files.map(|file| {
        let stops = stops.clone();
        thread::spawn(move || write_blocks(address, file, &stops))
    });
    for round in 0..10 {
        thread::sleep(Duration::from_millis(60 + 17 * round));
        program.signal("-KILL");
        drop(program);
        program = start();
    }
    thread::sleep(Duration::from_millis(200));
    stops.store(true, Ordering::Relaxed);
    let blocks = writers.map(|writer| writer.join().expect("a writer"));
    for (file, blocks) in files.into_iter().zip(blocks) {
        assert!(blocks > 20, "{file}: {blocks} blocks");
        let expected: Vec<u8> = (0..blocks).flat_map(|block| pattern(block as u64, BLOCK)).collect();
        let written = server.file(file.as_bytes());
        assert!(written.len() >= expected.len() && written[..expected.len()] == expected, "{file}");
        run(async {
            let mut client = Client::connect(program.address).await;
            let read = client.read(file, 0, expected.len().min(1 << 20) as u32).await;
            assert!(read == expected[..read.len()]);
            assert!(client.try_call([NFS, VERSION, 0], &[]).await.is_some());
        });
    }
}
