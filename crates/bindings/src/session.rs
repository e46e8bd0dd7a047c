//! `EngineSession`: an engine in this process, for a program that places work without a service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use arrow_array::{ArrayRef, Float64Array};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_engine::{
    CommittedDecision, Engine, GivenTerms, Input, Output, Policies, ReplicasAnswer, Ruling,
};
use leeward_fabric::input::{InputError, read_json};
use leeward_fabric::{Bytes, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{EntryId, Ledger, LedgerSettings, Sample, Scratch};
use leeward_placement::replicas::{Chain, Layout, ReplicaRequest, ReplicasSpec};
use leeward_placement::tasks::App;
use leeward_placement::{Constraints, Explain, JobId, LabelValues};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::apart;
use crate::arrow_table::{batches, table};
use crate::cluster::Cluster;
use crate::documents::Document;
use crate::errors::{PyInputError, Raised};
use crate::link_rows::each_load;
use crate::place;
use crate::policy::{Placed, registered_or_own};
use crate::records::texts;
use crate::simulation::as_python;
use crate::tasks::{constrain, read_app, reasons};

/// Latest time of a session, in seconds: 30 years.
const LATEST: f64 = 1e9;

/// An engine with its own clock.
#[pyclass(frozen, module = "leeward._native")]
pub struct EngineSession {
    fabric: Arc<Fabric>,
    labels: [String; 2],
    state: Mutex<State>,
    /// Thread that uses the state.
    user: Mutex<Option<ThreadId>>,
    raised: Raised,
}

/// Number of a committed app, its name, and for each task its name and an objection to its host.
type CommittedApp = (u64, String, Vec<(String, Option<&'static str>)>);

struct State {
    engine: Engine,
    now: Nanos,
    interval: Nanos,
    /// Number of the next placement.
    next: u64,
    placements: BTreeMap<u64, Placement>,
}

/// A placement that was not released.
enum Placement {
    Block { entries: Vec<EntryId>, hosts: Chain, size: Bytes },
    App,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Places a block, at the end of the interval of a policy that collects requests.
    fn place_block(&mut self, request: ReplicaRequest) -> ReplicasAnswer {
        let mut outputs = Vec::new();
        let request = self.engine.with_source(self.now, request);
        if let Some(answer) =
            self.engine.place_replicas(self.now, 0, request, Ruling::default(), &mut outputs)
        {
            return answer;
        }
        loop {
            let (mut answer, mut wake) = (None, None);
            for output in outputs.drain(..) {
                match output {
                    Output::ReplicasPlaced(_, placed) => answer = Some(placed),
                    Output::WakeAt(at) => wake = Some(at),
                    Output::MovesAdvised(_) | Output::MovesConsidered(_) => {}
                }
            }
            if let Some(answer) = answer {
                return answer;
            }
            self.now = wake.expect("the engine answers at once or after a wake").max(self.now);
            self.engine.handle(self.now, Input::Wake, &mut outputs);
        }
    }

    /// Records a placed block under its number.
    fn keep(&mut self, number: u64, placed: &CommittedDecision<Chain>, size: Bytes) {
        let (entries, hosts) = (placed.entries.clone(), placed.decision.choice.clone());
        self.placements.insert(number, Placement::Block { entries, hosts, size });
    }
}

/// Terms of a choice of the caller whose work starts now.
fn terms(started: Nanos) -> GivenTerms {
    GivenTerms { started, seen: false, compare: false }
}

#[pymethods]
impl EngineSession {
    #[new]
    #[pyo3(signature = (cluster, replicas, tasks, seed = 1, explain = 0, settings = "{}", own_replicas = None, own_tasks = None))]
    #[expect(clippy::too_many_arguments, reason = "these are named on the Python side")]
    fn new(
        py: Python<'_>,
        cluster: &Bound<'_, Cluster>,
        replicas: &str,
        tasks: &str,
        seed: u64,
        explain: u16,
        settings: &str,
        own_replicas: Option<Py<PyAny>>,
        own_tasks: Option<Py<PyAny>>,
    ) -> PyResult<EngineSession> {
        let cluster = &cluster.get().inner;
        let fabric = &cluster.fabric;
        let raised = Raised::default();
        let settings: LedgerSettings = parse("settings", settings)?;
        let interval = settings.interval;
        let ledger = Ledger::of_cluster(cluster, settings);
        let ledger = ledger.map_err(|error| PyInputError(InputError::new("settings", error)))?;
        let (of_blocks, replicas) =
            registered_or_own(py, replicas, own_replicas.as_ref(), Placed::Replicas, seed, fabric, &raised)?;
        let (of_tasks, tasks) =
            registered_or_own(py, tasks, own_tasks.as_ref(), Placed::Tasks, seed, fabric, &raised)?;
        let policies = Policies { replicas: of_blocks.replicas, ..of_tasks };
        let explain = if explain == u16::MAX { Explain::All } else { Explain::Top(explain) };
        let explain = if explain == Explain::Top(0) { Explain::Off } else { explain };
        let engine = Engine::new(ledger, policies, seed, explain);
        let state = State { engine, now: Nanos(0), interval, next: 0, placements: BTreeMap::new() };
        Ok(EngineSession {
            fabric: fabric.clone(),
            labels: [replicas, tasks],
            state: Mutex::new(state),
            user: Mutex::default(),
            raised,
        })
    }

    /// Current time of the session, in seconds from its start.
    #[getter]
    fn now_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |state| state.now.as_secs_f64())
    }

    /// Time between reports, in seconds.
    #[getter]
    fn interval_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |state| state.interval.as_secs_f64())
    }

    /// Moves the time forward.
    fn advance(&self, py: Python<'_>, now_s: f64) -> PyResult<()> {
        let now = time("now_s", now_s)?;
        let earlier = self.with(py, |state| {
            if now < state.now {
                return Some(state.now);
            }
            state.now = now;
            state.engine.handle(now, Input::Wake, &mut Vec::new());
            None
        })?;
        match earlier {
            None => Ok(()),
            Some(before) => {
                let message = format!("{now_s} s: expected a time from {} s on", before.as_secs_f64());
                Err(PyInputError(InputError::new("now_s", message)).into())
            }
        }
    }

    /// Reports mean loads of links over a window, by default the interval after now. Columns: `link`, `load_bps` (null:
    /// unknown). The time moves to the end of the window. Returns the number of loads that did not count.
    #[pyo3(signature = (loads, since_s = None, until_s = None))]
    fn report(
        &self,
        py: Python<'_>,
        loads: &Bound<'_, PyAny>,
        since_s: Option<f64>,
        until_s: Option<f64>,
    ) -> PyResult<u64> {
        let since = since_s.map(|since_s| time("since_s", since_s)).transpose()?;
        let until = until_s.map(|until_s| time("until_s", until_s)).transpose()?;
        let (batches, mut loads) = (batches(loads)?, Vec::new());
        each_load("loads", &batches, &self.fabric, |link, load, _| loads.push((link, load)))
            .map_err(PyInputError)?;
        let reported = self.with(py, |state| {
            let until = until.unwrap_or(state.now.plus(state.interval));
            let since = since.unwrap_or(Nanos(until.0.saturating_sub(state.interval.0)));
            if since >= until {
                let (since, until) = (since.as_secs_f64(), until.as_secs_f64());
                return Err(format!("the window from {since} s to {until} s is empty"));
            }
            state.now = state.now.max(until);
            let sample = |&(resource, load): &(ResourceId, Load)| Sample {
                resource,
                window: (since, until),
                load,
                guaranteed: None,
            };
            let samples: Vec<Sample> = loads.iter().map(sample).collect();
            Ok(state.engine.report(state.now, &samples, &mut Vec::new()).total())
        })?;
        Ok(reported.map_err(|message| PyInputError(InputError::new("until_s", message)))?)
    }

    /// Marks a host as up or down, or as draining or not.
    #[pyo3(signature = (host, up = None, draining = None))]
    fn set_host(&self, py: Python<'_>, host: &str, up: Option<bool>, draining: Option<bool>) -> PyResult<()> {
        let host = self.host("host", host)?;
        self.with(py, |state| {
            let inputs = [up.map(|up| Input::Health(host, up)), draining.map(|on| Input::Drain(host, on))];
            inputs.into_iter().flatten().for_each(|input| {
                state.engine.handle(state.now, input, &mut Vec::new());
            });
        })
    }

    /// Places the copies of a block, with the fields of a request as JSON, and commits the decision.
    fn place_replicas(&self, py: Python<'_>, request: &str) -> PyResult<Py<PyAny>> {
        let mut request = self.block(request)?;
        let (number, answer) = self.with(py, |state| {
            let number = state.number();
            (request.id, request.file) = (number, number);
            let size = request.size;
            let answer = state.place_block(request);
            if let Ok(placed) = &answer {
                state.keep(number, placed, size);
            }
            (number, answer)
        })?;
        let id = answer.is_ok().then_some(number);
        let mut described = place::describe(&self.fabric, &self.labels[0], answer);
        described["id"] = json!(id);
        as_python(py, &described)
    }

    /// Places blocks together: `sizes` in bytes, and writers by number, -1 for one outside the cluster. Returns the number
    /// of each placement, -1 for a refused block; a row of hosts for each; and the reasons of refusals.
    #[pyo3(signature = (sizes, writers, replicas = 3, fault_domains = None))]
    fn place_batch(
        &self,
        py: Python<'_>,
        sizes: PyBuffer<i64>,
        writers: PyBuffer<i64>,
        replicas: u8,
        fault_domains: Option<u8>,
    ) -> PyResult<(Vec<i64>, Vec<i64>, Vec<String>)> {
        let (sizes, writers) = (sizes.to_vec(py)?, writers.to_vec(py)?);
        let invalid =
            |field: &str, message: String| PyErr::from(PyInputError(InputError::new(field, message)));
        if sizes.len() != writers.len() {
            let message = format!("{}: expected one for each of {} blocks", writers.len(), sizes.len());
            return Err(invalid("writers", message));
        }
        if let Some(size) = sizes.iter().find(|&&size| size <= 0) {
            return Err(invalid("sizes", format!("{size}: expected more than nothing")));
        }
        let hosts = self.fabric.host_count() as i64;
        if let Some(writer) = writers.iter().find(|&&writer| writer < -1 || writer >= hosts) {
            return Err(invalid(
                "writers",
                format!("{writer}: expected a host from 0 to {}, or -1", hosts - 1),
            ));
        }
        if replicas == 0 {
            return Err(invalid("replicas", "0: expected at least one copy".to_owned()));
        }
        let fault_domains = fault_domains.unwrap_or(u8::from(replicas > 1));
        self.with(py, |state| {
            let first = state.next;
            let request = |(&size, &writer): (&i64, &i64)| {
                let id = state.number();
                ReplicaRequest {
                    id,
                    file: id,
                    writer: u32::try_from(writer).ok().map(HostId),
                    size: Bytes(size.unsigned_abs()),
                    replicas,
                    layout: Layout::Chain,
                    fault_domains,
                    blocks_left: 1,
                    job: None,
                    constraints: Constraints::default(),
                }
            };
            let requests: Vec<ReplicaRequest> = sizes.iter().zip(&writers).map(request).collect();
            let answers = state.engine.place_batch(state.now, requests, &mut Vec::new());
            let (mut numbers, mut reasons) = (Vec::with_capacity(answers.len()), Vec::new());
            let mut chosen = Vec::with_capacity(answers.len() * usize::from(replicas));
            for ((number, &size), answer) in (first..).zip(&sizes).zip(answers) {
                match answer {
                    Ok(placed) => {
                        numbers.push(number as i64);
                        chosen.extend(placed.decision.choice.iter().map(|host| i64::from(host.0)));
                        state.keep(number, &placed, Bytes(size.unsigned_abs()));
                    }
                    Err(refusal) => {
                        numbers.push(-1);
                        chosen.extend((0..replicas).map(|_| -1));
                        reasons.push(refusal.to_string());
                    }
                }
            }
            (numbers, chosen, reasons)
        })
    }

    /// Commits copies of a block on hosts that the caller chose. Returns their number, and for each host the reason for
    /// which a policy would refuse it, or None.
    fn commit_replicas(
        &self,
        py: Python<'_>,
        request: &str,
        hosts: Vec<String>,
    ) -> PyResult<(u64, Vec<Option<&'static str>>)> {
        let mut request = self.block(request)?;
        let hosts = self.hosts(&hosts, usize::from(request.replicas), "copies")?;
        if let Some(at) = (1..hosts.len()).find(|&at| hosts[..at].contains(&hosts[at])) {
            let message = format!("`{}` has two copies", self.fabric.host_name(hosts[at]));
            return Err(PyInputError(InputError::new("hosts", message)).into());
        }
        self.with(py, |state| {
            let number = state.number();
            (request.id, request.file) = (number, number);
            let mut given = state.engine.check_given_replicas(state.now, &request, &hosts, terms(state.now));
            let entries = state.engine.commit_given_replicas(&mut given.decision, request.size);
            state.placements.insert(number, Placement::Block { entries, hosts, size: request.size });
            (number, given.objections.iter().map(|one| one.map(|constraint| constraint.text())).collect())
        })
    }

    /// Places the tasks of an app with constraints as JSON, and commits the decision.
    fn place_tasks(&self, py: Python<'_>, app: &Bound<'_, PyAny>, constraints: &str) -> PyResult<Py<PyAny>> {
        let mut app = self.app(app, constraints)?;
        let (number, placed) = self.with(py, |state| {
            let number = state.number();
            (app.request.id, app.request.job) = (number, JobId(number));
            let request = app.request.clone();
            let placed = state.engine.place_app(state.now, request, Ruling::default(), &mut Vec::new());
            if placed.is_ok() {
                state.placements.insert(number, Placement::App);
            }
            (number, placed)
        })?;
        let host = |host: HostId| self.fabric.host_name(host).to_owned();
        let hosts: Option<Vec<String>> =
            placed.as_ref().ok().map(|placed| placed.decision.choice.iter().copied().map(host).collect());
        let why =
            placed.as_ref().ok().map(|placed| reasons(&self.fabric, &app.names, 0, &placed.decision.why));
        let tasks = app
            .names
            .iter()
            .enumerate()
            .map(|(at, name)| json!({ "task": name, "host": hosts.as_ref().map(|hosts| &hosts[at]) }));
        let described = json!({
            "id": hosts.is_some().then_some(number),
            "app": app.name,
            "policy": self.labels[1],
            "tasks": tasks.collect::<Vec<_>>(),
            "refused": placed.as_ref().err().map(|refusal| [refusal.with_task_names(&app.names)]),
            "why": why.unwrap_or_default(),
            "oldest_telemetry_s": placed.ok().and_then(|p| p.decision.basis.oldest).map(Nanos::as_secs_f64),
        });
        as_python(py, &described)
    }

    /// Commits the tasks of an app on hosts that the caller chose, one for each task. Returns their number, the name of the
    /// app, and for each task its name and the reason for which a policy would refuse its host, or None.
    fn commit_tasks(
        &self,
        py: Python<'_>,
        app: &Bound<'_, PyAny>,
        constraints: &str,
        hosts: Vec<String>,
    ) -> PyResult<CommittedApp> {
        let mut app = self.app(app, constraints)?;
        let hosts = self.hosts(&hosts, app.names.len(), "tasks")?;
        self.with(py, |state| {
            let number = state.number();
            (app.request.id, app.request.job) = (number, JobId(number));
            let given = state.engine.check_given_app(state.now, &app.request, &hosts, terms(state.now));
            let objections = given.objections.iter().map(|one| one.map(|constraint| constraint.text()));
            let tasks = app.names.iter().cloned().zip(objections).collect();
            state.engine.commit_given_app(&app.request, given.decision);
            state.placements.insert(number, Placement::App);
            (number, app.name.clone(), tasks)
        })
    }

    /// Ends placements: their traffic leaves the ledger, and tasks leave their hosts. With `stored` false, blocks are
    /// deleted. Returns the numbers that were not there.
    #[pyo3(signature = (numbers, stored = true))]
    fn release(&self, py: Python<'_>, numbers: Vec<u64>, stored: bool) -> PyResult<Vec<u64>> {
        self.with(py, |state| {
            let mut unknown = Vec::new();
            for number in numbers {
                let Some(placement) = state.placements.remove(&number) else {
                    unknown.push(number);
                    continue;
                };
                let (engine, now, out) = (&mut state.engine, state.now, &mut Vec::new());
                match placement {
                    Placement::App => engine.handle(now, Input::Ended(number), out),
                    Placement::Block { entries, hosts, size } => {
                        engine.handle(now, Input::Release(&entries), out);
                        for host in hosts.into_iter().filter(|_| !stored) {
                            engine.handle(now, Input::Unstored(host, size), out);
                        }
                    }
                }
            }
            unknown
        })
    }

    /// Number of placements that were not released.
    #[getter]
    fn placements(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |state| state.placements.len())
    }

    /// All links now, with their loads. Columns: `link`, `capacity_bps`, `load_bps` (null: unknown), `residual_bps`,
    /// `utilization` (null: unknown).
    fn links(&self, py: Python<'_>) -> PyResult<PyArrowType<Table>> {
        let links = || (0..self.fabric.link_count() as u32).map(ResourceId);
        let rows = self.with(py, |state| {
            let mut scratch = Scratch::default();
            let view = state.engine.ledger().view(state.now, &mut scratch);
            let row = |link: ResourceId| {
                let numbers = view.numbers(link);
                (view.capacity(link), numbers.load, numbers.residual, view.utilization_with(link, Load(0)))
            };
            links().map(row).collect::<Vec<_>>()
        })?;
        let bps = |load: Load| load.0 as f64;
        let columns: [(&str, ArrayRef); 5] = [
            ("link", texts(links().map(|link| self.fabric.resource_name(link)))),
            ("capacity_bps", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| bps(row.0))))),
            ("load_bps", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.1.map(bps))))),
            ("residual_bps", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| bps(row.2))))),
            ("utilization", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.3)))),
        ];
        table(columns)
    }
}

