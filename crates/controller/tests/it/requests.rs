//! Requests of any kind: the routes accept the seeds of the fuzz target, and answer all other requests with a short
//! problem.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{frozen_clock, service};
use leeward_fuzzing::request_text::{parse, send};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

const CLUSTER: &str = r#"{"racks": 3, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 10}"#;
/// Details of problems that this service returns for valid requests, because of its cluster and its age.
const BY_STATE: [&str; 3] = [
    "the cluster is a tree, which has no rates between pairs of hosts",
    "times of this service start at",
    "send `links` in a report of their own",
];
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/request");

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn seeds() -> Vec<Vec<u8>> {
    let files =
        std::fs::read_dir(Path::new(SEEDS)).expect("the seeds").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a seed")).collect()
}

/// The reply of a new service to a request given as text. `None` if the text is no request, or if the reply takes long.
fn response_of_new_service(text: &[u8]) -> Option<(u16, String)> {
    let request = parse(text)?;
    runtime().block_on(async {
        let mut service = service(CLUSTER, "", frozen_clock());
        service.demo = true;
        let (routes, actor) = service.open().await.expect("an empty store");
        let actor = tokio::spawn(actor);
        let reply = send(&routes, request).await;
        drop(routes);
        actor.abort();
        reply
    })
}

/// The path in the OpenAPI document for the path of a request.
fn documented_path<'a>(paths: impl Iterator<Item = &'a String>, path: &str) -> Option<&'a String> {
    let matches = |form: &str| {
        let (form, path): (Vec<_>, Vec<_>) = (form.split('/').collect(), path.split('/').collect());
        form.len() == path.len()
            && form.iter().zip(&path).all(|(form, part)| form.starts_with('{') || form == part)
    };
    let mut matching: Vec<_> = paths.filter(|form| matches(form)).collect();
    // A literal path takes precedence over one with a parameter.
    matching.sort_by_key(|form| form.contains('{'));
    matching.first().copied()
}

/// The OpenAPI document of a service.
fn description() -> Value {
    runtime().block_on(async {
        let (routes, _actor) = service(CLUSTER, "", frozen_clock()).open().await.expect("an empty store");
        let request = axum::http::Request::get("/v1/openapi.json").header("host", "localhost");
        let request = request.body(axum::body::Body::empty()).expect("valid");
        let reply =
            hyper::service::Service::call(&hyper_util::service::TowerToHyperService::new(routes), request);
        let body = reply.await.unwrap_or_else(|never| match never {}).into_body();
        let body = axum::body::to_bytes(body, 1 << 24).await.expect("a document");
        serde_json::from_slice::<Value>(&body).expect("JSON")
    })
}

#[test]
fn every_operation_rejects_an_unknown_parameter() {
    let document = description();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            let method = method.to_uppercase();
            let path = path.replace(['{', '}'], "").replace("/id", "/1");
            let request = format!("{method} {path}?made%5fup=true&limit=1\n\n{{}}");
            let reply = response_of_new_service(request.as_bytes());
            let (status, problem) = reply.unwrap_or_else(|| panic!("{method} {path}: no reply"));
            let problem: Value = serde_json::from_str(&problem).unwrap_or_default();
            assert_eq!((status, &problem["field"]), (422, &"made_up".into()), "{method} {path}: {problem}");
            // A question mark without a parameter is valid.
            if method == "GET" && path != "/v1/events" {
                let reply = response_of_new_service(format!("GET {path}?\n\n").as_bytes());
                assert!(reply.is_some_and(|(status, _)| status != 422), "{path}");
            }
        }
    }
}

#[test]
fn every_operation_with_input_has_a_valid_fuzz_seed() {
    let document = description();
    let paths = document["paths"].as_object().expect("paths");
    let mut seeded = BTreeSet::new();
    for seed in seeds() {
        let text = String::from_utf8_lossy(&seed).into_owned();
        if let Some((status, problem)) = response_of_new_service(&seed) {
            let by_state = BY_STATE.iter().any(|detail| problem.contains(detail));
            assert!(
                by_state || ![400, 405, 408, 413, 415, 422].contains(&status) && status != 500,
                "{text}: {problem}"
            );
        }
        let line = text.lines().next().expect("a line");
        let (method, uri) = line.split_once(' ').expect("a request");
        let path = uri.split('?').next().expect("a path");
        let path = documented_path(paths.keys(), path).expect("an operation");
        seeded.insert((method.to_lowercase(), path.clone()));
    }
    let has_input = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        operation.get("requestBody").is_some() || parameters.into_iter().any(|one| one["in"] != "path")
    };
    let mut expected = BTreeSet::new();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            if has_input(operation) {
                expected.insert((method.clone(), path.clone()));
            }
        }
    }
    assert_eq!(seeded, expected);
}

/// A change of a request: bytes are removed, and others inserted.
#[derive(Clone, Debug)]
struct Edit(Index, usize, Vec<u8>);

fn edit() -> impl Strategy<Value = Edit> {
    const PIECES: &[&str] = &[
        "null",
        "-1",
        "1e400",
        "18446744073709551616",
        "\"\"",
        "\"\u{85}\"",
        "{}",
        "[]",
        "\"0B\"",
        "\"1e9PB\"",
        "&",
        "=",
        "%ff",
        "\u{2028}",
        "{",
        "}",
        "\"",
        ",",
        "\n",
    ];
    let piece =
        prop_oneof![select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()), vec(any::<u8>(), 0..4)];
    (any::<Index>(), 0..12_usize, piece).prop_map(|(at, removed, piece)| Edit(at, removed, piece))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_request_succeeds_or_gets_a_short_problem(seed in select(seeds()), edits in vec(edit(), 1..6)) {
        let mut request = seed;
        for Edit(at, removed, piece) in edits {
            let at = at.index(request.len() + 1);
            let end = request.len().min(at + removed);
            request.splice(at..end, piece);
        }
        if let Some((status, problem)) = response_of_new_service(&request) {
            prop_assert!(status != 500, "{} {}", status, problem);
            prop_assert!(problem.len() < 3_000 && !problem.contains('\n'), "{}", problem);
        }
    }
}
