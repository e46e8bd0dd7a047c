//! The service under systemd: its messages to the socket of a service manager.

#![allow(clippy::disallowed_methods, reason = "a test measures time")]

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use crate::support::leewardd::{Process, command};

/// Receives messages until one has this line.
fn until(socket: &UnixDatagram, line: &str) -> String {
    let mut message = [0; 4_096];
    let mut all = String::new();
    for _ in 0..100 {
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{line}: {error}: {all}"));
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        if text.lines().any(|one| one == line) {
            return text;
        }
        all += &format!("{text}\n");
    }
    panic!("no {line} in\n{all}");
}

#[test]
fn systemd_is_told_of_start_reload_watchdog_and_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let mut command = command(folder.path(), "memory");
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "600000").env_remove("WATCHDOG_PID");
    let mut process = Process::run(command);
    until(&socket, "READY=1");
    assert!(process.is_ready(), "the service answers when it says that it is ready");
    let began = Instant::now();
    for _ in 0..6 {
        let message = until(&socket, "WATCHDOG=1");
        assert!(message.contains("STATUS=Leader; telemetry of 0 of 32 links"), "{message}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "three messages in the time of the watchdog");
    process.signal("-HUP");
    let message = until(&socket, "RELOADING=1");
    assert!(message.contains("\nMONOTONIC_USEC="), "{message}");
    until(&socket, "READY=1");
    process.signal("-TERM");
    until(&socket, "STOPPING=1");
    assert!(process.child.wait().expect("the process ends").success());
}

#[test]
fn the_watchdog_gets_no_message_while_the_process_is_stopped_and_again_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let mut command = command(folder.path(), "memory");
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "600000").env_remove("WATCHDOG_PID");
    let process = Process::run(command);
    until(&socket, "WATCHDOG=1");
    process.signal("-STOP");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a time");
    // Messages from before the signal.
    while socket.recv(&mut [0; 4_096]).is_ok() {}
    process.signal("-CONT");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    until(&socket, "WATCHDOG=1");
}
