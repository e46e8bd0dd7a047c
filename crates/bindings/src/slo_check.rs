//! `leeward.slo.check`: guarantees of the workloads of a file, and latencies in a replay of their traces.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt};
use leeward_requests::{BoundCheck, Cake, OverLimit, Replay, Rows, Scheduling, Sources, tails};
use leeward_slo::file::{Entry, Workloads};
use leeward_traces::Stage;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::arrow_table::table;
use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::records::{ArrowTable, texts, times};
use crate::simulation::as_python;
use crate::slo::{beside, dependent, doubts, method_named};
use crate::trace_records::stationarity;
use crate::traces::open_text;

const OVER_LIMITS: [(&str, OverLimit); 2] = [("held", OverLimit::Held), ("demoted", OverLimit::Demoted)];

/// Bounds of the workloads of a file, a replay of their traces, and, with `rows`, one row per request.
#[pyfunction]
#[pyo3(signature = (file, cluster, *, data = None, method = "best", over = "held", order = "priority",
    tails_seed = None, rows = false))]
#[expect(clippy::too_many_arguments, reason = "these are options, named on the Python side")]
pub fn check_slo(
    py: Python<'_>,
    file: String,
    cluster: &Bound<'_, Cluster>,
    data: Option<PathBuf>,
    method: &str,
    over: &str,
    order: &str,
    tails_seed: Option<u64>,
    rows: bool,
) -> PyResult<(Py<PyAny>, Option<ArrowTable>)> {
    let (method, over_name, order_name) = (method_named(method)?, over, order);
    let over = parse_choice("over", over, &OVER_LIMITS)?;
    let order = parse_choice("order", order, &orders())?;
    let cluster = cluster.get().inner.clone();
    let (record, rows) = py.detach(|| -> Result<_, PyInputError> {
        let files = beside(&file, data);
        let open = |name: &str| open_text(&files, name);
        let workloads = Workloads::read(&file, &cluster, &files, &open)?;
        let placed = workloads.system(&cluster)?;
        let sources = Sources::read(&workloads, &open)?;
        let mut notes = workloads.notes.clone();
        notes.extend(workloads.without_links(&cluster));
        notes.extend(doubts(&workloads, Some(method)));
        let tails = tails_seed.map(|seed| draw_tails(&workloads, &sources, seed, &mut notes)).transpose()?;
        let (Sources { arrivals, .. }, bounds) = (sources, workloads.bounds);
        let replay = Replay {
            system: &placed.system,
            bounds,
            method,
            over,
            order,
            arrivals,
            tails: tails.unwrap_or_default(),
        };
        let replayed = replay.run().map_err(|error| InputError::new(&file, error))?;
        let all = workloads.entries.iter().zip(&replayed.workloads).zip(&replay.arrivals);
        let described = all.map(|((entry, check), arrivals)| describe(entry, check, arrivals.is_some()));
        let at_once = bounds.at_once_by_queue(&placed.system);
        let devices = placed.system.devices();
        let servers = (replayed.report.servers.iter().zip(at_once).enumerate())
            .filter(|(_, (server, _))| server.served > 0);
        let servers = servers.map(|(queue, (server, at_once))| {
            json!({
                "queue": server.name,
                "device": devices.contains(&queue),
                "outstanding": at_once,
                "served": server.served,
                "busy_s": server.busy.as_secs_f64(),
                "starved_s": server.starved.as_secs_f64(),
            })
        });
        let record = json!({
            "file": file,
            "cluster": cluster.fabric.name(),
            "method": method.name(),
            "over": over_name,
            "order": order_name,
            "tails_seed": tails_seed,
            "bounds": bounds,
            "margin": workloads.margin,
            "end_s": replayed.report.end.as_secs_f64(),
            "notes": notes,
            "dependent": dependent(&workloads),
            "queues": servers.collect::<Vec<Value>>(),
            "workloads": described.collect::<Vec<Value>>(),
        });
        let names: Vec<String> = workloads.entries.iter().map(|entry| entry.workload.name.clone()).collect();
        Ok((record, replayed.report.rows.filter(|_| rows).map(|rows| (names, rows))))
    })?;
    let rows = rows.map(|(names, rows)| rows_table(&names, &rows)).transpose()?;
    Ok((as_python(py, &record)?, rows))
}

