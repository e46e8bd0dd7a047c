//! Active measurement: listening hosts, and measurements between them.

use std::net::SocketAddr;

use leeward_fabric::input::InputError;
use leeward_fabric::{Bandwidth, Nanos};
use leeward_probe::calibrate::grid;
use leeward_probe::control::{Listener, Place, Secret};
use leeward_probe::link::{Link, send};
use leeward_probe::mesh::{Shape, rounds};
use leeward_probe::stability::Stability;
use leeward_probe::survey::{self, Host, ProgressObserver, Schedule};
use leeward_probe::{Congestion, Limits, ProbeError, Train, Transfer, estimate, report};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::PyInputError;
use crate::simulation::as_python;

/// Number of bursts K, packets per burst B, packet size P, and the time between bursts.
type TrainArguments = (u32, u32, u32, String);
/// Names and addresses of hosts.
type HostArguments = Vec<(String, String)>;

/// Takes part in measurements until the process ends. `listening` receives the address once the socket is bound.
#[pyfunction]
pub fn probe_listen(
    py: Python<'_>,
    listen: &str,
    secret: Option<String>,
    listening: Py<PyAny>,
) -> PyResult<()> {
    let invalid = |message: String| PyInputError(InputError::new("listen", message));
    let address: SocketAddr = listen.parse().map_err(|_| {
        invalid(format!("`{listen}`: expected an address and a port, such as 127.0.0.1:7601"))
    })?;
    let listener = Listener::bind(address, Limits::default(), Secret(secret));
    let listener = listener.map_err(|error| invalid(error.to_string()))?;
    let bound = listener.address().map_err(to_py_error)?;
    listening.call1(py, (bound.to_string(),))?;
    py.detach(|| listener.run());
    Ok(())
}

/// Measures a path with trains, one after another; returns a list of estimates.
#[pyfunction]
pub fn probe_path(
    py: Python<'_>,
    source: &str,
    to: &str,
    train: TrainArguments,
    times: usize,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (place, train, secret) = (place(source)?, train_of(train)?, Secret(secret));
    let path = run_survey(py, progress, |progress| {
        report::path((source, &place), (to, to), &train, times, &secret, progress)
    })?;
    as_python(py, &path)
}

/// Measures every path between hosts; with `hops`, also determines their positions. `bottlenecks` are the length of a
/// transfer, the number of pairs and the seed of a search for bottlenecks. `cluster` is the text of a cluster file of the
/// expected shape.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are the options of a command, named on the Python side")]
pub fn probe_mesh(
    py: Python<'_>,
    hosts: HostArguments,
    train: TrainArguments,
    at_once: usize,
    hops: bool,
    bottlenecks: Option<(String, usize, u64)>,
    shape: Option<&str>,
    name: &str,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (hosts, train) = (hosts_of(hosts), train_of(train)?);
    let shape = match shape {
        None => None,
        Some("pipe") => Some(Shape::Pipe),
        Some("hose") => Some(Shape::Hose),
        Some(other) => {
            return Err(argument_error("shape", format!("`{other}`: expected pipe or hose")));
        }
    };
    let search = |(duration, pairs, seed): (String, usize, u64)| -> PyResult<report::BottleneckOptions> {
        Ok(report::BottleneckOptions { each: transfer_of(&duration)?, pairs, seed, hops })
    };
    let bottlenecks = bottlenecks.map(search).transpose()?;
    let options = report::MeshOptions { train, at_once, hops, bottlenecks, shape, name: name.to_owned() };
    let mesh =
        run_survey(py, progress, |progress| report::mesh(&hosts, &options, &Secret(secret), progress))?;
    as_python(py, &mesh)
}

/// Counts the hops between hosts and fits them to a tree.
#[pyfunction]
pub fn probe_hops(
    py: Python<'_>,
    hosts: HostArguments,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let hosts = hosts_of(hosts);
    let topology = run_survey(py, progress, |progress| survey::topology(&hosts, &Secret(secret), progress))?;
    as_python(py, &report::Topology::new(&hosts, &topology))
}

/// Searches for shared bottlenecks; with `hops`, also at the uplinks of racks.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are the options of a command, named on the Python side")]
pub fn probe_bottlenecks(
    py: Python<'_>,
    hosts: HostArguments,
    duration: &str,
    pairs: usize,
    seed: u64,
    hops: bool,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (hosts, each) = (hosts_of(hosts), transfer_of(duration)?);
    let options = report::BottleneckOptions { each, pairs, seed, hops };
    let bottlenecks = run_survey(py, progress, |progress| {
        report::bottlenecks(&hosts, &options, &Secret(secret), progress)
    })?;
    as_python(py, &bottlenecks)
}

