//! `leewardd` from the outside: output, exit codes and signals.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leeward_testing::clusters::RACKS_3X2;
use serde_json::{Value, json};
use tempfile::TempDir;

fn leewardd(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leewardd"));
    command.current_dir(folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.yaml"), RACKS_3X2).expect("a file");
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        leewardd(folder).args(arguments).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("the program exits"), text(stdout), text(stderr))
}

/// A service that is killed at the end of its test if it still runs.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a service. Returns it with its URL and its further output lines.
fn start(folder: &Path, arguments: &[&str]) -> (Running, String, impl Iterator<Item = String> + use<>) {
    let mut command = leewardd(folder);
    let mut child =
        Running(command.args(arguments).stderr(Stdio::piped()).spawn().expect("the program starts"));
    let written = BufReader::new(child.0.stderr.take().expect("stderr is piped")).lines();
    let mut written = written.map_while(Result::ok);
    let first = written.next().expect("a line");
    let url = match first.strip_prefix("listening on ") {
        Some(url) => url.to_owned(),
        None => json_of(&first)["url"].as_str().expect("the server listens").to_owned(),
    };
    (child, url, written)
}

/// Parses one line of a JSON log.
fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
}

fn signal(child: &Running, name: &str) {
    let sent = Command::new("kill").args([name, &child.0.id().to_string()]).status();
    assert!(sent.expect("`kill` is installed").success());
}

fn status(url: &str, token: &str) -> u16 {
    ask(url, "GET", "/v1/status", &format!("Bearer {token}"), "")
}

/// Sends a request with an authorization header and returns the status.
fn ask(url: &str, method: &str, path: &str, authorization: &str, body: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = ureq::http::Request::builder().method(method).uri(format!("{url}{path}"));
    let request = request.header("authorization", authorization).header("content-type", "application/json");
    agent
        .run(request.body(body.to_owned()).expect("a request"))
        .expect("the server answers")
        .status()
        .as_u16()
}

/// Creates a token with a new name in the file `tokens` of the folder.
fn token(folder: &Path, name: &str, more: &[&str]) -> String {
    let all = [&["token", "new", "--name", name, "--tokens", "tokens"], more].concat();
    let (code, token, warnings) = run(folder, &all);
    assert_eq!((code, warnings.as_str()), (0, ""));
    token.trim().to_owned()
}

#[test]
fn invalid_arguments_give_one_line_and_exit_code_2() {
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
    assert!(!folder.path().join(".local").exists(), "a check creates no files");
}

#[test]
fn a_new_token_is_valid_after_a_reload() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "").expect("a file");
    let config = "cluster: c.yaml\nlisten: 127.0.0.1:0\ntokens: tokens\nlog: {format: json}\n";
    std::fs::write(folder.path().join("l.yaml"), config).expect("a file");
    let (mut child, url, mut written) = start(folder.path(), &["--config", "l.yaml"]);
    let store = folder.path().join(".local/state/leeward/c.db");
    let token = &token(folder.path(), "page", &["--role", "read"]);
    assert!(!std::fs::read_to_string(folder.path().join("tokens")).expect("a file").contains(token));
    assert_eq!(status(&url, token), 401);
    signal(&child, "-HUP");
    let mut until =
        |words: &str| written.by_ref().find(|line| line.contains(words)).expect("a line of the log");
    let line = until("settings reloaded");
    assert_eq!(json_of(&line)["level"], "INFO");
    assert_eq!(status(&url, token), 200);
    signal(&child, "-TERM");
    until("stopped");
    assert_eq!(child.0.wait().expect("the process ends").code(), Some(0));
    assert!(store.exists());
}

