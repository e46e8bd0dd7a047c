//! `leewardd` from the outside: what it says, what it ends with, and what signals make it do.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}";

fn leewardd(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leewardd"));
    command.current_dir(folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.yaml"), CLUSTER).expect("a file");
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = leewardd(folder).args(arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

/// A service that runs, its URL, and what it writes from then on.
fn started(folder: &Path, arguments: &[&str]) -> (Child, String, impl Iterator<Item = String>) {
    let mut command = leewardd(folder);
    let mut child = command.args(arguments).stderr(Stdio::piped()).spawn().expect("it runs");
    let written = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut written = written.map_while(Result::ok);
    let first = written.next().expect("a line");
    let url = first.strip_prefix("listening on ").expect("it listens").to_owned();
    (child, url, written)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("there is `kill`").success());
}

fn status(url: &str, token: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = agent.get(format!("{url}/v1/status")).header("authorization", format!("Bearer {token}"));
    request.call().expect("it answers").status().as_u16()
}

#[test]
fn what_is_wrong_is_told_in_a_line_with_code_2() {
    let folder = folder();
    std::fs::write(folder.path().join("wrong.yaml"), "cluster: c.yaml\nlimit: 1\n").expect("a file");
    let cases: [(&[&str], &str); 4] = [
        (&[], "error: --cluster: missing"),
        (&["--cluster", "nothing.yaml"], "error: nothing.yaml: no such file"),
        (&["--config", "wrong.yaml"], "error: wrong.yaml:2:1: limit: unknown field"),
        (&["--cluster", "c.yaml", "--listen", "0.0.0.0:0"], "error: --listen: `0.0.0.0:0`: without tokens"),
    ];
    for (arguments, beginning) in cases {
        let (code, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{stderr}");
        assert!(stderr.starts_with(beginning), "{stderr}");
    }
    let (code, _, stderr) = run(folder.path(), &["--cluster", "c.yaml", "--check-config"]);
    assert_eq!((code, stderr.as_str()), (0, "the settings are right\n"));
    assert!(!folder.path().join(".local").exists(), "to check makes nothing");
}

#[test]
fn a_token_lets_in_once_the_service_has_read_its_file_again() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "").expect("a file");
    let config = "cluster: c.yaml\nlisten: 127.0.0.1:0\ntokens: tokens\nlog: {format: json}\n";
    std::fs::write(folder.path().join("l.yaml"), config).expect("a file");
    let (mut child, url, mut written) = started(folder.path(), &["--config", "l.yaml"]);
    let store = folder.path().join(".local/state/leeward/cluster.db");
    assert_eq!(written.next().expect("a line"), format!("decisions are kept in {}", store.display()));
    let (code, token, told) =
        run(folder.path(), &["token", "new", "--name", "page", "--role", "read", "--tokens", "tokens"]);
    assert_eq!((code, told.as_str()), (0, ""));
    let token = token.trim();
    assert!(!std::fs::read_to_string(folder.path().join("tokens")).expect("a file").contains(token));
    assert_eq!(status(&url, token), 401);
    signal(&child, "-HUP");
    let mut until =
        |words: &str| written.by_ref().find(|line| line.contains(words)).expect("a line of the log");
    let line = until("settings were read again");
    let line: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
    assert_eq!(line["level"], "INFO");
    assert_eq!(status(&url, token), 200);
    signal(&child, "-TERM");
    until("stopped");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(store.exists());
}

#[test]
fn a_service_without_tokens_says_that_anyone_here_may_ask() {
    let folder = folder();
    let arguments = ["--cluster", "c.yaml", "--listen", "127.0.0.1:0", "--store", "memory"];
    let (mut child, url, mut written) = started(folder.path(), &arguments);
    assert!(written.any(|line| line.contains("WARN anyone on this machine may ask")));
    assert_eq!(status(&url, "whatever"), 200);
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
