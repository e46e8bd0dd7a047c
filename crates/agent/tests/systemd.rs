//! The program `leeward-agent` under systemd: its messages to the socket of a service manager.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The process of an agent, killed on drop.
struct Agent(Child);

impl Agent {
    /// Starts an agent that nobody answers.
    fn start(socket: &Path, interface: &str) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-agent"));
        command.args(["--controller", "http://127.0.0.1:1", "--host", "r0h1", "--interval", "100ms"]);
        command.args(["--interface", interface]).stderr(Stdio::null());
        command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", "600000").env_remove("WATCHDOG_PID");
        Agent(command.spawn().expect("the program starts"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(sent.expect("`kill` is installed").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Receives messages until one has this line.
fn until(socket: &UnixDatagram, line: &str) -> String {
    let mut message = [0; 4_096];
    let mut all = String::new();
    for _ in 0..200 {
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{line}: {error}: {all}"));
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        if text.lines().any(|one| one == line) {
            return text;
        }
        all += &format!("{text}\n");
    }
    panic!("no {line} in\n{all}");
}

fn bind(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    socket
}

#[test]
fn an_agent_without_a_controller_is_ready_and_its_status_says_why_nothing_arrives() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = bind(&path);
    let agent = Agent::start(&path, "lo");
    let ready = until(&socket, "READY=1");
    let failed = "STATUS=http://127.0.0.1:1: report failed: connection refused; retry in ";
    assert!(ready.contains(failed), "{ready}");
    assert!(until(&socket, "WATCHDOG=1").contains(failed));
    // A stopped process sends nothing, so systemd restarts it.
    agent.signal("-STOP");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a time");
    while socket.recv(&mut [0; 4_096]).is_ok() {}
    agent.signal("-CONT");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    until(&socket, "WATCHDOG=1");
}

#[test]
fn an_agent_without_its_interface_is_ready_and_its_status_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = bind(&path);
    let _agent = Agent::start(&path, "nosuch0");
    let ready = until(&socket, "READY=1");
    assert!(ready.contains("nosuch0"), "{ready}");
}
