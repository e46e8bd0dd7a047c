//! Reads inputs of the thesis' released code as systems and workloads (`golden/qos`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_slo::pack::{Client, Site};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_testing::golden;
use leeward_testing::golden::{array, buckets, number};
use leeward_traces::Stage;
use serde_json::Value;

pub fn text(value: &Value) -> &str {
    value.as_str().expect("a name")
}

/// Queues and clients of an optimiser input, with priorities by SLO and limits to be chosen.
pub fn system(input: &Value) -> System {
    let queues: Vec<Queue> = array(&input["queues"])
        .iter()
        .map(|queue| Queue {
            name: text(&queue["name"]).to_owned(),
            capacity: number(&queue["bandwidth"]),
            latency: 0.0,
            resource: None,
        })
        .collect();
    let index: BTreeMap<&str, usize> =
        queues.iter().enumerate().map(|(index, queue)| (queue.name.as_str(), index)).collect();
    let mut slos: Vec<f64> = array(&input["clients"]).iter().map(|client| number(&client["SLO"])).collect();
    slos.sort_by(f64::total_cmp);
    slos.dedup();
    let promises = array(&input["clients"]).iter().map(|client| {
        let flows = array(&client["flows"]);
        let slo = number(&client["SLO"]);
        let stage = |flow: &Value| match text(&flow["queues"][0]) {
            name if name.contains("ssd") => Stage::Storage,
            name if name.starts_with('c') => Stage::NetworkIn,
            _ => Stage::NetworkOut,
        };
        let demands = flows.iter().map(|flow| {
            let arrivals = ArrivalCurve::new(&buckets(&flow["arrivalInfo"])).expect("a curve");
            Demand {
                stage: stage(flow),
                arrivals,
                largest: 0.0,
                model: None,
                unloaded: 0.0,
                outstanding: None,
            }
        });
        let workload = Workload {
            name: text(&client["name"]).to_owned(),
            slo: Some(Slo { percentile: 99.9, latency: slo }),
            demands: demands.collect(),
            dependencies: Vec::new(),
        };
        let route = flows.iter().map(|flow| array(&flow["queues"]).iter().map(|q| index[text(q)]).collect());
        let priority = slos.iter().position(|&other| other == slo).expect("the SLO is listed") as u32;
        Promise {
            route: route.collect(),
            priorities: vec![priority; flows.len()],
            limits: workload.demands.iter().map(|demand| demand.arrivals.clone()).collect(),
            workload: Arc::new(workload),
        }
    });
    let promises = promises.collect();
    System { queues, promises }
}

/// Arrival curve of an example trace at a stage, from the released code's cache: rows of seconds, work and
/// slope.
pub fn cached_curve(folder: &Path, trace: &str, estimator: &str) -> ArrivalCurve {
    let path = folder.join(format!("placement/arrivalCurves/arrivalCurve{trace}.txt{estimator}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let buckets: Vec<TokenBucket> = text
        .lines()
        .map(|line| {
            let row: Vec<f64> = line.split(',').map(|cell| cell.parse().expect("a number")).collect();
            TokenBucket::new(row[2], row[1] - row[2] * row[0]).expect("a bucket")
        })
        .collect();
    ArrivalCurve::new(&buckets).expect("a curve has a row")
}

/// The workloads of a placement example, in order of arrival.
pub fn workloads(folder: &Path, topology: &Value) -> Vec<Workload> {
    let stages =
        [(Stage::NetworkIn, "networkIn"), (Stage::Storage, "storageSSD"), (Stage::NetworkOut, "networkOut")];
    let workload = |client: &Value| {
        let trace = text(&client["trace"]).trim_start_matches("traces/").trim_end_matches(".txt");
        let demands = stages.map(|(stage, estimator)| Demand {
            stage,
            arrivals: cached_curve(folder, trace, estimator),
            largest: 0.0,
            model: None,
            unloaded: 0.0,
            outstanding: None,
        });
        Workload {
            name: text(&client["name"]).to_owned(),
            slo: Some(Slo { percentile: 99.9, latency: number(&client["SLO"]) }),
            demands: demands.into(),
            dependencies: Vec::new(),
        }
    };
    array(&topology["clients"]).iter().map(workload).collect()
}

/// A topology of the released code, compressed or not.
pub fn topology(path: &Path) -> Value {
    golden::json(path)
}

/// The topology's clients, with one slot per virtual machine, and its servers with one SSD each, on links of
/// 1 Gb/s.
pub fn site(topology: &Value) -> Site {
    let mut clients: BTreeMap<String, u32> = BTreeMap::new();
    for vm in array(&topology["clientVMs"]) {
        *clients.entry(text(&vm["clientHost"]).to_owned()).or_default() += 1;
    }
    let clients = clients.into_iter().map(|(name, slots)| Client { name, slots: Some(slots) }).collect();
    let mut servers: Vec<(String, usize)> =
        array(&topology["serverVMs"]).iter().map(|vm| (text(&vm["serverHost"]).to_owned(), 1)).collect();
    servers.sort();
    Site::star(clients, servers, 125e6).expect("a valid site")
}
