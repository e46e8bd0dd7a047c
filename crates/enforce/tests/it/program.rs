//! The program `leeward-enforce-net`: its signals, its exit codes, and its words to systemd.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::host::{ADDRESSES, HOST, Host, RATE, promise};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leeward-enforce-net");

fn arguments(host: &Host) -> Vec<String> {
    let file = host.file().display().to_string();
    let words =
        ["--workloads", &file, "--host", HOST, "--interface", "eth0", "--rate", RATE, "--interval", "200ms"];
    words.map(str::to_owned).to_vec()
}

/// Waits for a line of the log.
fn wait_for(child: &mut Child, part: &str) {
    let log = BufReader::new(child.stderr.as_mut().expect("it is piped"));
    assert!(log.lines().any(|line| line.expect("text").contains(part)), "no line with {part}");
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("`kill` is installed").success());
}

#[test]
fn a_terminated_program_undoes_everything_and_a_killed_one_is_undone_by_the_next() {
    let Some(host) = Host::up() else { return };
    let before = host.rules();
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[(1e6, 64e3)])]);
    let path = host.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let start = || {
        let mut command = host.network.command(HOST, PROGRAM).expect("a host");
        command.args(arguments(&host)).env("NOTIFY_SOCKET", &path).env_remove("WATCHDOG_PID");
        command.stderr(Stdio::piped()).spawn().expect("a program")
    };
    for name in ["-TERM", "-INT", "-HUP"] {
        let mut child = start();
        wait_for(&mut child, "eth0: enforces 1 workloads by 3 classes");
        let mut message = [0; 1024];
        let length = socket.recv(&mut message).expect("a message");
        let message = String::from_utf8_lossy(&message[..length]).into_owned();
        assert_eq!(message, "READY=1\nSTATUS=enforces on eth0");
        signal(&child, name);
        assert!(child.wait().expect("its status").success(), "{name}");
        assert_eq!(host.rules(), before, "{name}");
        // The messages of its last seconds.
        socket.set_nonblocking(true).expect("a mode");
        while socket.recv(&mut [0; 1024]).is_ok() {}
        socket.set_nonblocking(false).expect("a mode");
    }
    let mut child = start();
    wait_for(&mut child, "eth0: enforces 1 workloads");
    signal(&child, "-KILL");
    child.wait().expect("its status");
    assert_ne!(host.rules(), before);
    let output =
        host.network.command(HOST, PROGRAM).expect("a host").arg("--undo").output().expect("a program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(host.rules(), before);
}

#[test]
fn exit_codes_tell_invalid_files_from_promises_that_are_not_enforced() {
    let Some(host) = Host::up() else { return };
    let before = host.rules();
    let code = |more: &[&str]| {
        let mut command = host.network.command(HOST, PROGRAM).expect("a host");
        let output = command.args(arguments(&host)).args(more).output().expect("a program");
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    let (exit, text) = code(&[]);
    assert!(exit == Some(2) && text.contains("promises.json: no such file"), "{text}");
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[(1e6, 64e3)])]);
    let (exit, text) = code(&["--dry-run"]);
    assert!(exit == Some(0) && text.contains("classid 7ee0:10 htb"), "{text}");
    let (exit, text) = code(&["--status"]);
    assert!(exit == Some(1) && text.contains("\"problem\": \"not enforced\""), "{text}");
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[(1e6, 5e9)])]);
    let (exit, text) = code(&["--dry-run"]);
    assert!(exit == Some(1) && text.contains("one is not enforced: a burst of 5000000000 bytes"), "{text}");
    host.shell(HOST, "tc qdisc add dev eth0 root tbf rate 1gbit burst 64k limit 1m");
    let (exit, text) = code(&[]);
    assert!(exit == Some(1) && text.contains("belongs to another owner"), "{text}");
    host.shell(HOST, "tc qdisc del dev eth0 root");
    assert_eq!(host.rules(), before);
}