impl EngineSession {
    /// Uses the state without the interpreter's lock, which a policy in Python needs. Raises the exception of such a
    /// policy.
    fn with<R: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut State) -> R + Send) -> PyResult<R> {
        let result = py.detach(|| {
            let this = thread::current().id();
            if *self.user.lock().unwrap_or_else(PoisonError::into_inner) == Some(this) {
                return None;
            }
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            *self.user.lock().unwrap_or_else(PoisonError::into_inner) = Some(this);
            let result = change(&mut state);
            *self.user.lock().unwrap_or_else(PoisonError::into_inner) = None;
            Some(result)
        });
        if let Some(error) = self.raised.take() {
            return Err(error);
        }
        result.ok_or_else(|| PyRuntimeError::new_err("a policy cannot use the session that asks it"))
    }

    fn host(&self, field: &str, name: &str) -> Result<HostId, PyInputError> {
        let unknown = || PyInputError(InputError::new(field, self.fabric.no_host(name)));
        self.fabric.host(name).ok_or_else(unknown)
    }

    /// Hosts of the caller, one for each of `count` copies or tasks.
    fn hosts(&self, names: &[String], count: usize, what: &str) -> Result<Vec<HostId>, PyInputError> {
        if names.len() != count {
            let message = format!("{} hosts: expected one for each of {count} {what}", names.len());
            return Err(PyInputError(InputError::new("hosts", message)));
        }
        names.iter().map(|name| self.host("hosts", name)).collect()
    }

    /// A request for the copies of a block, with a number to come.
    fn block(&self, text: &str) -> Result<ReplicaRequest, PyInputError> {
        let mut spec: ReplicasSpec = parse("request", text)?;
        let missing = spec.coding.map(|coding| coding.missing(spec.existing.len()));
        if missing.is_some() && spec.replicas > 0 {
            let message = "give `replicas` or `coding`, not both";
            return Err(PyInputError(InputError::new("request", message).in_field("replicas")));
        }
        spec.replicas = missing.unwrap_or(if spec.replicas == 0 { 3 } else { spec.replicas });
        spec.request(&self.fabric, 0).map_err(PyInputError)
    }

    /// An app with the constraints of its request.
    fn app(&self, app: &Bound<'_, PyAny>, constraints: &str) -> PyResult<App> {
        let mut app = read_app(&Document::of(app)?, None).map_err(PyInputError)?;
        self.constrain(&mut app, constraints)?;
        Ok(app)
    }

    fn constrain(&self, app: &mut App, constraints: &str) -> Result<(), PyInputError> {
        let TaskConstraints { exclude, tags, labels, apart } = parse("request", constraints)?;
        constrain(app, &self.fabric, &exclude, &tags)?;
        app.request.constraints.require_labels(&self.fabric, &labels)?;
        app.request.constraints.apart = apart::level(apart.as_deref())?;
        Ok(())
    }
}

/// Constraints of a request for tasks.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskConstraints {
    exclude: Vec<String>,
    tags: Vec<String>,
    labels: LabelValues,
    apart: Option<String>,
}

fn parse<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, PyInputError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| PyInputError(InputError::new(name, error)))?;
    read_json(name, &value).map_err(PyInputError)
}

fn time(name: &str, seconds: f64) -> Result<Nanos, PyInputError> {
    if !(0.0..=LATEST).contains(&seconds) {
        let message = format!("{seconds} s: expected a time from 0 to {LATEST:e} s");
        return Err(PyInputError(InputError::new(name, message)));
    }
    Ok(Nanos::from_secs_f64(seconds))
}
