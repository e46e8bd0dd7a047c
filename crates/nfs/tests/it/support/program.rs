//! Processes of the program `leeward-nfs`.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The program with an export of a server, for clients of this machine.
pub fn command(export: &str, server: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-nfs"));
    let port = server.port().to_string();
    command.args(["--export", export, "--nfsport", &port, "--mountport", &port]);
    command.args(["--allow", "127.0.0.0/8"]);
    command.env_remove("NOTIFY_SOCKET");
    command
}

/// A process of the program, killed on drop.
pub struct Program {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    pub address: SocketAddr,
}

impl Program {
    /// Starts the program and waits until it listens.
    pub fn start(mut command: Command) -> Program {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let (stderr, lines) = (child.stderr.take().expect("stderr"), log.clone());
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on ") {
                    let _ = sender.send(address.parse().expect("an address"));
                }
                lines.lock().expect("a lock").push(line);
            }
        });
        match receiver.recv_timeout(Duration::from_secs(20)) {
            Ok(address) => Program { child, log, address },
            Err(_) => panic!("the program does not listen: {:?}", log.lock().expect("a lock")),
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.expect("`kill` is installed").success());
    }

    /// Waits for a line of the log.
    pub fn wait_for(&self, text: &str) {
        for _ in 0..200 {
            if self.log.lock().expect("a lock").iter().any(|line| line.contains(text)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no `{text}` in {:?}", self.log.lock().expect("a lock"));
    }

    /// Largest memory that it had so far, in bytes.
    pub fn most_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of memory");
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    }

    /// Ends the program by SIGTERM. Returns its exit code and its output.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        let mut text = String::new();
        self.child.stdout.take().expect("stdout").read_to_string(&mut text).expect("a text");
        (self.child.wait().expect("an end").code(), text)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
