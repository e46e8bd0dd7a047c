//! Golden data of the authors' released code, from the folder `LEEWARD_SHARED`.

pub mod reference;

use std::io::Read;
use std::path::PathBuf;

use leeward_calculus::mmpp::{Mmpp, Request, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Network, Queue, Stage, Workload, priorities_by_objective};
use serde_json::Value;

/// The step of the released models, seconds.
pub const STEP: f64 = 1e-5;

/// The folder of the goldens; prints that it skips if there is none.
pub fn golden(part: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("LEEWARD_SHARED") else {
        println!("skipped: LEEWARD_SHARED is not set, so there is no golden/qos/{part} to compare with");
        return None;
    };
    Some(PathBuf::from(shared).join("golden/qos").join(part))
}

/// Every file of a folder with this ending, in order of name.
pub fn files(folder: &PathBuf, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no {ending}", folder.display());
    files
}

/// The text of a file, decompressed if needed.
pub fn text(path: &PathBuf) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|ending| ending != "gz") {
        return String::from_utf8(bytes).unwrap();
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

/// A JSON file.
pub fn json(path: &PathBuf) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

/// The model of an `arrivalInfo`.
pub fn model(info: &Value, sigma: Sigma) -> Mmpp {
    let numbers = |row: &Value| row.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect();
    let transitions: Vec<Vec<f64>> =
        info["transitionMatrix"].as_array().unwrap().iter().map(numbers).collect();
    let states = info["MGFs"].as_array().unwrap().iter().map(|mgf| {
        assert_eq!(mgf["type"], "MGFExponential");
        let mean = mgf["lambda"].as_f64().unwrap().recip();
        State {
            requests: Requests::Bernoulli(mgf["p"].as_f64().unwrap()),
            sizes: Sizes::Exponential { mean },
        }
    });
    Mmpp::new(STEP, states.collect(), &transitions, sigma).unwrap()
}

/// A trace of `ns,size,Get|Put` with the work that the released estimator of either direction assigns to a request.
pub fn trace(path: &PathBuf, incoming: bool) -> Vec<Request> {
    text(path)
        .lines()
        .map(|line| {
            let mut fields = line.split(',');
            let at = fields.next().unwrap().parse::<u64>().unwrap() as f64 / 1e9;
            let size =
                u64::from_str_radix(fields.next().unwrap().trim_start_matches("0x"), 16).unwrap() as f64;
            let payload = (fields.next().unwrap() == "Put") == incoming;
            Request { at, work: 200.0 + if payload { 1.1 } else { 0.025 } * size }
        })
        .collect()
}

/// The network of an input of the released calculator, with priorities by objective.
pub fn network(input: &Value) -> Network {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let queues: Vec<Queue> = list(&input["queues"])
        .iter()
        .map(|queue| Queue {
            name: text(&queue["name"]),
            rate: queue["bandwidth"].as_f64().unwrap(),
            in_service: 0.0,
        })
        .collect();
    let clients = list(&input["clients"]);
    let objectives: Vec<f64> = clients.iter().map(|client| client["SLO"].as_f64().unwrap()).collect();
    let priorities = priorities_by_objective(&objectives);
    let workloads: Vec<Workload> = clients
        .iter()
        .zip(priorities)
        .map(|(client, priority)| Workload {
            name: text(&client["name"]),
            percentile: client["SLOpercentile"].as_f64().unwrap(),
            priority,
            dependencies: list(&client["dependencies"]).iter().map(text).collect(),
            stages: list(&client["flows"])
                .iter()
                .map(|flow| Stage {
                    queues: list(&flow["queues"]).iter().map(text).collect(),
                    arrivals: model(&flow["arrivalInfo"], Sigma::Zero),
                    packet: 0.0,
                })
                .collect(),
        })
        .collect();
    Network::new(&queues, &workloads).unwrap()
}
