//! Targets for configuration files, scenarios, telemetry and request traces.

use std::path::PathBuf;
use std::sync::LazyLock;

use leeward_calculus::RbCurve;
use leeward_controller::{Settings, Tokens};
use leeward_fabric::input::{Files, InputError, Text};
use leeward_fabric::{Cluster, Nanos};
use leeward_ledger::{Clock, read_loads};
use leeward_moves::Fleet;
use leeward_placement::replicas::REGISTRY;
use leeward_placement::tasks::App;
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_slo::bound::{Method, bounds};
use leeward_slo::file::Workloads;
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::{Kind, NetworkWork, Request, Stage, Work};

use crate::{CLUSTER, assert_one_line, short, utf8_prefix};

const SLO_TRACE: &str = "seconds,kind,size\n0.1,read,4096\n0.2,write,8192\n0.3,read,4096\n";

const TRACE_DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}]}"#;

/// A folder with a `cluster.yaml`.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("leeward-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let cluster = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 10}";
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("a file in that folder");
    folder
});

/// App files.
pub fn app(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match App::from_text("app", text, &Files::default()) {
        Ok(app) => {
            let count = app.request.tasks.len() as u32;
            for transfer in &app.request.transfers {
                assert!(transfer.from < count && transfer.to < count && transfer.from != transfer.to);
            }
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Cluster files.
pub fn cluster(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match Cluster::from_text("cluster", text) {
        Ok(cluster) => {
            assert!(cluster.fabric.host_count() > 0);
            assert_eq!(cluster.capacities.as_slice().len(), cluster.fabric.resource_count());
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Device files.
pub fn device(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    let device = match Device::from_text("device", text) {
        Ok(device) => device,
        Err(error) => return assert_one_line(&error),
    };
    let mut work = Work::new(NetworkWork::default(), Some(&device));
    for (at, size) in [1, 4096, 1 << 20, u64::MAX >> 1].into_iter().enumerate() {
        for kind in [Kind::Read, Kind::Write] {
            let offset = Some(at as u64 * size.min(1 << 40));
            if let Ok(work) = work.of(&Request { at: Nanos(at as u64), kind, size, offset }) {
                let seconds = work.at(Stage::Storage).expect("with a device there is work at storage");
                assert!(seconds.is_finite() && seconds > 0.0);
            }
        }
    }
}

/// Telemetry files, plain or gzip.
pub fn loads(bytes: &[u8]) {
    let clock = Some(Clock { now: 1e9, max_age: 300.0 });
    let read = Text::from_bytes("file", bytes);
    let read = read.and_then(|text| read_loads(text, &CLUSTER.fabric, Nanos::SECOND, clock));
    match read {
        Ok((samples, end)) => {
            for sample in samples {
                assert!(sample.resource.index() < CLUSTER.fabric.resource_count());
                assert!(sample.load.0 >= 0 && sample.window.0 < sample.window.1 && sample.window.1 <= end);
            }
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Policies as named on a command line, and their settings as in a scenario.
pub fn policy(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match text.parse::<PolicySpec>() {
        Ok(spec) => {
            drop(REGISTRY.make(&spec.name, &spec.settings).map_err(|error| short(&error.to_string())))
        }
        Err(error) => short(&error),
    }
    for policy in REGISTRY.iter() {
        drop(REGISTRY.make(policy.name, text).map_err(|error| short(&error.to_string())));
    }
}

/// Files of running tasks.
pub fn running(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match Fleet::from_text("running", text, &CLUSTER.fabric) {
        Ok(fleet) => {
            for task in &fleet.request.running {
                assert!(task.host.index() < CLUSTER.fabric.host_count());
                assert!((task.job as usize) < fleet.request.budgets.len());
            }
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Scenario files. Any cluster name refers to an existing file; traces are not opened.
pub fn scenario(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match Scenario::from_text("scenario", text, &FOLDER, None) {
        Ok(scenario) => {
            assert!(!scenario.policies.is_empty() && scenario.warmup < scenario.horizon);
            assert!(scenario.sample.0 > 0 && scenario.sample <= scenario.horizon);
            assert!(scenario.events.iter().all(|event| event.at < scenario.horizon));
            assert!(scenario.events.is_sorted_by_key(|event| event.at));
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Files of settings of the service, YAML or TOML.
pub fn settings(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    for file in ["leeward.yaml", "leeward.toml"] {
        match Settings::from_text(file, text) {
            Ok(settings) => assert!(settings.fixed(&settings).is_empty()),
            Err(error) => assert_one_line(&error),
        }
    }
}

/// Files of workloads with SLOs, and the system that each describes.
pub fn slo(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    let open = |name: &str| Text::from_bytes(name, SLO_TRACE);
    let cluster = &*CLUSTER;
    let read = Workloads::from_text("slo", text, cluster, &Files::default(), &open, None);
    match read.and_then(|workloads| Ok((workloads.system(cluster)?, workloads.bounds))) {
        Ok((placed, settings)) => {
            for bound in bounds(&placed.system, Method::Best, settings).into_iter().flatten() {
                assert!(bound.seconds.is_finite() && bound.seconds >= 0.0);
            }
        }
        Err(error) => assert_one_line(&error),
    }
}

/// Files of tokens. An error never quotes the text in the place of a hash, because it may be a token.
pub fn tokens(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match Tokens::from_text("tokens", text) {
        Ok(tokens) => assert!(tokens.find("leeward_").is_none() && tokens.count() <= text.lines().count()),
        Err(error) => assert_one_line(&error),
    }
}

/// Traces of requests in every dialect, their work at a device, and their curves.
pub fn trace(bytes: &[u8]) {
    let settings = ReadSettings::default();
    let read = Text::from_bytes("trace", bytes)
        .and_then(|text| Requests::open(text, &settings)?.collect::<Result<Vec<Request>, InputError>>());
    let requests = match read {
        Ok(requests) => requests,
        Err(error) => return assert_one_line(&error),
    };
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert!(requests.iter().all(|request| (1..=settings.largest).contains(&request.size)));
    let device = Device::from_text("device", TRACE_DEVICE).expect("a good device file");
    let mut work = Work::new(NetworkWork::default(), Some(&device));
    let storage = |request: &Request| Some((request.at.0, work.of(request).ok()?.at(Stage::Storage)?));
    let arrivals: Vec<(u64, f64)> = requests.iter().filter_map(storage).collect();
    assert!(arrivals.iter().all(|(_, work)| work.is_finite() && *work > 0.0));
    if let Ok(curve) = RbCurve::from_nanos(arrivals) {
        let buckets = curve.arrival_curve();
        assert!(
            buckets.buckets().iter().all(|bucket| bucket.rate().is_finite() && bucket.burst().is_finite())
        );
    }
}
