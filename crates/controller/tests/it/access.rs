//! Access control: tokens, roles, request rates, TLS, and clients that do not read their responses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Server, agent, frozen_clock, service};
use arc_swap::ArcSwap;
use leeward_controller::{
    Access, ConnectionLimit, Flags, LogSettings, NewToken, Reload, ReloadError, Role, Service, Settings,
    TlsSettings, Tokens, tls_config,
};
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_3X2;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

/// Starts a service with one token per role. Returns the server and the tokens.
fn server_with_roles(settings: impl FnOnce(&mut Service)) -> (Server, [String; 4]) {
    let new_tokens = Role::ALL.map(|role| NewToken::make(role.name(), role, &[]).expect("randomness"));
    server_with_tokens(new_tokens, settings)
}

/// Starts a service that knows these tokens. Returns the server and the tokens' texts.
fn server_with_tokens<const N: usize>(
    new_tokens: [NewToken; N],
    settings: impl FnOnce(&mut Service),
) -> (Server, [String; N]) {
    let file: String = new_tokens.iter().map(|token| format!("{}\n", token.line)).collect();
    let tokens = Tokens::from_text("tokens", &file).expect("valid lines");
    let mut service = service(RACKS_3X2, "", frozen_clock());
    service.access = Arc::new(Access::new(Some(tokens), None));
    settings(&mut service);
    (Server::start(service), new_tokens.map(|token| token.token))
}

/// Sends a request with a token. Returns the status, one response header, and the body.
fn ask(
    server: &Server,
    method: &str,
    path: &str,
    token: Option<&str>,
    header: &str,
) -> (u16, String, String) {
    let request = ureq::http::Request::builder().method(method).uri(server.url(path));
    let request = token
        .into_iter()
        .fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
    let mut response = agent().run(request.body("").expect("a request")).expect("the server answers");
    let value = response.headers().get(header).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (value, status) = (value.to_owned(), response.status().as_u16());
    (status, value, response.body_mut().read_to_string().expect("text"))
}

