//! `leeward.slo.check`: guarantees of the workloads of a file, and latencies in a replay of their traces.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt};
use leeward_requests::{
    BoundCheck, Cake, Caps, EnforcerRules, OverLimit, Replay, Rows, Scheduling, Sources, tails,
};
use leeward_slo::file::{Entry, TraceStart, Workloads};
use leeward_traces::Stage;
use leeward_traces::device::{Behind, Outstanding, WriteBatch};
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

const STARTS: [(&str, TraceStart); 2] = [
    (TraceStart::Recorded.name(), TraceStart::Recorded),
    (TraceStart::Together.name(), TraceStart::Together),
];

/// Caps of devices that replace those of all device files. `None` leaves those of the files, 0 is no cap.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReplacedCaps {
    /// Numbers of reads and of writes; 0 is no cap.
    reads: Option<u64>,
    writes: Option<u64>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
    /// Requests and bytes; the largest numbers are no cap.
    behind: Option<(u64, u64)>,
    /// Bytes and gap of a batch.
    write_batch: Option<(u64, u64)>,
}

impl ReplacedCaps {
    fn apply(&self, stated: &mut Outstanding) {
        let cap = |most: u64| (most > 0).then_some(most);
        stated.reads = self.reads.map_or(stated.reads, cap);
        stated.writes = self.writes.map_or(stated.writes, cap);
        stated.read_bytes = self.read_bytes.map_or(stated.read_bytes, cap);
        stated.write_bytes = self.write_bytes.map_or(stated.write_bytes, cap);
        if let Some((requests, bytes)) = self.behind {
            let is_cap = requests < u64::MAX || bytes < u64::MAX;
            stated.behind = is_cap.then_some(Behind { requests, bytes });
        }
        if let Some((bytes, gap)) = self.write_batch {
            stated.write_batch = (bytes > 0).then_some(WriteBatch { bytes, gap });
        }
    }
}

/// Bounds of the workloads of a file, a replay of their traces, and, with `rows`, one row per request. Options that are
/// not given are those of the file.
#[pyfunction]
#[pyo3(signature = (file, cluster, *, data = None, method = "best", over = None, order = None, tails = None,
    seed = None, start = None, caps = None, closed = None, rows = false))]
