//! `leeward.slo.pack`: servers, priorities and limits for the workloads of a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt, read_text};
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, Scratch};
use leeward_registry::PolicySpec;
use leeward_slo::bound::{Bound as Latency, Bounds, Method, Unbounded, Unit};
use leeward_slo::file::{Congestion, Workloads};
use leeward_slo::pack::{
    Classes, Confirm, PackSettings, Packing, PromisedEntries, Request, Requests, Site, transaction, with_slos,
};
use leeward_slo::{Slo, System, Workload, percent};
use leeward_traces::Stage;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::simulation::as_python;
use crate::slo::{beside, doubts, method_named};
use crate::traces::open_text;

/// Names of orders in which servers are tried, for errors.
const ORDERS: &str = "first, fewest-workloads, least-load, least-bursts, same-slos, random";

/// Places the workloads of a file, and calls `progress(done)` after each workload.
#[pyfunction]
#[pyo3(signature = (file, cluster, *, data = None, limits = "compactor", settings = "", fast = false, servers_by = "first",
    method = "best", margin = None, error = 0.0, threads = 1, again = false, progress = None, text = None))]
#[expect(clippy::too_many_arguments, reason = "these are options, named on the Python side")]
pub fn pack_slo(
    py: Python<'_>,
    file: String,
    cluster: &Bound<'_, Cluster>,
    data: Option<PathBuf>,
    limits: &str,
    settings: &str,
    fast: bool,
    servers_by: &str,
    method: &str,
    margin: Option<f64>,
    error: f64,
    threads: usize,
    again: bool,
    progress: Option<Py<PyAny>>,
    text: Option<String>,
) -> PyResult<Py<PyAny>> {
    let cluster = cluster.get().inner.clone();
    let PolicySpec { name: limits, settings: own, .. } =
        limits.parse().map_err(|message: String| PyInputError(InputError::new("limits", message)))?;
    if !own.is_empty() && !settings.is_empty() {
        let message = "given twice: after the name of the limits and apart from it";
        return Err(PyInputError(InputError::new("settings", message)).into());
    }
    let settings = if settings.is_empty() { &own } else { settings };
    let method = method_named(method)?;
    let order = serde_json::from_value(Value::from(servers_by)).map_err(|_| {
        let message = format!("`{}`: expected one of {ORDERS}", excerpt(servers_by));
        PyInputError(InputError::new("servers_by", message))
    })?;
    let base = PackSettings { limits, fast, order, threads, pruning: error, ..PackSettings::default() };
    let record = py.detach(|| -> PyResult<Value> {
        let files = beside(&file, data);
        let open = |name: &str| open_text(&files, name);
        let text = text.map_or_else(|| read_text(&file), Ok).map_err(PyInputError)?;
        let workloads =
            Workloads::from_text(&file, &text, &cluster, &files, &open, None).map_err(PyInputError)?;
        let run =
            Run::new(&workloads, &cluster, base, settings, method, margin, again).map_err(PyInputError)?;
        let slos = workloads.entries.iter().filter_map(|entry| Some(entry.workload.slo?.latency));
        let classes = Classes::new(slos, &cluster.fabric).map_err(PyInputError)?;
        let tell = |done: usize| {
            Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
            })
        };
        Ok(run.describe(&run.pack(&classes, &tell)?))
    })?;
    as_python(py, &record)
}

/// Text of a file, read as in `pack_slo`. Callers need it for a pipe, which can be read only once.
#[pyfunction]
pub fn file_text(file: &str) -> Result<String, PyInputError> {
    Ok(read_text(file)?)
}

struct Run<'a> {
    workloads: &'a Workloads,
    cluster: &'a leeward_fabric::Cluster,
    base: PackSettings,
    limit_settings: &'a str,
    /// Method of the bounds that decide.
    method: Method,
    /// Margin that packing adds to curves, which already have the margin of the file.
    added_margin: f64,
    margin: f64,
    /// Hosts that make requests, in order.
    clients: Vec<HostId>,
}

struct PackResult {
    packing: Packing,
    /// Latency bounds of the placed workloads under the file's `bounds`, in order of arrival.
    bounds: Vec<Result<Latency, Unbounded>>,
    system: System,
    ledger: Ledger,
}