/// Compares trains with bulk transfers on the first paths of a mesh. Without bursts or packets, uses the paper's grid
/// of settings.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are the options of a command, named on the Python side")]
pub fn probe_calibrate(
    py: Python<'_>,
    hosts: HostArguments,
    paths: usize,
    train: TrainArguments,
    bursts: Vec<u32>,
    packets: Vec<u32>,
    duration: &str,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (hosts, base, bulk) = (hosts_of(hosts), train_of(train)?, transfer_of(duration)?);
    let mut trains = grid(&base);
    let values = |given: &[u32], standard: fn(&Train) -> u32| {
        let mut values: Vec<u32> =
            if given.is_empty() { trains.iter().map(standard).collect() } else { given.to_vec() };
        values.sort_unstable();
        values.dedup();
        values
    };
    let (bursts, packets) = (values(&bursts, |train| train.bursts), values(&packets, |train| train.packets));
    let product = bursts.iter().flat_map(|&k| packets.iter().map(move |&b| (k, b)));
    trains = product.map(|(bursts, packets)| Train { bursts, packets, ..base }).collect();
    let order = rounds(hosts.len()).into_iter().flatten().take(paths);
    let measured: Vec<_> = order.map(|(from, to)| (hosts[from].clone(), hosts[to].clone())).collect();
    let calibration = run_survey(py, progress, |progress| {
        survey::calibrate(&measured, &trains, &bulk, &Secret(secret), progress)
    })?;
    let train = |train: &Train| {
        json!({
            "bursts": train.bursts,
            "packets": train.packets,
            "bytes": train.bytes,
            "gap_s": train.gap_ns as f64 / 1e9,
        })
    };
    let paths = measured.iter().zip(&calibration.bulk_bps);
    let paths = paths.map(|((from, to), bulk)| json!({ "from": from.name, "to": to.name, "bulk_bps": bulk }));
    let scores = calibration.scores.iter().map(|score| {
        json!({
            "train": train(&score.train),
            "train_bytes": score.train.total_bytes(),
            "paths": score.paths,
            "error": score.mean,
            "deviation": score.deviation,
        })
    });
    as_python(
        py,
        &json!({
            "paths": paths.collect::<Vec<_>>(),
            "trains": scores.collect::<Vec<_>>(),
            "best": train(&calibration.best),
            "errors": calibration.errors,
        }),
    )
}

/// Counts competing connections on a path.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are the options of a command, named on the Python side")]
pub fn probe_cross(
    py: Python<'_>,
    source: &str,
    to: &str,
    duration: &str,
    path_rate: Option<&str>,
    congestion: Option<&str>,
    own: Vec<u32>,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (place, each) = (place(source)?, transfer_of(duration)?);
    let rate =
        |text: &str| text.parse::<Bandwidth>().map_err(|error| argument_error("rate", error.to_string()));
    let path_bps = path_rate.map(rate).transpose()?.map(|rate| rate.0 as f64);
    let congestion = congestion.map(str::parse::<Congestion>).transpose().map_err(to_py_error)?;
    let result = run_survey(py, progress, |progress| {
        survey::cross(&place, to, each.duration_ns, path_bps, congestion, &Secret(secret), progress)
    })?;
    let expected = result.cross.map(|cross| {
        own.iter()
            .map(|&own| json!({ "connections": own, "each_bps": cross.each_bps(own) }))
            .collect::<Vec<_>>()
    });
    as_python(
        py,
        &json!({
            "from": source,
            "to": to,
            "one_bps": result.one_bps,
            "earlier_bps": result.earlier_bps,
            "later_bps": result.later_bps,
            "advantage": result.advantage,
            "connections": result.cross.map(|cross| cross.connections),
            "path_bps": result.cross.map(|cross| cross.path_bps),
            "plausible": result.plausible.map(|(least, most)| [least, most]),
            "expected": expected,
            "window_s": result.window_ns as f64 / 1e9,
            "over_time": result.over_time,
        }),
    )
}