#[expect(clippy::too_many_arguments, reason = "these are options, named on the Python side")]
pub fn check_slo(
    py: Python<'_>,
    file: String,
    cluster: &Bound<'_, Cluster>,
    data: Option<PathBuf>,
    method: &str,
    over: Option<&str>,
    order: Option<&str>,
    tails: Option<bool>,
    seed: Option<u64>,
    start: Option<&str>,
    caps: Option<ReplacedCaps>,
    closed: Option<BTreeMap<String, u32>>,
    rows: bool,
) -> PyResult<(Py<PyAny>, Option<ArrowTable>)> {
    let method = method_named(method)?;
    let over = over.map(over_by_stage).transpose()?;
    let order = order.map(|name| parse_choice("order", name, &orders())).transpose()?;
    let start = start.map(|name| parse_choice("start", name, &STARTS)).transpose()?;
    let cluster = cluster.get().inner.clone();
    let (record, rows) = py.detach(|| -> Result<_, PyInputError> {
        let files = beside(&file, data);
        let open = |name: &str| open_text(&files, name);
        let mut workloads = Workloads::read(&file, &cluster, &files, &open)?;
        if let Some(caps) = caps {
            workloads.change_outstanding(|stated| caps.apply(stated));
        }
        let placed = workloads.system(&cluster)?;
        let stated = workloads.replay;
        let start = start.unwrap_or(stated.start);
        let order = order.map_or_else(|| parse_choice("order", stated.order.name(), &orders()), Ok)?;
        let tails_seed = tails.unwrap_or(stated.tails).then(|| seed.or(stated.seed).unwrap_or(1));
        let sources = Sources::read(&workloads, start, &open)?;
        let mut notes = workloads.notes.clone();
        notes.extend(workloads.without_links(&cluster));
        notes.extend(sources.notes.iter().cloned());
        notes.extend(doubts(&workloads, Some(method)));
        let tails = tails_seed.map(|seed| draw_tails(&workloads, &sources, seed, &mut notes)).transpose()?;
        let (Sources { arrivals, .. }, bounds) = (sources, workloads.bounds);
        let mut rules = EnforcerRules::of_file(&workloads, &placed.system, bounds);
        if let Some(given) = over {
            let stages = rules.over.iter_mut().flat_map(|over| over.iter_mut().zip(given));
            stages.for_each(|(over, given)| *over = given.unwrap_or(*over));
        }
        let uniform = rules.uniform_over();
        let replay = Replay {
            system: &placed.system,
            bounds,
            method,
            over: uniform.unwrap_or_default(),
            order,
            arrivals,
            tails: tails.unwrap_or_default(),
        };
        let closed = open_requests(&workloads, closed.unwrap_or_default())?;
        let replayed = replay.run_under(&rules, &closed).map_err(|error| InputError::new(&file, error))?;
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
                "caps": rules.caps[queue].as_ref().map(describe_caps),
                "served": server.served,
                "busy_s": server.busy.as_secs_f64(),
                "starved_s": server.starved.as_secs_f64(),
            })
        });
        let record = json!({
            "file": file,
            "cluster": cluster.fabric.name(),
            "method": method.name(),
            "over": uniform.map_or("mixed", |over| name_of(over, &OVER_LIMITS)),
            "order": name_of(order, &orders()),
            "start": start.name(),
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

/// Handling of requests over a limit at each stage: the same at all, or `STAGE=HANDLING,...`. `None` for a stage that is
/// not named.
fn over_by_stage(text: &str) -> Result<[Option<OverLimit>; 3], PyInputError> {
    if !text.contains('=') {
        return Ok([Some(parse_choice("over", text, &OVER_LIMITS)?); 3]);
    }
    let stages = Stage::ALL.map(|stage| (stage.name(), stage));
    let mut over = [None; 3];
    for part in text.split(',') {
        let (stage, handling) = part.split_once('=').unwrap_or((part, ""));
        let stage = parse_choice("over", stage.trim(), &stages)?;
        over[stage as usize] = Some(parse_choice("over", handling.trim(), &OVER_LIMITS)?);
    }
    Ok(over)
}

/// For each workload, the number of requests that it keeps open; 0 for an open loop.
fn open_requests(workloads: &Workloads, closed: BTreeMap<String, u32>) -> Result<Vec<u32>, InputError> {
    let mut open = vec![0; workloads.entries.len()];
    for (name, number) in closed {
        let at = workloads.entries.iter().position(|entry| entry.workload.name == name);
        let message = match at {
            None => format!("no workload `{}`", excerpt(&name)),
            Some(_) if number == 0 => format!("`{}`: 0: expected at least 1", excerpt(&name)),
            Some(at) => {
                open[at] = number;
                continue;
            }
        };
        return Err(InputError::new("closed", message));
    }
    Ok(open)
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

/// Caps of a device file, with its names; null for no cap.
fn describe_caps(caps: &Caps) -> Value {
    let requests = |most: u32| (most < u32::MAX).then_some(most);
    let bytes = |most: u64| (most < u64::MAX).then_some(most);
    json!({
        "outstanding_reads": requests(caps.reads),
        "outstanding_writes": requests(caps.writes),
        "outstanding_read_bytes": bytes(caps.read_bytes),
        "outstanding_write_bytes": bytes(caps.write_bytes),
        "behind": caps.behind.map(|behind| {
            json!({"requests": requests(behind.requests), "bytes": bytes(behind.bytes)})
        }),
        "write_batch": caps.batch.map(|batch| json!({"bytes": batch.bytes, "gap_bytes": batch.gap})),
    })
}

fn name_of<T: PartialEq>(value: T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| *name)
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
