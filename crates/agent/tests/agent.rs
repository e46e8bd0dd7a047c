//! `leeward-agent` from outside: requests that it sends to a scripted controller, and its cost.

use std::io::{self, BufRead, BufReader, Write};
use std::iter;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request at the controller: its head, and its body as JSON.
type Request = (String, serde_json::Value);

/// Reads one request from a connection.
fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

/// A controller that answers each request by its number, or closes the connection if the answer is empty. Returns its address
/// and the requests it receives.
fn controller(answer: impl Fn(usize) -> String + Send + 'static) -> (SocketAddr, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut number = 0;
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
            while let Some(request) = read_request(&mut reader) {
                let answer = answer(number);
                number += 1;
                let told = tell.send(request).is_ok();
                if !told || answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, told)
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const ACCEPTED: &str = r#"{"epoch":1,"links":2,"skipped":{"down":0,"stale":0}}"#;

/// Sends bytes over the loopback interface.
fn send_over_loopback(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut sender = TcpStream::connect(address).expect("a connection");
    let (mut stream, _) = listener.accept().expect("the agent connects");
    let sending = thread::spawn(move || sender.write_all(&vec![0; bytes]));
    let carried = io::copy(&mut stream, &mut io::sink()).expect("the request is readable");
    sending.join().expect("the thread ends").expect("the report is sent");
    assert_eq!(carried, bytes as u64);
}

/// Timestamp in a report.
fn time(body: &serde_json::Value, field: &str) -> Timestamp {
    body[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field}: {body}"))
}

/// An agent and its output; the process ends when this is dropped.
struct Agent(Child);

impl Agent {
    fn start(address: SocketAddr, more: &[&str]) -> Agent {
        Agent::at(&format!("http://{address}"), more)
    }

    fn at(url: &str, more: &[&str]) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-agent"));
        // Every machine has a loopback interface.
        command.args(["--controller", url, "--host", "r0h1", "--interface", "lo"]).args(more);
        Agent(command.stderr(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// Lines of output, until the process ends or no line comes soon.
    fn output_lines(&mut self) -> impl Iterator<Item = String> {
        let stderr = BufReader::new(self.0.stderr.take().expect("stderr is piped"));
        let (tell, told) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Reads on without a receiver, because an agent that cannot write ends.
                let _ = tell.send(line);
            }
        });
        iter::from_fn(move || told.recv_timeout(SOON).ok())
    }

    /// CPU seconds and maximum resident bytes.
    fn cost(&self) -> (f64, u64) {
        let read = |name| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).expect("the process runs")
        };
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        let ticks: u64 = [fields[11], fields[12]].iter().filter_map(|one| one.parse::<u64>().ok()).sum();
        let status = read("status");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("/proc is available on Linux");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        (ticks as f64 / 100.0, kib << 10)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SOON: Duration = Duration::from_secs(20);
/// Bytes that a test sends over the loopback interface, many times the traffic of other tests.
const CARRIED: usize = 16 << 20;

