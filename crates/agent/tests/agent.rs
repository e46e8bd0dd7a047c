//! The program `leeward-agent`: its requests to a scripted controller, its log, and its CPU time and memory.

use std::io::{self, BufRead, BufReader, Read, Write};
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
use socket2::{Domain, Protocol, Socket, Type};

/// A request that the controller received: its head, and its body as JSON.
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

/// Starts a controller that replies to request `n`, from 0, with `reply(n)`, or closes the connection if the reply is
/// empty. Returns its address and the requests that it receives.
fn controller(reply: impl Fn(usize) -> String + Send + 'static) -> (SocketAddr, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, requests) = channel();
    thread::spawn(move || {
        let mut number = 0;
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
            while let Some(request) = read_request(&mut reader) {
                let reply = reply(number);
                number += 1;
                let sent = sender.send(request).is_ok();
                if !sent || reply.is_empty() || stream.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, requests)
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
    let (mut receiver, _) = listener.accept().expect("the sender is connected");
    let sending = thread::spawn(move || sender.write_all(&vec![0; bytes]));
    let received = io::copy(&mut receiver, &mut io::sink()).expect("the bytes arrive");
    sending.join().expect("the thread ends").expect("the bytes are sent");
    assert_eq!(received, bytes as u64);
}

/// Timestamp in a report.
fn time(body: &serde_json::Value, field: &str) -> Timestamp {
    body[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field}: {body}"))
}

/// The process of an agent, killed on drop.
struct Agent(Child);

impl Agent {
    fn start(controller: SocketAddr, more: &[&str]) -> Agent {
        Agent::start_with_url(&format!("http://{controller}"), more)
    }

    fn start_with_url(url: &str, more: &[&str]) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-agent"));
        // Every machine has a loopback interface.
        command.args(["--controller", url, "--host", "r0h1", "--interface", "lo"]).args(more);
        Agent(command.stderr(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// Lines of stderr, until the process ends or [`TIMEOUT`] passes without a line.
    fn output_lines(&mut self) -> impl Iterator<Item = String> {
        let stderr = BufReader::new(self.0.stderr.take().expect("stderr is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Keeps reading when the receiver is gone, because an agent whose stderr is closed exits.
                let _ = sender.send(line);
            }
        });
        iter::from_fn(move || lines.recv_timeout(TIMEOUT).ok())
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

const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that a test sends over the loopback interface, many times the traffic of other tests.
const SENT: usize = 16 << 20;

#[test]
fn reports_come_every_interval_and_cost_little() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "leeward_abc\n").expect("a file");
    let (address, requests) = controller(|_| response("200 OK", ACCEPTED));
    let token = token.display().to_string();
    let agent = Agent::start(address, &["--interval", "50ms", "--token-file", &token]);
    let (mut end, mut sums) = (None, [0.0; 2]);
    for number in 0..40 {
        let (head, body) = requests.recv_timeout(TIMEOUT).expect("a report");
        assert!(head.starts_with("POST /v1/reports HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("authorization: bearer leeward_abc\r\n"), "{head}");
        let (from, until) = (time(&body, "from"), time(&body, "until"));
        assert!(end.is_none_or(|end| from == end), "a window starts where the last one ended");
        end = Some(until);
        for (way, name) in ["r0h1:egress", "r0h1:ingress"].iter().enumerate() {
            assert_eq!(body["links"][way]["link"], *name);
            let load = body["links"][way]["load_bps"].as_f64().expect("a load");
            sums[way] += load / 8.0 * until.duration_since(from).as_secs_f64();
        }
        if number == 0 {
            send_over_loopback(SENT);
        }
    }
    // On the loopback interface all sent bytes are received. The agent reads the two directions one after another, and
    // other tests use the interface too.
    let [egress, ingress] = sums;
    assert!(egress >= SENT as f64 && ingress >= SENT as f64, "{egress} {ingress}");
    assert!((egress - ingress).abs() <= 0.1 * SENT as f64, "{egress} {ingress}");
    let (seconds, resident) = agent.cost();
    let per_report = seconds / 40.0;
    println!("{:.0} us of CPU time per report, {} KiB resident", 1e6 * per_report, resident >> 10);
    assert!(resident < 20 << 20, "{resident} bytes resident");
    // The limit is 0.5 % of a CPU at one report per second. The kernel counts CPU time in ticks of 10 ms, so a lower
    // limit would not be reliable.
    assert!(per_report < 0.005, "{per_report} s of CPU time per report");
}

#[test]
fn each_controller_gets_reports_even_if_another_is_unavailable() {
    let (first, first_requests) = controller(|_| response("200 OK", ACCEPTED));
    let unknown = r#"{"epoch":1,"links":2,"devices":0,"skipped":{},"unknown_devices":["r0h1:vda"]}"#;
    let (second, second_requests) = controller(move |_| response("200 OK", unknown));
    let (second, unavailable) = (format!("http://{second}"), "http://127.0.0.1:1");
    let more = ["--controller", unavailable, "--controller", &second, "--interval", "20ms"];
    let mut agent = Agent::start(first, &more);
    let mut missing: Vec<String> = [
        format!("http://{first}: reports accepted"),
        format!("{unavailable}: report failed: connection refused; retry in "),
        format!("{second}: reports accepted"),
        format!("{second}: not accepted: the cluster has no device `r0h1:vda`; --disk vda=NAME"),
    ]
    .into();
    for line in agent.output_lines() {
        missing.retain(|beginning| !line.starts_with(beginning));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    for requests in [first_requests, second_requests] {
        let (_, body) = requests.iter().nth(3).expect("a fourth report");
        let (egress, ingress) = (&body["links"][0], &body["links"][1]);
        // The loopback interface has no speed, and no interface has a queue of received bytes.
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
    let reply = |number| if number < 6 { String::new() } else { response("200 OK", ACCEPTED) };
    let (address, requests) = controller(reply);
    let mut agent = Agent::start(address, &["--interval", "20ms"]);
    let mut lines = agent.output_lines();
    let waits: Vec<f64> = (0..6)
        .map(|_| {
            let line = lines.next().expect("a line");
            let wait = line.strip_suffix(" s").and_then(|line| line.rsplit(' ').next()?.parse().ok());
            wait.unwrap_or_else(|| panic!("{line}"))
        })
        .collect();
    assert!(waits[5] >= 0.3 && waits[5] <= 0.7, "{waits:?}");
    let line = lines.find(|line| line.starts_with("reports accepted")).expect("a line");
    let dropped = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    assert!(dropped.is_some_and(|dropped| (6..200).contains(&dropped)), "{line}");
    // Each report has new data, and no report repeats a dropped window.
    let reports: Vec<_> = (0..8).map(|_| requests.recv_timeout(TIMEOUT).expect("a report").1).collect();
    assert!(reports.windows(2).all(|two| time(&two[0], "until") <= time(&two[1], "from")), "{reports:?}");
}

#[test]
fn each_invalid_reply_is_logged_in_one_short_line_and_the_agent_goes_on() {
    let invalid = [
        response("422 Unprocessable Entity", r#"{"detail":"`r0h1:egress`: no such link"}"#),
        response("503 Service Unavailable", "busy\u{1b}[31m\nbusy"),
        response("200 OK", "hello"),
        response("301 Moved Permanently", ""),
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_owned() + &"x".repeat(70_000),
        "220 mail.example ESMTP\r\n".to_owned(),
    ];
    let count = invalid.len();
    let (address, requests) = controller(move |number| match invalid.get(number) {
        Some(reply) => reply.clone(),
        None => response("200 OK", ACCEPTED),
    });
    let mut agent = Agent::start(address, &["--interval", "10ms"]);
    let mut lines = agent.output_lines();
    let errors: Vec<String> = lines.by_ref().take(count).collect();
    assert_eq!(errors.len(), count);
    for (line, part) in
        errors.iter().zip(["no such link", "busy", "not a reply of a controller", "301", "", ""])
    {
        assert!(line.starts_with("report failed: ") && line.contains(part), "{line}");
        assert!(line.len() < 300 && !line.contains('\u{1b}'), "{line}");
    }
    assert!(lines.next().expect("a line").starts_with("reports accepted"));
    assert!(requests.recv_timeout(TIMEOUT).is_ok());
}

#[test]
fn invalid_arguments_give_one_line_and_exit_code_2() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leeward-agent"));
        let mut agent =
            Agent(command.args(arguments).stderr(Stdio::piped()).spawn().expect("the program starts"));
        // Reads only one line: an agent that accepts the arguments by mistake would not end.
        let line = agent.output_lines().next().unwrap_or_default();
        assert!(line.starts_with("error: "), "the agent accepted its arguments: {line}");
        (agent.0.wait().expect("the process ends").code(), line)
    };
    let url = ["--controller", "https://leeward:7600"];
    for (more, beginning) in [
        (["--ca", "nothing.pem"], "error: nothing.pem: no such file"),
        (["--token-file", "nothing"], "error: nothing: no such file"),
        (["--interval", "soon"], "error: --interval: `soon`"),
        (["--disk", "/dev/sda"], "error: --disk: `/dev/sda`: expected a disk"),
        (["--volume", "data"], "error: --volume: `data`: expected an absolute path"),
        (["--dscp", "64"], "error: --dscp: `64`: expected a code point from 0 to 63 or its name"),
        (["--probe-listen", "0.0.0.0:7601"], "error: --probe-listen: `0.0.0.0:7601`: without a secret"),
    ] {
        let (code, line) = run(&[&url[..], &more].concat());
        assert!(code == Some(2) && line.starts_with(beginning), "{line}");
    }
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = busy.local_addr().expect("an address").to_string();
    let (code, line) = run(&["--controller", "http://127.0.0.1:1", "--probe-listen", &address]);
    assert!(code == Some(2) && line.starts_with("error: --probe-listen: "), "{line}");
}

#[test]
fn reports_have_the_storage_of_volumes_and_one_that_appears_later_counts_from_then_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (present, later) = (folder.path().to_owned(), folder.path().join("later"));
    let (address, requests) = controller(|_| response("200 OK", ACCEPTED));
    let [present, later_name] = [&present, &later].map(|path| path.display().to_string());
    let more = ["--interval", "20ms", "--volume", &present, "--volume", &later_name];
    let mut agent = Agent::start(address, &more);
    let mut lines = agent.output_lines();
    let unread = format!("not in reports: used bytes: volume `{later_name}`: No such file or directory");
    assert!(lines.any(|line| line.starts_with(&unread)), "the log names the volume");
    let mut reports = requests.iter().map(|(_, body)| body);
    assert_eq!(reports.next().expect("a report")["hosts"], serde_json::Value::Null);
    std::fs::create_dir(&later).expect("a folder");
    let hosts = reports.take(200).map(|mut body| body["hosts"].take()).find(|hosts| !hosts.is_null());
    let host = &hosts.expect("storage in a report")[0];
    let size = |field: &str| -> leeward_fabric::Bytes {
        host[field].as_str().expect("a size").parse().expect("a size with its unit")
    };
    let [stored, storage] = ["stored", "storage"].map(|field| size(field).0);
    assert_eq!(host["host"], "r0h1");
    // Both folders are on one file system, which counts once. Other programs write to it meanwhile.
    let volume = rustix::fs::statvfs(&later).expect("a file system");
    let used = (volume.f_blocks - volume.f_bfree) * volume.f_frsize;
    assert!(stored <= storage && storage <= volume.f_blocks * volume.f_frsize, "{host}");
    assert!(stored.abs_diff(used) < 1 << 30, "{host}, and the file system has {used} used bytes");
}

#[test]
fn every_packet_to_the_controller_has_the_dscp() {
    // A raw socket receives a copy of each packet to this machine.
    let raw = match Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return println!("skipped: packets can be seen with CAP_NET_RAW only");
        }
        raw => raw.expect("a raw socket"),
    };
    raw.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let (address, requests) = controller(|_| response("200 OK", ACCEPTED));
    let _agent = Agent::start(address, &["--interval", "20ms", "--dscp", "CS6"]);
    for _ in 0..3 {
        requests.recv_timeout(TIMEOUT).expect("a report");
    }
    let (mut classes, mut packet) = (Vec::new(), [0_u8; 1 << 16]);
    while classes.len() < 8 {
        let length = (&raw).read(&mut packet).expect("a packet to the controller");
        let header = 4 * usize::from(packet[0] & 0xf);
        let port = u16::from_be_bytes([packet[header + 2], packet[header + 3]]);
        if length > header && port == address.port() {
            classes.push(packet[1]);
        }
    }
    // The first packet opens the connection; three reports take at least as many more.
    assert!(classes.iter().all(|class| class & !3 == 48 << 2), "{classes:?}");
}

#[test]
fn https_needs_a_trusted_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = |name: &str| {
        let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let file = folder.path().join(name);
        std::fs::write(&file, signed.cert.pem()).expect("a file");
        let key = PrivateKeyDer::try_from(signed.key_pair.serialize_der()).expect("a key");
        (CertificateDer::from(signed.cert.der().to_vec()), key, file.display().to_string())
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
    let not_trusted = "report failed: certificate not trusted (";
    let marked: &[&str] = &["--dscp", "ef"];
    for (ca, more, beginning) in [
        (&wrong, &[][..], not_trusted),
        (&right, &[], "reports accepted"),
        (&wrong, marked, not_trusted),
        (&right, marked, "reports accepted"),
    ] {
        let mut agent =
            Agent::start_with_url(&url, &[&["--interval", "20ms", "--ca", ca.as_str()], more].concat());
        let line = agent.output_lines().next().expect("a line");
        assert!(line.starts_with(beginning), "{line}");
        let (_, resident) = agent.cost();
        println!("{} KiB resident with TLS", resident >> 10);
        assert!(resident < 20 << 20, "{resident} bytes resident");
    }
}

#[test]
fn an_agent_with_a_probe_port_accepts_probe_connections() {
    let (controller, _requests) = controller(|_| response("200 OK", ACCEPTED));
    // Another process may take a free port before the agent takes it; the test then tries another port.
    let started = (0..10).find_map(|_| {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a port");
        let mut agent =
            Agent::start(controller, &["--interval", "50ms", "--probe-listen", &address.to_string()]);
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
