//! `leeward.slo`: the workloads of a file on a cluster, their bounds, priorities and admission.

use std::path::{Path, PathBuf};

use leeward_fabric::input::{Files, InputError, excerpt};
use leeward_scenarios::scenario::PolicySpec;
use leeward_slo::bound::{Bound as Latency, BoundSettings, Bounds, Method, Unbounded};
use leeward_slo::file::{DependentPair, Entry, Order, PlacedSystem, WorkloadAdmission, Workloads};
use leeward_slo::priorities::{by_slo, merge, priority_meister};
use leeward_slo::{Promise, System};
use leeward_traces::Stage;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::simulation::as_python;
use crate::trace_records::stationarity;
use crate::traces::open_text;

/// Workloads of a file on a cluster.
#[pyclass(frozen, module = "leeward")]
pub struct SloWorkloads {
    inner: Workloads,
    placed: PlacedSystem,
    cluster: leeward_fabric::Cluster,
    data: Option<PathBuf>,
}

#[pymethods]
impl SloWorkloads {
    #[new]
    #[pyo3(signature = (file, cluster, *, data = None))]
    fn new(
        py: Python<'_>,
        file: String,
        cluster: &Bound<'_, Cluster>,
        data: Option<PathBuf>,
    ) -> Result<Self, PyInputError> {
        let cluster = cluster.get().inner.clone();
        py.detach(|| {
            let files = beside(&file, data.clone());
            let inner = Workloads::read(&file, &cluster, &files, &|name| open_text(&files, name))?;
            let placed = inner.system(&cluster)?;
            Ok(SloWorkloads { inner, placed, cluster, data })
        })
    }

    /// Latency bound of every workload.
    fn bound(&self, py: Python<'_>, method: &str) -> PyResult<Py<PyAny>> {
        let method = method_named(method)?;
        let outcomes = self.outcomes(py, &self.placed.system, Some((method, self.inner.bounds)))?;
        let order = if self.placed.given { "file" } else { "by-slo" };
        let mut record = self.head(&self.placed.system, order, self.placed.merged, Some(method));
        record["workloads"] = self.promises(&self.placed.system, &self.own(), &outcomes);
        as_python(py, &record)
    }

    /// Latency bounds under priorities from a search (`search`) or from the order of SLOs (`by-slo`).
    fn prioritize(&self, py: Python<'_>, by: &str, levels: Option<u32>, method: &str) -> PyResult<Py<PyAny>> {
        let method = method_named(method)?;
        let levels = levels.unwrap_or(self.inner.levels);
        let mut system = self.placed.system.clone();
        let mut interrupted = None;
        let merged = if by == "by-slo" {
            by_slo(&mut system);
            merge(&mut system, levels)
        } else {
            let settings = self.inner.bounds;
            let ordered = py.detach(|| {
                let mut bound = |system: &System, promise: usize| {
                    interrupted =
                        interrupted.take().or_else(|| Python::attach(|py| py.check_signals()).err());
                    if interrupted.is_some() {
                        // Ends the search soon, because its result is not used after an interrupt.
                        let workload = system.promises[promise].workload.name.clone();
                        return Err(Unbounded::Stopped { workload });
                    }
                    Bounds::new(system, settings)?.bound(promise, method)
                };
                priority_meister(&system, levels, &mut bound)
            });
            system = ordered.system;
            ordered.merged
        };
        if let Some(error) = interrupted {
            return Err(error);
        }
        let outcomes = self.outcomes(py, &system, Some((method, self.inner.bounds)))?;
        let mut record = self.head(&system, by, merged, Some(method));
        record["levels"] = levels.into();
        record["workloads"] = self.promises(&system, &self.own(), &outcomes);
        as_python(py, &record)
    }

