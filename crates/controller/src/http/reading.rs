//! Parsing of requests without a service, each part by the code of its handler, for fuzzing.

use axum::extract::Query;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use leeward_fabric::Cluster;
use leeward_records::Clock;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body::read;
use super::cluster::{merge, readable, wanted};
use super::decisions::{self, WhatIfBody};
use super::demo::Demo;
use super::events::heard;
use super::migrations::{self, AnswerBody, JobBody};
use super::network::{Links, Newer, Part};
use super::operations;
use super::past::{OnePast, Past};
use super::place::{ReplicasBody, TasksBody, WorkloadBody, key_of};
use super::probes::ProbeBody;
use super::problem::Problem;
use super::reports::ReportBody;
use super::score::ScoreBody;

/// Context for the parsing of requests.
pub struct Beside<'a> {
    /// Cluster for the names in requests.
    pub cluster: &'a Cluster,
    /// Cluster file, as JSON.
    pub text: &'a str,
    /// Clock for the times in requests.
    pub clock: &'a Clock,
}

/// Parses a request as text: method and URI on a line, a line for each header, an empty line, and the body.
/// Path values are taken literally. `None` for an invalid request, or one without anything to parse.
///
/// # Errors
/// Status and detail of the problem document.
pub fn understand(request: &[u8], beside: &Beside<'_>) -> Option<Result<(), (u16, String)>> {
    let end = request.windows(2).position(|two| two == b"\n\n");
    let (head, body) = end.map_or((request, &[][..]), |end| (&request[..end], &request[end + 2..]));
    let mut lines = head.split(|&byte| byte == b'\n');
    let (method, uri) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let uri: Uri = uri.parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.insert(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    let asked = |one: &&super::table::Operation| {
        one.method.as_str() == method && passed(one.path, uri.path()).is_some()
    };
    let operation = operations::all().find(asked)?;
    let value = passed(operation.path, uri.path())?;
    let read = taken(&format!("{method} {}", operation.path), value, &uri, &headers, body, beside)?;
    Some(read.map_err(|problem| (problem.status(), problem.detail().to_owned())))
}

/// The value in a path of this form, empty if the form has none; `None` for a path of another form.
fn passed<'a>(form: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, rest)) = form.split_once('{') else { return (form == path).then_some("") };
    let after = rest.split_once('}')?.1;
    let value = path.strip_prefix(before)?.strip_suffix(after)?;
    (!value.is_empty() && !value.contains('/')).then_some(value)
}

fn taken(
    operation: &str,
    value: &str,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
    &Beside { cluster, text, clock }: &Beside<'_>,
) -> Option<Result<(), Problem>> {
    let fabric = &cluster.fabric;
    let by_pages = |part: Part| part.limit().and(part.after()).map(drop);
    let taken = match operation {
        "POST /v1/reports" => {
            read::<ReportBody>(body).and_then(|body| body.operation(fabric, clock)).map(drop)
        }
        "POST /v1/place/replicas" => {
            read::<ReplicasBody>(body).and_then(|body| body.operation(fabric, headers)).map(drop)
        }
        "POST /v1/place/tasks" => {
            read::<TasksBody>(body).and_then(|body| body.operation(fabric, headers)).map(drop)
        }
        "POST /v1/place/volumes" => {
            read::<WorkloadBody>(body).and_then(|body| body.operation(headers, false)).map(drop)
        }
        "POST /v1/workloads" => {
            read::<WorkloadBody>(body).and_then(|body| body.operation(headers, true)).map(drop)
        }
        "POST /v1/score/hosts" => read::<ScoreBody>(body).and_then(|body| body.operation(fabric)).map(drop),
        "POST /v1/decisions/{id}/what-if" => {
            read::<WhatIfBody>(body).and_then(|_| decisions::number(value)).map(drop)
        }
        "POST /v1/migrations/{id}" => {
            read::<AnswerBody>(body).and_then(|body| body.operation(value)).map(drop)
        }
        "PUT /v1/jobs/{job}" => read::<JobBody>(body).and_then(|body| body.operation(value)).map(drop),
        "POST /v1/probes" => {
            read::<ProbeBody>(body).and_then(|body| key_of(headers).and(body.read())).map(drop)
        }
        "PUT /v1/demo" => read::<Demo>(body).and_then(|demo| demo.check(clock)),
        "PUT /v1/cluster" => {
            wanted(headers).and_then(|_| read::<Value>(body)).and_then(|cluster| readable(&cluster)).map(drop)
        }
        "PATCH /v1/cluster" => wanted(headers).and_then(|_| read::<Value>(body)).and_then(|fields| {
            let mut cluster = serde_json::from_str(text).map_err(|_| Problem::broken())?;
            merge(&mut cluster, fields);
            readable(&cluster).map(drop)
        }),
        "GET /v1/racks" | "GET /v1/hosts" | "GET /v1/hotspots" | "GET /v1/workloads" | "GET /v1/probes" => {
            query(uri).and_then(by_pages)
        }
        "GET /v1/links" => query::<Links>(uri).and_then(|links| by_pages(links.part())),
        "GET /v1/decisions" | "GET /v1/commitments" => {
            query::<decisions::Which>(uri).and_then(|which| by_pages(which.part()))
        }
        "GET /v1/migrations" => {
            query::<migrations::Which>(uri).and_then(|which| which.state().and(by_pages(which.part())))
        }
        "GET /v1/history" => query::<Past>(uri).and_then(|past| past.steps(clock)).map(drop),
        "GET /v1/links/{link}/history" | "GET /v1/hosts/{host}/history" => {
            query::<OnePast>(uri).and_then(|past| past.steps(clock)).map(drop)
        }
        "GET /v1/snapshot" => query::<Newer>(uri).map(drop),
        "GET /v1/events" => heard(headers).map(drop),
        _ => return None,
    };
    Some(taken)
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    Ok(Query::<T>::try_from_uri(uri)?.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::super::table::Parameter;
    use super::*;

    const CLUSTER: &str = r#"{"racks": 3, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 10}"#;
    const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/request");

    fn tried(request: &[u8]) -> Option<Result<(), (u16, String)>> {
        let cluster = Cluster::from_text("cluster", CLUSTER).expect("a good cluster");
        let clock = Clock::new("2020-01-01T00:00:00Z".parse().expect("a time"), || leeward_fabric::Nanos(0));
        understand(request, &Beside { cluster: &cluster, text: CLUSTER, clock: &clock })
    }

    fn seeds() -> Vec<Vec<u8>> {
        let files = std::fs::read_dir(SEEDS).expect("the seeds").map(|file| file.expect("a file").path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files.iter().map(|file| std::fs::read(file).expect("a seed")).collect()
    }

    #[test]
    fn every_operation_that_reads_something_has_a_seed_that_is_understood() {
        let mut met = BTreeSet::new();
        for seed in seeds() {
            let text = String::from_utf8_lossy(&seed).into_owned();
            assert_eq!(tried(&seed), Some(Ok(())), "{text}");
            let line = text.lines().next().expect("a line");
            let (method, path) =
                line.split('?').next().and_then(|line| line.split_once(' ')).expect("a request");
            let of = |one: &&super::super::table::Operation| {
                one.method.as_str() == method && passed(one.path, path).is_some()
            };
            let operation = operations::all().find(of).expect("an operation");
            met.insert((operation.method.as_str(), operation.path));
        }
        let reads = |one: &&super::super::table::Operation| {
            let more = |parameter: &Parameter| !matches!(parameter, Parameter::One { place: "path", .. });
            one.body.is_some() || one.parameters.iter().any(more)
        };
        let all: BTreeSet<_> =
            operations::all().filter(reads).map(|one| (one.method.as_str(), one.path)).collect();
        assert_eq!(met, all);
    }

    /// Mutations of a request: bytes are removed and inserted.
    #[derive(Clone, Debug)]
    struct Cut(Index, usize, Vec<u8>);

    fn cut() -> impl Strategy<Value = Cut> {
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
        (any::<Index>(), 0..12_usize, piece).prop_map(|(at, gone, piece)| Cut(at, gone, piece))
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_understood_or_told_in_a_short_line(seed in select(seeds()), cuts in vec(cut(), 1..6)) {
            let mut request = seed;
            for Cut(at, gone, piece) in cuts {
                let at = at.index(request.len() + 1);
                let end = request.len().min(at + gone);
                request.splice(at..end, piece);
            }
            if let Some(Err((status, detail))) = tried(&request) {
                prop_assert!((400..500).contains(&status), "{} {}", status, detail);
                prop_assert!(detail.len() < 2_000 && !detail.contains('\n'), "{}", detail);
            }
        }
    }
}