#[test]
fn tokens_bound_to_unknown_hosts_are_logged_with_the_hosts() {
    let folder = folder();
    token(
        folder.path(),
        "agents",
        &["--role", "report", "--host", "r0h1", "--host", "r0h7", "--host", "r1h0"],
    );
    token(folder.path(), "page", &["--role", "read"]);
    let admin = token(folder.path(), "ops", &["--role", "admin"]);
    let config = "cluster: c.yaml\nstore: memory\nlisten: 127.0.0.1:0\ntokens: tokens\nlog: {format: json}\n";
    std::fs::write(folder.path().join("l.yaml"), config).expect("a file");
    let (child, url, written) = start(folder.path(), &["--config", "l.yaml"]);
    let (writer, lines) = mpsc::channel();
    thread::spawn(move || written.for_each(|line| drop(writer.send(line))));
    let warnings = || {
        let mut soon = std::iter::from_fn(|| lines.recv_timeout(Duration::from_secs(10)).ok());
        let line = soon.find(|line| line.contains("is bound to a host")).expect("a line of the log");
        let line = json_of(&line);
        assert_eq!(line["level"], "WARN");
        [&line["name"], &line["host"]].map(|name| name.as_str().expect("a name").to_owned())
    };
    assert_eq!(warnings(), ["agents", "r0h7"]);
    token(folder.path(), "late", &["--role", "report", "--host", "r9h0"]);
    signal(&child, "-HUP");
    assert_eq!(warnings(), ["late", "r9h0"], "a reload does not repeat the warning");
    // A cluster change may add or remove hosts that the warnings name.
    let hosts = r#"{"hosts_per_rack": 8, "racks": 1}"#;
    assert_eq!(ask(&url, "PATCH", "/v1/cluster", &format!("Bearer {admin}"), hosts), 200);
    assert_eq!(warnings(), ["agents", "r1h0"]);
    let rest = stop_and_read(child, lines.into_iter());
    assert!(rest.iter().all(|line| !line.contains("is bound to a host")), "{rest:#?}");
}

#[test]
fn a_service_without_tokens_warns_that_any_local_user_has_access() {
    let folder = folder();
    let arguments = ["--cluster", "c.yaml", "--listen", "127.0.0.1:0", "--store", "memory"];
    let (mut child, url, mut written) = start(folder.path(), &arguments);
    assert!(written.any(|line| line.contains("WARN no tokens: any user of this machine")));
    assert_eq!(status(&url, "whatever"), 200);
    signal(&child, "-INT");
    assert_eq!(child.0.wait().expect("the process ends").code(), Some(0));
}

/// Polls the condition for up to ten seconds.
fn wait_until(is_so: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        let holds = is_so();
        if !holds {
            thread::sleep(Duration::from_millis(50));
        }
        holds
    })
}

/// Stops a service with SIGTERM and waits for its end. Returns its remaining output.
fn stop_and_read(mut child: Running, written: impl Iterator<Item = String>) -> Vec<String> {
    signal(&child, "-TERM");
    let rest = written.collect();
    assert_eq!(child.0.wait().expect("the process ends").code(), Some(0));
    rest
}