impl<'a> Run<'a> {
    fn new(
        workloads: &'a Workloads,
        cluster: &'a leeward_fabric::Cluster,
        base: PackSettings,
        limit_settings: &'a str,
        method: Method,
        margin: Option<f64>,
        again: bool,
    ) -> Result<Run<'a>, InputError> {
        let path = &workloads.path;
        if workloads.devices_differ {
            let message = "packing assumes the same device in every server: give `device` instead";
            return Err(InputError::new(path, message).in_field("devices"));
        }
        for entry in &workloads.entries {
            let given = [
                ("server", entry.server.is_some()),
                ("priority", entry.priorities.is_some()),
                ("limits", entry.limits.iter().any(Option::is_some)),
            ];
            if let Some((field, _)) = given.into_iter().find(|(_, given)| *given && !again) {
                let message = "expected none: packing chooses it";
                return Err(workloads.invalid(entry, field, message));
            }
        }
        if workloads.congestion != Congestion::Everywhere {
            let message = "packing treats all links of a path as queues: leave `congestion` out";
            return Err(InputError::new(path, message).in_field("congestion"));
        }
        let margin = margin.unwrap_or(workloads.margin);
        let more = (1.0 + margin) / (1.0 + workloads.margin) - 1.0;
        if !(margin.is_finite() && more >= 0.0) {
            let message = format!(
                "{}: expected at least {}, the margin of the curves of {path}",
                percent(margin),
                percent(workloads.margin)
            );
            return Err(InputError::new("margin", message));
        }
        let whole = if workloads.bounds.unit == Unit::Fluid { Requests::Fluid } else { Requests::Whole };
        let confirm = Some(Confirm { method, bounds: workloads.bounds });
        let base = PackSettings { requests: whole, margin: more.max(0.0), confirm, ..base };
        let mut clients: Vec<HostId> = workloads.entries.iter().map(|entry| entry.client).collect();
        clients.sort_unstable();
        clients.dedup();
        Ok(Run { workloads, cluster, base, limit_settings, method, added_margin: more, margin, clients })
    }

    /// Places all workloads in the order of the file. `classes` shorten the SLO of each workload by a reserve.
    fn pack(&self, classes: &Classes, tell: &dyn Fn(usize) -> PyResult<()>) -> PyResult<PackResult> {
        let invalid =
            |error: &dyn std::fmt::Display| PyInputError(InputError::new(&self.workloads.path, error));
        let fabric = &self.cluster.fabric;
        let site = Site::of_fabric(fabric.clone(), &self.cluster.capacities, &self.clients);
        let latency = |resource| self.workloads.latencies.of(fabric, resource);
        let site = site.map_err(|error| invalid(&error))?.with_latencies(latency);
        let settings = PackSettings { levels: classes.longest(), ..self.base.clone() };
        let mut packing = Packing::new(site, settings, self.limit_settings).map_err(PyInputError)?;
        let ledger = Ledger::new(fabric.clone(), &self.cluster.capacities, LedgerSettings::default());
        let mut ledger = ledger.map_err(|error| invalid(&error))?;
        let (now, mut scratch, mut entries) = (Nanos(0), Scratch::default(), PromisedEntries::new());
        let numbers: BTreeMap<&str, u64> = (self.workloads.entries.iter().zip(0..))
            .map(|(entry, number)| (entry.workload.name.as_str(), number))
            .collect();
        for (done, entry) in self.workloads.entries.iter().enumerate() {
            let mut workload = Workload::clone(&entry.workload);
            if let Some(slo) = &mut workload.slo {
                slo.latency = classes.shortened(slo.latency);
            }
            let client = self.clients.binary_search(&entry.client).ok();
            let request = Request { workload: Arc::new(workload), client };
            match packing.plan(&request) {
                Ok(plan) => {
                    let owner = |name: &str| numbers.get(name).copied().unwrap_or(u64::MAX);
                    let view = ledger.view(now, &mut scratch);
                    let (changes, names) = transaction(&packing, &plan, &entries, &view, owner)
                        .map_err(|error| PyInputError(InputError::new(fabric.name(), error)))?;
                    let ids = ledger.commit(changes, now).map_err(|error| invalid(&error))?;
                    names.iter().for_each(|name| drop(entries.insert(name.clone(), Vec::new())));
                    for (name, id) in names.into_iter().zip(ids) {
                        entries.entry(name).or_default().push(id);
                    }
                    packing.apply(plan);
                }
                // The report needs the rejection, which `packing` records.
                Err(_) => drop(packing.place(&request)),
            }
            tell(done + 1)?;
        }
        let system = with_slos(packing.system(), |name| self.slo(name));
        let mut bounds = Bounds::new(&system, self.workloads.bounds).map_err(|error| invalid(&error))?;
        let bounds = (0..system.promises.len()).map(|at| bounds.bound(at, self.method)).collect();
        Ok(PackResult { packing, bounds, system, ledger })
    }

    fn slo(&self, name: &str) -> Option<Slo> {
        let mut entries = self.workloads.entries.iter();
        entries.find(|entry| entry.workload.name == name).and_then(|entry| entry.workload.slo)
    }

    fn describe(&self, packed: &PackResult) -> Value {
        let PackResult { packing, bounds, system, ledger } = packed;
        let report = packing.report();
        let fabric = &self.cluster.fabric;
        // A packed file keeps all stages. `packed.system` omits stages that cross no queue.
        let whole = packing.system();
        let placed = report.placed.iter().zip(&whole.promises).zip(bounds).map(|((placed, promise), bound)| {
            let slo = self.slo(&placed.workload);
            let found = bound.as_ref().ok();
            let mut seconds = found.into_iter().flat_map(|bound| bound.stages.iter().copied());
            let stages = promise.workload.demands.iter().enumerate().map(|(at, demand)| {
                let crosses = !promise.route[at].is_empty();
                let limits = if crosses { promise.limits[at].buckets() } else { &[] };
                let bucket = |bucket: &leeward_calculus::TokenBucket| json!({"rate": bucket.rate(), "burst": bucket.burst()});
                json!({
                    "stage": demand.stage.name(),
                    "unit": if demand.stage == Stage::Storage { "s" } else { "bytes" },
                    "queues": promise.route[at].iter().map(|&queue| &whole.queues[queue].name).collect::<Vec<_>>(),
                    "priority": promise.priorities[at],
                    "limits": limits.iter().map(bucket).collect::<Vec<Value>>(),
                    "own_curve": promise.limits[at] == demand.arrivals,
                    "mean_rate": demand.arrivals.rate(),
                    "largest": demand.largest,
                    "unloaded_s": demand.unloaded,
                    "outstanding": demand.outstanding,
                    "bound_s": if crosses { seconds.next() } else { found.map(|_| 0.0) },
                })
            });
            let stages: Vec<Value> = stages.collect();
            let host = fabric.host(&placed.server);
            let device = host.and_then(|host| fabric.device(host, u16::try_from(placed.device).ok()?));
            json!({
                "workload": placed.workload,
                "client": placed.client,
                "server": device.map(|device| fabric.resource_name(device)),
                "priority": placed.priority,
                "slo": slo.map(|slo| json!({"percentile": slo.percentile, "latency_s": slo.latency})),
                "bound_s": found.map(|bound| bound.seconds),
                "by": found.map(|bound| bound.method.name()),
                "met": slo.is_some_and(|slo| found.is_some_and(|bound| bound.seconds <= slo.latency)),
                "why": bound.as_ref().err().map(ToString::to_string),
                "stages": stages,
            })
        });
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(0), &mut scratch);
        let mut shares: Vec<(f64, String)> = (system.queues.iter())
            .filter_map(|queue| {
                let resource = queue.resource?;
                let share = view.reserved(resource).0 as f64 / view.capacity(resource).0 as f64;
                Some((share, queue.name.clone()))
            })
            .collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut notes = self.workloads.notes.clone();
        notes.extend(doubts(self.workloads, Some(self.method)));
        json!({
            "file": self.workloads.path,
            "cluster": fabric.name(),
            "limits": report.limits,
            "fast": report.fast,
            "margin": self.margin,
            "margin_added": self.added_margin,
            "pruned_by": report.pruned_by,
            "bounds": self.workloads.bounds,
            "method": self.method.name(),
            "servers": packing.site().servers().len(),
            "servers_used": report.servers_used,
            "workloads": placed.collect::<Vec<Value>>(),
            "refused": report.refused,
            "reserved": shares.iter().map(|(share, queue)| json!({"queue": queue, "share": share})).collect::<Vec<_>>(),
            "notes": notes,
        })
    }
}