    /// Decides whether the workloads of another file can be admitted in addition to the existing ones.
    fn admit(&self, py: Python<'_>, arriving: String, method: &str) -> PyResult<Py<PyAny>> {
        let invalid = |message: String| PyInputError(InputError::new("method", message));
        let spec: PolicySpec = method.parse().map_err(invalid)?;
        let by =
            self.inner.admission(&spec.name, &spec.settings).map_err(|error| invalid(error.to_string()))?;
        let (others, admitted) = py
            .detach(|| {
                let files = beside(&arriving, self.data.clone());
                let open = |name: &str| open_text(&files, name);
                let others = Workloads::read_beside(&arriving, &self.cluster, &files, &open, &self.inner)?;
                let admitted = self.inner.admit(&self.placed, &others, &self.cluster, &by)?;
                Ok((others, admitted))
            })
            .map_err(PyInputError)?;
        let system = &admitted.system;
        let analysis = by.admission.by();
        let mut outcomes = self.outcomes(py, system, analysis)?;
        if by.admission.sets_rates() {
            // A best-effort workload is not paced, so it has no guarantee.
            let best_effort = outcomes.iter_mut().zip(&system.promises);
            let best_effort = best_effort.filter(|(_, promise)| promise.workload.slo.is_none());
            best_effort.for_each(|(outcome, _)| *outcome = None);
        }
        // The first entry of a changed workload is the new one.
        let entry = |promise: &Promise| {
            let mut all = others.entries.iter().chain(&self.inner.entries);
            all.find(|entry| entry.workload.name == promise.workload.name)
        };
        let entries: Vec<&Entry> = system.promises.iter().filter_map(entry).collect();
        let order = match admitted.priorities.order {
            Order::File => "file",
            Order::BySlo => "by-slo",
            Order::Search => "search",
            Order::Policy => by.admission.name(),
        };
        let method = analysis.map(|(method, _)| method);
        let mut record = self.head(system, order, admitted.priorities.merged, method);
        record["levels"] = by.levels.into();
        if let Some((_, bounds)) = analysis {
            record["bounds"] = json!(bounds);
        }
        record["paced"] = by.admission.sets_rates().into();
        record["admission"] = spec.label.into();
        record["arriving"] = arriving.into();
        record["margin_of_arriving"] = others.margin.into();
        let admission = |result: &WorkloadAdmission| {
            json!({
                "workload": result.name,
                "changed": result.changed,
                "admitted": result.refused.is_none() && result.promise.is_some(),
                "runs": result.promise.is_some(),
                "refused": result.refused.as_ref().map(ToString::to_string),
                "disturbed": result.disturbed,
            })
        };
        if let Some(pairs) = record["dependent"].as_array_mut() {
            pairs.extend(dependent(&others));
        }
        record["residents"] = admitted.residents.iter().map(admission).collect();
        record["arrivals"] = admitted.arrivals.iter().map(admission).collect();
        record["workloads"] = self.promises(system, &entries, &outcomes);
        if let Some(notes) = record["notes"].as_array_mut() {
            let links = others.without_links(&self.cluster);
            let own = others.notes.iter().cloned().chain(links).chain(doubts(&others, method));
            notes.extend(own.map(Value::from));
            if self.placed.given && admitted.priorities.order != Order::File {
                notes.push(format!("{}: its priorities are ignored", self.inner.path).into());
            }
            let limited = self.inner.entries.iter().any(|entry| entry.limits.iter().any(Option::is_some));
            if by.admission.sets_rates() && limited {
                notes.push(format!("{}: its limits are ignored", self.inner.path).into());
            }
        }
        as_python(py, &record)
    }
}

impl SloWorkloads {
    fn own(&self) -> Vec<&Entry> {
        self.inner.entries.iter().collect()
    }

    /// Bound of each guarantee; `None` without a method.
    fn outcomes(
        &self,
        py: Python<'_>,
        system: &System,
        by: Option<(Method, BoundSettings)>,
    ) -> PyResult<Vec<Option<Result<Latency, Unbounded>>>> {
        let Some((method, settings)) = by else { return Ok(vec![None; system.promises.len()]) };
        py.detach(|| {
            let invalid =
                |error: &dyn std::fmt::Display| PyInputError(InputError::new(&self.inner.path, error));
            let mut bounds = Bounds::new(system, settings).map_err(|error| invalid(&error))?;
            let bound = |promise| -> PyResult<_> {
                Python::attach(|py| py.check_signals())?;
                Ok(Some(bounds.bound(promise, method)))
            };
            (0..system.promises.len()).map(bound).collect()
        })
    }

    /// Record of the file, without its workloads.
    fn head(&self, system: &System, order: &str, merged: Option<usize>, method: Option<Method>) -> Value {
        let mut promised_rates = vec![0.0; system.queues.len()];
        for Promise { limits, route, .. } in &system.promises {
            for (limit, route) in limits.iter().zip(route) {
                route.iter().for_each(|&queue| promised_rates[queue] += limit.rate());
            }
        }
        let queue = |(at, queue): (usize, &leeward_slo::Queue)| {
            let device =
                queue.resource.map(|id| self.cluster.fabric.kind(id) == leeward_fabric::ResourceKind::Device);
            json!({
                "queue": queue.name,
                "unit": if device == Some(true) { "s" } else { "bytes" },
                "capacity": queue.capacity,
                "latency_s": queue.latency,
                "promised_rate": promised_rates[at],
            })
        };
        let mut notes = self.inner.notes.clone();
        notes.extend(self.inner.without_links(&self.cluster));
        notes.extend(doubts(&self.inner, method));
        json!({
            "file": self.inner.path,
            "name": self.inner.name,
            "cluster": self.cluster.fabric.name(),
            "margin": self.inner.margin,
            "buckets": self.inner.buckets,
            "congestion": self.inner.congestion.name(),
            "levels": self.inner.levels,
            "bounds": self.inner.bounds,
            "method": method.map_or("none", Method::name),
            "priorities": order,
            "merged_ranks": merged,
            "notes": notes,
            "dependent": dependent(&self.inner),
            "queues": system.queues.iter().enumerate().map(queue).collect::<Vec<Value>>(),
        })
    }