#[test]
fn reports_come_every_interval_and_cost_little() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "leeward_abc\n").expect("a file");
    let (address, told) = controller(|_| response("200 OK", ACCEPTED));
    let token = token.display().to_string();
    let agent = Agent::start(address, &["--interval", "50ms", "--token-file", &token]);
    let (mut end, mut sums) = (None, [0.0; 2]);
    for number in 0..40 {
        let (head, body) = told.recv_timeout(SOON).expect("a report");
        assert!(head.starts_with("POST /v1/reports HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("authorization: bearer leeward_abc\r\n"), "{head}");
        let (from, until) = (time(&body, "from"), time(&body, "until"));
        assert!(end.is_none_or(|end| from == end), "windows follow each other");
        end = Some(until);
        for (way, name) in ["r0h1:egress", "r0h1:ingress"].iter().enumerate() {
            assert_eq!(body["links"][way]["link"], *name);
            let load = body["links"][way]["load_bps"].as_f64().expect("a load");
            sums[way] += load / 8.0 * until.duration_since(from).as_secs_f64();
        }
        if number == 0 {
            send_over_loopback(CARRIED);
        }
    }
    // On the loopback interface all sent bytes are received. The agent reads the two directions one after another, and
    // other tests use the interface too.
    let [egress, ingress] = sums;
    assert!(egress >= CARRIED as f64 && ingress >= CARRIED as f64, "{egress} {ingress}");
    assert!((egress - ingress).abs() <= 0.1 * CARRIED as f64, "{egress} {ingress}");
    let (seconds, resident) = agent.cost();
    let share = seconds / 40.0;
    println!("a report: {:.0} us of a processor, {} KiB resident", 1e6 * share, resident >> 10);
    assert!(resident < 20 << 20, "{resident} bytes resident");
    // At an interval of 1 s, one report is the whole work of each second. Ticks are 10 ms, and other tests run too.
    assert!(share < 0.005, "{share} s a report");
}

#[test]
fn each_controller_gets_reports_even_if_another_is_unavailable() {
    let (first, heard) = controller(|_| response("200 OK", ACCEPTED));
    let unknown = r#"{"epoch":1,"links":2,"devices":0,"skipped":{},"unknown_devices":["r0h1:vda"]}"#;
    let (second, heard_too) = controller(move |_| response("200 OK", unknown));
    let (second, away) = (format!("http://{second}"), "http://127.0.0.1:1");
    let more = ["--controller", away, "--controller", &second, "--interval", "20ms"];
    let mut agent = Agent::start(first, &more);
    let mut missing: Vec<String> = [
        format!("http://{first}: reports accepted"),
        format!("{away}: report failed: connection refused; retry in "),
        format!("{second}: reports accepted"),
        format!("{second}: not accepted: the cluster has no device `r0h1:vda`; --device vda=NAME"),
    ]
    .into();
    for line in agent.output_lines() {
        missing.retain(|beginning| !line.starts_with(beginning));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    for heard in [heard, heard_too] {
        let (_, body) = heard.iter().nth(3).expect("another report");
        let (egress, ingress) = (&body["links"][0], &body["links"][1]);
        // The loopback interface is virtual: it has neither speed nor queue.
        assert!(egress["speed_bps"].is_null() && ingress["queue_bytes"].is_null(), "{body}");
        assert_eq!(egress["queue_bytes"], 0, "{body}");
        for device in body["devices"].as_array().into_iter().flatten() {
            let busy = device["busy"].as_f64().expect("a share");
            assert!((0.0..=1.0).contains(&busy) && device["in_flight"].is_u64(), "{device}");
        }
    }
}

#[test]
fn retries_slow_down_and_send_only_new_data_afterwards() {
    let answer = |number| if number < 6 { String::new() } else { response("200 OK", ACCEPTED) };
    let (address, told) = controller(answer);
    let mut agent = Agent::start(address, &["--interval", "20ms"]);
    let mut written = agent.output_lines();
    let waits: Vec<f64> = (0..6)
        .map(|_| {
            let line = written.next().expect("a line");
            let wait = line.strip_suffix(" s").and_then(|line| line.rsplit(' ').next()?.parse().ok());
            wait.unwrap_or_else(|| panic!("{line}"))
        })
        .collect();
    assert!(waits[5] >= 0.3 && waits[5] <= 0.7, "{waits:?}");
    let line = written.find(|line| line.starts_with("reports accepted")).expect("a line");
    let dropped = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    assert!(dropped.is_some_and(|dropped| (6..200).contains(&dropped)), "{line}");
    // Each report has new data, and no report repeats a dropped window.
    let reports: Vec<_> = (0..8).map(|_| told.recv_timeout(SOON).expect("a report").1).collect();
    assert!(reports.windows(2).all(|two| time(&two[0], "until") <= time(&two[1], "from")), "{reports:?}");
}

#[test]
fn replies_of_any_kind_are_logged_in_one_line_and_survived() {
    let strange = [
        response("422 Unprocessable Entity", r#"{"detail":"`r0h1:egress`: no such link"}"#),
        response("503 Service Unavailable", "busy\u{1b}[31m\nbusy"),
        response("200 OK", "hello"),
        response("301 Moved Permanently", ""),
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_owned() + &"x".repeat(70_000),
        "220 mail.example ESMTP\r\n".to_owned(),
    ];
    let last = strange.len();
    let (address, told) = controller(move |number| match strange.get(number) {
        Some(answer) => answer.clone(),
        None => response("200 OK", ACCEPTED),
    });
    let mut agent = Agent::start(address, &["--interval", "10ms"]);
    let mut written = agent.output_lines();
    let lines: Vec<String> = (0..last).map(|_| written.next().expect("a line")).collect();
    for (line, part) in
        lines.iter().zip(["no such link", "busy", "not a reply of a controller", "301", "", ""])
    {
        assert!(line.starts_with("report failed: ") && line.contains(part), "{line}");
        assert!(line.len() < 300 && !line.contains('\u{1b}'), "{line}");
    }
    assert!(written.next().expect("a line").starts_with("reports accepted"));
    assert!(told.recv_timeout(SOON).is_ok());
}

#[test]
fn invalid_arguments_give_one_line_and_exit_code_2() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-agent"));
        let mut agent =
            Agent(command.args(arguments).stderr(Stdio::piped()).spawn().expect("the program starts"));
        // An agent whose reports are accepted writes nothing more, and ends when dropped.
        let told: Vec<String> = agent.output_lines().take(1).collect();
        let told = told.concat();
        assert!(told.starts_with("error: "), "it went on: {told}");
        (agent.0.wait().expect("the process ends").code(), told)
    };
    let url = ["--controller", "https://leeward:7600"];
    for (more, beginning) in [
        (["--ca", "nothing.pem"], "error: nothing.pem: no such file"),
        (["--token-file", "nothing"], "error: nothing: no such file"),
        (["--interval", "soon"], "error: --interval: `soon`"),
        (["--device", "/dev/sda"], "error: --device: `/dev/sda`: expected a disk"),
        (["--probe-listen", "0.0.0.0:7601"], "error: --probe-listen: `0.0.0.0:7601`: without a secret"),
    ] {
        let (code, told) = run(&[&url[..], &more].concat());
        assert!(code == Some(2) && told.starts_with(beginning), "{told}");
    }
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = busy.local_addr().expect("an address").to_string();
    let (code, told) = run(&["--controller", "http://127.0.0.1:1", "--probe-listen", &address]);
    assert!(code == Some(2) && told.starts_with("error: --probe-listen: "), "{told}");
}

#[test]
fn https_needs_a_trusted_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let file = folder.path().join(name);
        std::fs::write(&file, made.cert.pem()).expect("a file");
        let key = PrivateKeyDer::try_from(made.key_pair.serialize_der()).expect("a key");
        (CertificateDer::from(made.cert.der().to_vec()), key, file.display().to_string())
    };
    let ((chain, key, right), (_, _, wrong)) = (certificate("right.pem"), certificate("wrong.pem"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(vec![chain], key);
    let config = Arc::new(config.expect("the settings are compatible"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            let mut reader = BufReader::new(StreamOwned::new(connection, stream));
            // A client that does not trust the certificate closes the connection.
            while read_request(&mut reader).is_some() {
                if reader.get_mut().write_all(response("200 OK", ACCEPTED).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    let distrusted = "report failed: certificate not trusted (";
    for (ca, told) in [(&wrong, distrusted), (&right, "reports accepted")] {
        let mut agent = Agent::at(&url, &["--interval", "20ms", "--ca", ca]);
        let line = agent.output_lines().next().expect("a line");
        assert!(line.starts_with(told), "{line}");
        let (_, resident) = agent.cost();
        println!("{} KiB resident with TLS", resident >> 10);
        assert!(resident < 20 << 20, "{resident} bytes resident");
    }
}

#[test]
fn the_agent_takes_part_in_measurements_on_request() {
    let (at, _told) = controller(|_| response("200 OK", ACCEPTED));
    // Another process may take a free port before the agent takes it; the test then tries another port.
    let started = (0..10).find_map(|_| {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a port");
        let mut agent = Agent::start(at, &["--interval", "50ms", "--probe-listen", &address.to_string()]);
        let line = agent.output_lines().next().expect("a line");
        assert!(line.starts_with("reports accepted") || line.contains("choose another port"), "{line}");
        line.starts_with("reports").then_some((agent, address))
    });
    let (_agent, address) = started.expect("a port that stays free");
    let secret = leeward_probe::control::Secret::default();
    let peer = leeward_probe::control::Peer::greet(&address.to_string(), &secret);
    assert!(peer.is_ok(), "{:?}", peer.err());
    assert!(TcpStream::connect(address).is_ok());
}