/// For each workload, the latencies of its requests without queueing, and a note for each workload whose device has no
/// such latencies.
fn draw_tails(
    workloads: &Workloads,
    sources: &Sources,
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Arc<[Nanos]>>, InputError> {
    let mut all: Vec<Arc<[Nanos]>> = Vec::with_capacity(sources.arrivals.len());
    for (at, (arrivals, profile)) in sources.arrivals.iter().zip(&sources.profiles).enumerate() {
        let known = arrivals.as_ref().zip(profile.as_ref());
        let name = &workloads.entries[at].workload.name;
        let drawn = known.map(|(arrivals, device)| tails(arrivals, device, seed, at as u64)).transpose();
        let latencies =
            drawn.map_err(|error| InputError::new("tails", format!("{name}: {error}")))?.flatten();
        if known.is_some() && latencies.is_none() {
            notes.push(format!("{name}: its device file has no times without queueing, so none are drawn"));
        }
        all.push(latencies.unwrap_or_default());
    }
    if all.iter().all(|latencies| latencies.is_empty()) {
        let message = "no workload with a trace has a device file with times without queueing (`unloaded`), so none \
                       are drawn";
        return Err(InputError::new("tails", message));
    }
    Ok(all)
}

fn orders() -> [(&'static str, Scheduling); 5] {
    [
        ("priority", Scheduling::Priority),
        ("fifo", Scheduling::Fifo),
        ("shares", Scheduling::Shares),
        ("cake", Scheduling::Cake(Cake::default())),
        ("deadline", Scheduling::Deadline),
    ]
}

fn parse_choice<T: Copy>(field: &str, name: &str, known: &[(&str, T)]) -> Result<T, PyInputError> {
    let value = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    value.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        PyInputError(InputError::new(
            field,
            format!("`{}`: expected one of {}", excerpt(name), known.join(", ")),
        ))
    })
}

fn describe(entry: &Entry, check: &BoundCheck, traced: bool) -> Value {
    let workload = &entry.workload;
    let bound = check.bound.as_ref().ok();
    let slo = workload.slo;
    let measured = check.measured.map(|measured| {
        json!({
            "requests": measured.requests,
            "percentile": slo.map_or(99.9, |slo| slo.percentile),
            "tail_s": measured.tail.as_secs_f64(),
            "worst_s": measured.worst.as_secs_f64(),
            "windows": measured.windows,
            "windows_met": slo.map(|_| measured.windows_met),
            "late": slo.map(|_| measured.late),
            "demoted": measured.demoted,
        })
    });
    json!({
        "workload": workload.name,
        "slo": slo.map(|slo| json!({"percentile": slo.percentile, "latency_s": slo.latency})),
        "bound_s": bound.map(|bound| bound.seconds),
        "by": bound.map(|bound| bound.method.name()),
        "why": check.bound.as_ref().err().filter(|_| slo.is_some()).map(ToString::to_string),
        "met": slo.map(|slo| bound.is_some_and(|bound| bound.seconds <= slo.latency)),
        "traced": traced,
        "stationarity": stationarity(entry.traced.as_ref().and_then(|traced| traced.stationarity)),
        "seen": measured,
        "kept": slo.zip(check.measured).map(|(slo, measured)| measured.tail.as_secs_f64() <= slo.latency),
        "broken": check.violated.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn rows_table(names: &[String], rows: &Rows) -> PyResult<ArrowTable> {
    let seconds = |column: &[u64]| times(column.iter().map(|&nanos| nanos as f64 / 1e9));
    let stage = |stage: Stage| seconds(&rows.stages[stage as usize]);
    table([
        ("workload", texts(rows.workload.iter().map(|&workload| &names[workload as usize]))),
        ("arrival_s", seconds(&rows.arrival)),
        ("latency_s", seconds(&rows.latency)),
        ("network_in_s", stage(Stage::NetworkIn)),
        ("storage_s", stage(Stage::Storage)),
        ("network_out_s", stage(Stage::NetworkOut)),
        ("demoted", Arc::new(BooleanArray::from(rows.demoted.clone())) as ArrayRef),
    ])
}