#[test]
fn each_operation_accepts_its_role_and_higher_ones() {
    let (server, tokens) = server_with_roles(|_| {});
    let (_, _, description) = ask(&server, "GET", "/v1/openapi.json", Some(&tokens[0]), "");
    let description: Value = serde_json::from_str(&description).expect("JSON");
    assert_eq!(description["components"]["securitySchemes"]["bearer"]["scheme"], json!("bearer"));
    let mut checked = 0;
    for (path, operations) in description["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let needed = operation["security"][0]["bearer"][0].as_str();
            let place = path.replace(['{', '}'], "");
            let method = method.to_uppercase();
            let roles = Role::ALL.map(Role::name);
            let needs = needed.map(|needed| roles.iter().position(|role| *role == needed).expect("a role"));
            if place == "/v1/events" {
                continue;
            }
            for (has, token) in tokens.iter().enumerate() {
                let (status, _, _) = ask(&server, &method, &place, Some(token), "");
                let refused = status == 403;
                assert_eq!(
                    refused,
                    needs.is_some_and(|needs| has < needs),
                    "{method} {place} {has}: {status}"
                );
            }
            let (status, challenge, problem) = ask(&server, &method, &place, None, "www-authenticate");
            assert_eq!(status == 401, needs.is_some(), "{method} {place}: {status}");
            if status == 401 {
                assert!(
                    challenge.starts_with("Bearer") && problem.contains("urn:leeward:problem:unauthorized")
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 20);
    assert_eq!(ask(&server, "GET", "/healthz", None, "").0, 200);
    let (status, policy, page) = ask(&server, "GET", "/", None, "content-security-policy");
    assert!(
        status == 200 && policy.starts_with("default-src 'none'; ") && page.contains("Leeward"),
        "{policy}"
    );
    assert_eq!(ask(&server, "POST", "/", None, "").0, 404);
    // All assets of the page exist and are cached as immutable.
    for part in page.split(['"', '\'']).filter_map(|part| part.strip_prefix("./assets/")) {
        let (status, cached, _) = ask(&server, "GET", &format!("/assets/{part}"), None, "cache-control");
        assert!(status == 200 && cached.contains("immutable"), "{part}");
    }
}

#[test]
fn a_host_bound_token_reports_its_hosts_and_reads_and_no_more() {
    let hosts: [(&str, &[&str]); 3] = [("r0h0", &["r0h0"]), ("r0", &["r0"]), ("switches", &[])];
    let made = hosts.map(|(name, hosts)| NewToken::make(name, Role::Report, hosts).expect("randomness"));
    let (server, [host, rack, switches]) = server_with_tokens(made, |_| {});
    let report = |token: &str, fields: Value| {
        let mut body = json!({ "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z" });
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let request =
            agent().post(server.url("/v1/reports")).header("authorization", format!("Bearer {token}"));
        let mut answer = request
            .header("content-type", "application/json")
            .send(body.to_string())
            .expect("the server answers");
        let text = answer.body_mut().read_to_string().expect("text");
        (answer.status().as_u16(), serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let link = |name: &str| json!({ "link": name, "load_bps": 1_000 });
    let pod = |host: &str| {
        let uid = "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7d5e";
        json!({ "pod": uid, "host": host, "egress_bps": 1, "ingress_bps": 1 })
    };
    let own = json!({
        "links": [link("r0h0:egress"), link("r0h0:ingress")],
        "devices": [{ "device": "r0h0:sda", "busy": 0.5 }],
        "hosts": [{ "host": "r0h0", "draining": false, "stored": "1GB" }],
        "probe": { "host": "r0h0", "port": 7601 },
        "pods": [pod("r0h0")],
    });
    let (status, summary) = report(&host, own);
    assert_eq!(
        (status, &summary["links"], &summary["unknown_devices"]),
        (200, &json!(2), &json!(["r0h0:sda"])),
        "{summary}"
    );
    let (_, _, before) = ask(&server, "GET", "/v1/snapshot", Some(&host), "");
    let others = [
        ("links[1].link", "r0h1:egress", json!({ "links": [link("r0h0:egress"), link("r0h1:egress")] })),
        ("links[0].link", "r0:uplink", json!({ "links": [link("r0:uplink")] })),
        ("links[0].link", "r0h0>r0h1", json!({ "links": [link("r0h0>r0h1")] })),
        ("links[0].link", "r0h01:egress", json!({ "links": [link("r0h01:egress")] })),
        ("devices[0].device", "r1h0:sda", json!({ "devices": [{ "device": "r1h0:sda", "busy": 0 }] })),
        ("hosts[0].host", "r2h1", json!({ "hosts": [{ "host": "r2h1", "up": false }] })),
        ("pods[1].host", "r0h1", json!({ "pods": [pod("r0h0"), pod("r0h1")] })),
        ("probe.host", "r1h0", json!({ "probe": { "host": "r1h0", "port": 7601 } })),
        (
            "tasks[0].decision",
            "1",
            json!({ "tasks": [{ "decision": "1", "egress_bps": 1, "ingress_bps": 1 }] }),
        ),
        ("workloads[0].workload", "mail", json!({ "workloads": [{ "workload": "mail", "latency_s": 1 }] })),
    ];
    for (field, name, fields) in others {
        let (status, problem) = report(&host, fields);
        assert_eq!((status, &problem["type"]), (403, &json!("urn:leeward:problem:forbidden")), "{problem}");
        assert_eq!(problem["field"], json!(field), "{problem}");
        assert!(
            problem["detail"].as_str().is_some_and(|text| text.starts_with(&format!("`{name}`"))),
            "{problem}"
        );
    }
    assert_eq!(ask(&server, "GET", "/v1/snapshot", Some(&host), "").2, before, "the report has no effect");
    // A rack named like the token's host is not that host.
    assert_eq!(report(&rack, json!({ "links": [link("r0:uplink")] })).0, 403);
    for (method, path) in [
        ("POST", "/v1/place/replicas"),
        ("DELETE", "/v1/commitments/1"),
        ("PUT", "/v1/jobs/a"),
        ("DELETE", "/v1/jobs/a"),
        ("POST", "/v1/reload"),
    ] {
        assert_eq!(ask(&server, method, path, Some(&host), "").0, 403, "{method} {path}");
    }
    let everything = json!({ "links": [link("r0:uplink"), link("r2h1:egress")] });
    assert_eq!(report(&switches, everything).0, 200, "an unbound token reports all hosts");
}

#[test]
fn no_response_contains_the_token() {
    let (server, _) = server_with_roles(|_| {});
    for token in ["leeward_secret", "x", ""] {
        let (status, _, text) = ask(&server, "GET", "/v1/status", Some(token), "");
        assert_eq!(status, 401);
        assert!(token.len() < 2 || !text.contains(token), "{text}");
    }
}

#[test]
fn without_tokens_requests_for_other_host_names_are_rejected() {
    let response_to = |server: &Server, host: &str| {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        let head = format!("GET /v1/status HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the server reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("text");
        response
    };
    let open = Server::start(service(RACKS_3X2, "", frozen_clock()));
    for own in ["localhost:7600", "127.0.0.1", "[::1]:1"] {
        assert!(response_to(&open, own).starts_with("HTTP/1.1 200"), "{own}");
    }
    for other in ["evil.example:7600", "10.0.0.1", ""] {
        let response = response_to(&open, other);
        assert!(
            response.starts_with("HTTP/1.1 421") && response.contains("urn:leeward:problem:misdirected"),
            "{response}"
        );
    }
    let (closed, _) = server_with_roles(|_| {});
    assert!(response_to(&closed, "leeward.example").starts_with("HTTP/1.1 401"));
}

/// Status and text of the response to a request with these header lines.
fn response_to_lines(server: &Server, request: &str, lines: &str) -> String {
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    let head = format!("{request}\r\n{lines}connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    response
}

#[test]
fn a_request_has_exactly_one_host() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let status = |request: &str, lines: &str| response_to_lines(&server, request, lines)[9..12].to_owned();
    assert_eq!(status("GET /v1/status HTTP/1.1", "host: localhost\r\n"), "200");
    assert_eq!(status("GET /v1/status HTTP/1.0", ""), "200");
    for lines in
        ["", "host: localhost\r\nhost: localhost\r\n", "host: a b\r\n", "host: evil.example@localhost\r\n"]
    {
        let response = response_to_lines(&server, "GET /v1/status HTTP/1.1", lines);
        assert!(response.starts_with("HTTP/1.1 400") && response.contains("problem:host"), "{response}");
    }
}

#[test]
fn pages_of_other_sites_have_no_effect() {
    let (server, _) = server_with_roles(|_| {});
    let refused = |request: &str, lines: &str| {
        let response = response_to_lines(
            &server,
            request,
            &format!("host: localhost:7600\r\n{lines}content-length: 0\r\n"),
        );
        response.starts_with("HTTP/1.1 403") && response.contains("problem:other-site")
    };
    let (reload, status, events) =
        ("POST /v1/reload HTTP/1.1", "GET /v1/status HTTP/1.1", "GET /v1/events HTTP/1.1");
    let (page, missing) = ("GET / HTTP/1.1", "GET /nothing HTTP/1.1");
    for lines in [
        "sec-fetch-site: cross-site\r\norigin: http://localhost:7600\r\n",
        "sec-fetch-site: same-site\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: iframe\r\n",
        "sec-fetch-site: \u{fc}\r\n",
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "origin: http://localhost:7601\r\n",
    ] {
        for request in [reload, status, events, page, missing] {
            assert!(refused(request, lines), "{request} {lines}");
        }
    }
    let link = "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
    assert!(refused(reload, link) && refused(events, link));
    assert!(!refused(page, link) && !refused(status, link));
    for own in [
        "",
        "sec-fetch-site: same-origin\r\n",
        "sec-fetch-site: none\r\n",
        "origin: https://localhost:7600\r\n",
    ] {
        for request in [reload, status, events, page, missing] {
            assert!(!refused(request, own), "{request} {own}");
        }
    }
}

#[test]
fn a_client_over_its_rate_limit_gets_retry_after() {
    let (server, tokens) = server_with_roles(|service| {
        service.access.set_rate(Some(3));
        // The clock is frozen, so the bucket does not refill.
        service.clock = frozen_clock();
    });
    for _ in 0..3 {
        assert_eq!(ask(&server, "GET", "/v1/status", Some(&tokens[0]), "").0, 200);
    }
    let (status, after, problem) = ask(&server, "GET", "/v1/status", Some(&tokens[0]), "retry-after");
    assert_eq!((status, after.as_str()), (429, "1"));
    assert!(problem.contains("urn:leeward:problem:too-many"), "{problem}");
    assert_eq!(
        ask(&server, "GET", "/v1/status", Some(&tokens[1]), "").0,
        200,
        "another client has its own limit"
    );
}

#[test]
fn the_body_limit_is_configurable() {
    let mut service = service(RACKS_3X2, "", frozen_clock());
    service.body = 100;
    let server = Server::start(service);
    let mut block = json!({ "size": "256MiB", "tags": [] });
    assert_eq!(
        server.post("/v1/place/replicas", &block).0,
        409,
        "the body is read, and telemetry is missing"
    );
    block["tags"] = json!(["a".repeat(100)]);
    let (status, _, problem) = server.post("/v1/place/replicas", &block);
    assert_eq!((status, &problem["type"]), (413, &json!("urn:leeward:problem:too-large")));
}

#[test]
fn a_client_that_does_not_read_responses_is_disconnected() {
    let mut service =
        service("{racks: 40, hosts_per_rack: 25, nic: 1Gbps, oversubscription: 4}", "", Clock::system());
    (service.patience, service.connections) = (Duration::from_millis(500), ConnectionLimit::fixed(1));
    let server = Server::start(service);
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a time");
    // Sends requests until both socket buffers are full.
    while stream.write_all(b"GET /v1/hosts?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n").is_ok() {}
    assert_eq!(server.get("/v1/status").0, 200, "the only connection is free again");
    drop(stream);
}

/// Writes a self-signed certificate for `localhost` and its key into a folder.
fn certificate(folder: &std::path::Path, name: &str) -> (TlsSettings, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.key_pair.serialize_pem()).expect("a file");
    let settings = TlsSettings { cert: cert.display().to_string(), key: key.display().to_string() };
    (settings, made.cert.der().to_vec())
}

/// Returns the response head over TLS, with one trusted certificate.
fn over_tls(server: &Server, trusted: &[u8]) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.to_vec().into()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut stream = StreamOwned::new(connection, TcpStream::connect(server.address)?);
    stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let mut head = [0; 15];
    stream.read_exact(&mut head)?;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future)
}

#[test]
fn a_reload_replaces_certificate_and_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tls, first) = certificate(folder.path(), "service");
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "").expect("a file");
    let config = folder.path().join("leeward.yaml");
    let write = |extra: &str| {
        let (cert, key, tokens) = (&tls.cert, &tls.key, tokens.display());
        let text = format!("tls: {{cert: {cert}, key: {key}}}\ntokens: {tokens}\n{extra}");
        std::fs::write(&config, text).expect("a file");
    };
    write("");
    let flags = Flags { config: Some(config.display().to_string()), ..Flags::default() };
    let started: Settings = flags.settings().expect("valid settings");
    assert_eq!(started.log, LogSettings::default());
    let access = Arc::new(Access::new(Some(Tokens::from_text("tokens", "").expect("none")), None));
    let server_tls = Arc::new(ArcSwap::new(tls_config(&tls).expect("the key matches the certificate")));
    let mut service = service(RACKS_3X2, "", frozen_clock());
    (service.access, service.tls) = (access.clone(), Some(server_tls));
    let reload = Arc::new(Reload::new(flags, started, service.reloadable()));
    service.reload = Some(reload.clone());
    let run = || block_on(reload.clone().run());
    let server = Server::start(service);
    assert_eq!(over_tls(&server, &first).expect("the server speaks TLS"), "HTTP/1.1 401 Un");

    let made = NewToken::make("a", Role::Admin, &[]).expect("randomness");
    std::fs::write(&tokens, &made.line).expect("a file");
    let (_, second) = certificate(folder.path(), "service");
    write("seed: 7\nlimits: {requests_per_s: 2}\n");
    let would = block_on(reload.clone().dry_run()).expect("a valid reload");
    let local = "127.0.0.1".parse().expect("an address");
    assert!(
        access.admit(Some(Role::Admin), Some(&made.token), local, 0.0).is_err(),
        "a dry run applies nothing"
    );
    let reloaded = run().expect("a valid reload");
    assert_eq!(would, reloaded);
    assert_eq!(reloaded.restart, ["seed"]);
    assert_eq!(reloaded.changed, ["limits.requests_per_s"]);
    assert!(reloaded.reloaded.contains(&"tokens") && reloaded.reloaded.contains(&"tls"));
    assert!(over_tls(&server, &first).is_err(), "the old certificate is no longer in use");
    assert!(over_tls(&server, &second).is_ok());
    assert!(access.admit(Some(Role::Admin), Some(&made.token), local, 0.0).is_ok());

    // Invalid files change nothing.
    std::fs::write(&tokens, "wrong").expect("a file");
    let Err(ReloadError::Input(error)) = run() else { panic!("the file is invalid") };
    assert_eq!(error.line, Some(1));
    assert!(access.admit(Some(Role::Admin), Some(&made.token), local, 0.0).is_ok());
}

#[test]
fn clients_without_tls_and_silent_clients_are_disconnected() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tls, trusted) = certificate(folder.path(), "service");
    let mut service = service(RACKS_3X2, "", frozen_clock());
    service.tls = Some(Arc::new(ArcSwap::new(tls_config(&tls).expect("the key matches the certificate"))));
    (service.patience, service.connections) = (Duration::from_millis(300), ConnectionLimit::fixed(1));
    let server = Server::start(service);
    for request in ["", "GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        assert!(!response.starts_with(b"HTTP"));
    }
    assert!(over_tls(&server, &trusted).is_ok());
}

#[test]
fn a_key_of_another_certificate_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((one, _), (other, _)) = (certificate(folder.path(), "one"), certificate(folder.path(), "other"));
    let mixed = TlsSettings { cert: one.cert.clone(), key: other.key };
    let error = tls_config(&mixed).expect_err("an error");
    assert!(error.message.contains("does not match"), "{error}");
    let swapped = TlsSettings { cert: one.key, key: one.cert };
    assert!(tls_config(&swapped).expect_err("no certificate").message.contains("PEM"));
}