    fn promises(
        &self,
        system: &System,
        entries: &[&Entry],
        outcomes: &[Option<Result<Latency, Unbounded>>],
    ) -> Value {
        let all = system.promises.iter().zip(entries).zip(outcomes);
        all.map(|((promise, entry), outcome)| self.promise(system, promise, entry, outcome.as_ref()))
            .collect()
    }

    fn promise(
        &self,
        system: &System,
        promise: &Promise,
        entry: &Entry,
        outcome: Option<&Result<Latency, Unbounded>>,
    ) -> Value {
        let fabric = &self.cluster.fabric;
        let workload = &promise.workload;
        let bound = outcome.and_then(|outcome| outcome.as_ref().ok());
        // Best effort has no percentile to bound, so it cannot miss its SLO.
        let why = outcome.and_then(|outcome| outcome.as_ref().err()).filter(|_| workload.slo.is_some());
        let met = |latency: f64| outcome.map(|_| bound.is_some_and(|bound| bound.seconds <= latency));
        let stages = workload.demands.iter().enumerate().map(|(at, demand)| {
            let limit = &promise.limits[at];
            let bucket = |bucket: &leeward_calculus::TokenBucket| json!({"rate": bucket.rate(), "burst": bucket.burst()});
            json!({
                "stage": demand.stage.name(),
                "unit": if demand.stage == Stage::Storage { "s" } else { "bytes" },
                "queues": promise.route[at].iter().map(|&queue| &system.queues[queue].name).collect::<Vec<_>>(),
                "priority": (promise.priorities[at] != u32::MAX).then_some(promise.priorities[at]),
                "limits": limit.buckets().iter().map(bucket).collect::<Vec<Value>>(),
                "own_curve": *limit == demand.arrivals,
                "mean_rate": demand.arrivals.rate(),
                "largest": demand.largest,
                "unloaded_s": demand.unloaded,
                "outstanding": demand.outstanding,
                "bound_s": bound.map(|bound| bound.stages[at]),
            })
        });
        let device = entry.server.and_then(|server| fabric.device(server.host, server.device?));
        let host = entry.server.map(|server| fabric.host_name(server.host).to_owned());
        let slo = entry.workload.slo;
        json!({
            "workload": workload.name,
            "client": fabric.host_name(entry.client),
            "server": device.map(|device| fabric.resource_name(device)).or(host),
            "slo": slo.map(|slo| json!({"percentile": slo.percentile, "latency_s": slo.latency})),
            "best_effort": workload.slo.is_none(),
            "bound_s": bound.map(|bound| bound.seconds),
            "by": bound.map(|bound| bound.method.name()),
            "met": workload.slo.and_then(|slo| met(slo.latency)),
            "why": why.map(ToString::to_string),
            "stationarity": stationarity(entry.traced.as_ref().and_then(|traced| traced.stationarity)),
            "stages": stages.collect::<Vec<Value>>(),
        })
    }
}

/// Resolver of files named in `file`, relative to its folder.
pub fn beside(file: &str, data: Option<PathBuf>) -> Files {
    let base = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
    Files { base, data }
}

/// Notes about traces that break an assumption of the method.
pub fn doubts(workloads: &Workloads, method: Option<Method>) -> Vec<String> {
    if method.is_some_and(Method::needs_models) { workloads.doubts() } else { Vec::new() }
}

/// Pairs of workloads whose bursts coincide.
pub fn dependent(workloads: &Workloads) -> Vec<Value> {
    let pair = |pair: &DependentPair| {
        let DependentPair { workloads, correlation, p } = pair;
        json!({ "workloads": workloads, "correlation": correlation, "p": p })
    };
    workloads.dependent.iter().map(pair).collect()
}

pub fn method_named(name: &str) -> Result<Method, PyInputError> {
    Method::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
        let known = Method::ALL.map(Method::name).join(", ");
        PyInputError(InputError::new("method", format!("`{}`: expected one of {known}", excerpt(name))))
    })
}