/// Measures a path repeatedly and computes how well earlier measurements predict later ones.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are the options of a command, named on the Python side")]
pub fn probe_steady(
    py: Python<'_>,
    source: &str,
    to: &str,
    train: TrainArguments,
    every: &str,
    times: usize,
    lags: Vec<String>,
    secret: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (place, train) = (place(source)?, train_of(train)?);
    let lags_ns = lags.iter().map(|lag| time("lags", lag)).collect::<PyResult<_>>()?;
    let schedule = Schedule { every_ns: time("every", every)?, times, lags_ns };
    let result = run_survey(py, progress, |progress| {
        survey::steadiness(&place, to, &train, &schedule, &Secret(secret), progress)
    })?;
    let samples = result
        .samples
        .iter()
        .map(|sample| json!({ "t_s": sample.at_ns as f64 / 1e9, "rate_bps": sample.rate_bps }));
    let (samples, lags) = (samples.collect::<Vec<_>>(), lag_records(result.lags));
    let errors = result.errors;
    as_python(py, &json!({ "from": source, "to": to, "samples": samples, "errors": errors, "lags": lags }))
}

/// Errors of predictions from earlier rates, for each lag.
pub fn lag_records(lags: impl IntoIterator<Item = Stability>) -> Vec<serde_json::Value> {
    let record = |lag: Stability| {
        json!({
            "lag_s": lag.lag_ns as f64 / 1e9,
            "pairs": lag.pairs,
            "median": lag.median,
            "mean": lag.mean,
            "p95": lag.p95,
        })
    };
    lags.into_iter().map(record).collect()
}

/// Estimate from a train over a simulated link: a token bucket behind a queue. The train arrives at a line rate.
#[pyfunction]
pub fn probe_modelled(
    py: Python<'_>,
    train: TrainArguments,
    line_bps: f64,
    rate_bps: f64,
    bucket_bytes: f64,
    queue_bytes: u64,
) -> PyResult<Py<PyAny>> {
    let train = train_of(train)?;
    for (name, value) in [("line_bps", line_bps), ("rate_bps", rate_bps), ("bucket_bytes", bucket_bytes)] {
        if !(1.0..1e15).contains(&value) {
            return Err(argument_error(name, format!("{value}: expected 1 to 1e15")));
        }
    }
    let (sent, received) = send(&train, line_bps, Link { rate_bps, bucket_bytes, queue_bytes }, |_, _| true);
    let estimate = estimate(&train, &sent, &received, None).map_err(to_py_error)?;
    as_python(py, &report::Path::measured("line", "link", &estimate))
}

/// Runs a survey while other Python threads continue. Reports each step to `progress` and checks for interrupts.
fn run_survey<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    survey: impl FnOnce(&mut ProgressObserver<'_>) -> Result<T, ProbeError> + Send,
) -> PyResult<T> {
    let mut stopped: Option<PyErr> = None;
    let result = py.detach(|| {
        let mut observer = |done: usize, total: usize| {
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(drop))
            });
            result.map_err(|error| {
                stopped = Some(error);
                ProbeError::Stopped
            })
        };
        survey(&mut observer)
    });
    result.map_err(|error| stopped.unwrap_or_else(|| to_py_error(error)))
}

fn hosts_of(hosts: HostArguments) -> Vec<Host> {
    hosts.into_iter().map(|(name, address)| Host { name, address }).collect()
}

fn place(text: &str) -> PyResult<Place> {
    text.parse().map_err(to_py_error)
}

fn time(argument: &str, text: &str) -> PyResult<u64> {
    text.parse::<Nanos>().map(|time| time.0).map_err(|error| argument_error(argument, error.to_string()))
}

fn train_of((bursts, packets, bytes, gap): TrainArguments) -> PyResult<Train> {
    let train = Train { bursts, packets, bytes, gap_ns: time("gap", &gap)? };
    train.check(&Limits::default()).map_err(to_py_error)?;
    Ok(train)
}

pub fn transfer_of(duration: &str) -> PyResult<Transfer> {
    let transfer = Transfer { duration_ns: time("duration", duration)?, connections: 1, congestion: None };
    transfer.check(&Limits::default()).map_err(to_py_error)?;
    Ok(transfer)
}

fn argument_error(argument: &str, message: String) -> PyErr {
    PyInputError(InputError::new(argument, message)).into()
}

/// Converts an invalid setting to an input error with the argument's Python name, and any other error to a system
/// error.
pub fn to_py_error(error: ProbeError) -> PyErr {
    match error {
        ProbeError::Setting { field, message } => {
            let argument = if field == "bytes" { "payload" } else { field.trim_end_matches("_ns") };
            argument_error(argument, message)
        }
        other => PyOSError::new_err(other.to_string()),
    }
}
