//! Golden data of the authors' released code, from the folder `LEEWARD_SHARED`.

use std::path::Path;

use leeward_calculus::fit::Request;
use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Network, Queue, Stage, Workload};
use leeward_testing::golden;
use serde_json::Value;

/// The step of the released models, seconds.
pub const STEP: f64 = 1e-5;

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

/// Reads a trace with lines of `ns,size,Get|Put`. The work of each request is from the released estimator of the given
/// direction.
pub fn trace(path: &Path, incoming: bool) -> Vec<Request> {
    golden::text(path)
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

/// Priorities by latency objective: the shortest objective first, and equal priorities for equal objectives (SLO
/// section 4.3).
fn priorities_by_objective(seconds: &[f64]) -> Vec<u32> {
    let mut distinct = seconds.to_vec();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    seconds.iter().map(|objective| distinct.partition_point(|other| other < objective) as u32).collect()
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
            latency: 0.0,
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