#[test]
fn with_json_logs_every_line_is_json() {
    let folder = folder();
    std::fs::write(folder.path().join("wrong.yaml"), "{racks: many}").expect("a file");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let config = |more: &str| {
        let text = format!("store: memory\nlog: {{format: json}}\n{more}");
        std::fs::write(folder.path().join("l.yaml"), text).expect("a file");
    };
    let fatal = [
        ("cluster: wrong.yaml".to_owned(), "wrong.yaml:"),
        (format!("cluster: c.yaml\nlisten: {taken}"), "l.yaml: listen: "),
        ("cluster: c.yaml\nlisten: 0.0.0.0:0".to_owned(), "l.yaml: listen: "),
        ("cluster: c.yaml\ntokens: none".to_owned(), "none: no such file"),
    ];
    for (more, beginning) in fatal {
        config(&more);
        let (code, _, warnings) = run(folder.path(), &["--config", "l.yaml"]);
        assert_eq!((code, warnings.lines().count()), (2, 1), "{warnings}");
        let line = json_of(&warnings);
        let message = line["message"].as_str().expect("a text");
        assert!(line["level"] == "ERROR" && message.starts_with(beginning), "{line}");
    }
    // `--check-config` always prints plain text.
    let (code, _, warnings) = run(folder.path(), &["--config", "l.yaml", "--check-config"]);
    assert!(code == 2 && warnings.starts_with("error: none: "), "{warnings}");

    let admin = token(folder.path(), "ops", &["--role", "admin"]);
    config("cluster: c.yaml\nlisten: 127.0.0.1:0\ntokens: tokens");
    let (child, url, written) = start(folder.path(), &["--config", "l.yaml"]);
    assert_eq!(ask(&url, "PATCH", "/v1/cluster", &format!("Bearer {admin}"), r#"{"name": "other"}"#), 200);
    let lines: Vec<Value> = stop_and_read(child, written).iter().map(|line| json_of(line)).collect();
    let changed =
        lines.iter().find(|line| line["message"] == "the cluster was changed").expect("the change is logged");
    assert_eq!((&changed["by"], &changed["version"]), (&json!("ops"), &json!(2)));
    assert_eq!(lines.last().expect("a line")["message"], "stopped");
}

#[test]
fn a_reload_changes_rate_limits_and_log_level() {
    let folder = folder();
    let config = |limits: &str, level: &str| {
        let text = format!(
            "cluster: c.yaml\nstore: memory\nlisten: 127.0.0.1:0\nlimits: {limits}\nlog: {{level: {level}}}\n"
        );
        std::fs::write(folder.path().join("l.yaml"), text).expect("a file");
    };
    config("{}", "info");
    let (child, url, written) = start(folder.path(), &["--config", "l.yaml"]);
    let rejected = || (0..20).filter(|_| status(&url, "") == 429).count();
    assert_eq!(rejected(), 0);
    config("{requests_per_s: 1}", "debug");
    signal(&child, "-HUP");
    assert!(wait_until(|| rejected() > 0), "the limit is in force");
    config("{}", "error");
    signal(&child, "-HUP");
    assert!(wait_until(|| rejected() == 0), "the limit is removed");
    let lines = stop_and_read(child, written);
    let request_lines: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("DEBUG request "))
        .map(|(at, _)| at)
        .collect();
    let reload =
        lines.iter().position(|line| line.contains("settings reloaded")).expect("the reload is logged");
    assert!(!request_lines.is_empty() && request_lines.iter().all(|&at| at > reload), "{lines:#?}");
    assert!(
        lines.last().is_some_and(|last| last.contains(" DEBUG ")),
        "only errors are logged after the last reload"
    );
}

#[test]
fn the_log_contains_no_token_and_no_secret() {
    let folder = folder();
    std::fs::write(folder.path().join("secret"), "shared secret text").expect("a file");
    let config = "cluster: c.yaml\nstore: memory\nlisten: 127.0.0.1:0\ntokens: tokens\nprobes: {secret: secret}\n\
                  log: {level: debug}\n";
    std::fs::write(folder.path().join("l.yaml"), config).expect("a file");
    let tokens = [
        token(folder.path(), "page", &["--role", "read"]),
        token(folder.path(), "r0h0", &["--role", "report", "--host", "r0h0"]),
        token(folder.path(), "ops", &["--role", "admin"]),
    ];
    let [page, host, ops] = tokens.each_ref().map(|token| format!("Bearer {token}"));
    let (child, url, written) = start(folder.path(), &["--config", "l.yaml"]);
    let report = |host: &str| {
        json!({
            "from": "2026-01-31T12:00:00Z", "until": "2026-01-31T12:00:01Z", "probe": { "host": host, "port": 9 },
        })
        .to_string()
    };
    let measure = json!({ "kind": "path", "hosts": ["r0h0", "r1h0"] }).to_string();
    let requests = [
        ("GET", "/v1/status", page.as_str(), String::new(), 200),
        ("POST", "/v1/reload", &page, String::new(), 403),
        ("GET", "/v1/status", "Bearer leeward_guessed", String::new(), 401),
        ("GET", "/v1/status?token=leeward_guessed", "Basic leeward_guessed", String::new(), 401),
        ("POST", "/v1/reports", &host, report("r0h0"), 200),
        ("POST", "/v1/reports", &host, report("r1h0"), 403),
        ("POST", "/v1/reports", &ops, report("r1h0"), 200),
        ("POST", "/v1/probes", &ops, measure, 201),
        ("POST", "/v1/place/replicas", &ops, "leeward_guessed".to_owned(), 400),
        ("POST", "/v1/reload", &ops, String::new(), 200),
    ];
    for (method, path, authorization, body, status) in requests {
        assert_eq!(ask(&url, method, path, authorization, &body), status, "{method} {path}");
    }
    let lines = stop_and_read(child, written);
    assert!(lines.iter().filter(|line| line.contains("DEBUG request ")).count() >= 10, "{lines:#?}");
    let secrets = tokens.iter().map(|token| token.trim_start_matches("leeward_"));
    for secret in secrets.chain(["guessed", "shared secret text"]) {
        assert!(lines.iter().all(|line| !line.contains(secret)), "{secret}: {lines:#?}");
    }
}
