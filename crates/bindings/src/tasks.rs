//! `place_tasks`, `migrate` and `simulate_apps`: task decisions on a telemetry file and on a simulated network; and
//! `app_file`, the content of an app file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use leeward_engine::{CommittedDecision, Engine, Ruling};
use leeward_fabric::input::{Files, InputError};
use leeward_fabric::{Bytes, Cpus, Fabric, HostId, Load, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, Scratch};
use leeward_moves::{self as moves, Fleet, Moves};
use leeward_placement::tasks::{
    self, App, AppRequest, Assignment, Estimate, Gain, Goal, Task, Transfer, Use, completion,
};
use leeward_placement::{Basis, Considered, Constraints, Context, Explain, Pool, Reason, Refusal};
use leeward_scenarios::driver::{TimedApp, run_apps};
use leeward_scenarios::scenario::PolicySpec;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::apart;
use crate::cluster::Cluster;
use crate::documents::{Document, without_position};
use crate::errors::{PyInputError, Raised};
use crate::link_rows::LinkRows;
use crate::place::to_clock;
use crate::policy::{Placed, registered_or_own};
use crate::simulation::as_python;

/// Reads an app file: its tasks, with `cpus` and the `command` of each, its transfers with their phases, and whether it
/// has bounds on round-trip times.
#[pyfunction]
pub fn app_file(py: Python<'_>, path: PathBuf, data: Option<PathBuf>) -> PyResult<Py<PyAny>> {
    let app = read_app(&Document::File(path), data).map_err(PyInputError)?;
    let tasks = app.names.iter().zip(&app.commands).zip(&app.request.tasks);
    let tasks = tasks.map(|((name, command), task)| {
        json!({ "task": name, "command": command, "cpus": task.cpus.0 as f64 / 1000.0, "memory": task.memory.0 })
    });
    let name = |task: u32| &app.names[task as usize];
    let transfers = app.request.transfers.iter().map(
        |one| json!({ "from": name(one.from), "to": name(one.to), "bytes": one.bytes.0, "phase": one.phase }),
    );
    let (tasks, transfers) = (tasks.collect::<Vec<_>>(), transfers.collect::<Vec<_>>());
    let is_bounded = !app.request.constraints.latency.is_empty();
    as_python(py, &json!({ "name": app.name, "tasks": tasks, "transfers": transfers, "bounded": is_bounded }))
}

/// Places the tasks of an app, together or one after another. Links missing from the telemetry are unknown. Numbers
/// of connections of cross traffic replace those of the cluster. A
/// matrix without an app file is an app of equal tasks, each with `cpus` and `memory`. `own` starts a policy of the user.
#[pyfunction]
#[pyo3(signature = (cluster, policy, app = None, matrix = None, square = None, cpus = None, memory = None,
    data = None, telemetry = None, cross_traffic = None, exclude = vec![], tags = vec![], labels = BTreeMap::new(), apart = None,
    together = true, seed = 1, explain = 0, clock = None, own = None))]
#[expect(clippy::too_many_arguments, reason = "these are the fields of a request, named on the Python side")]
pub fn place_tasks(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    app: Option<&Bound<'_, PyAny>>,
    matrix: Option<Vec<Vec<f64>>>,
    square: Option<String>,
    cpus: Option<String>,
    memory: Option<String>,
    data: Option<PathBuf>,
    telemetry: Option<&Bound<'_, PyAny>>,
    cross_traffic: Option<&Bound<'_, PyAny>>,
    exclude: Vec<String>,
    tags: Vec<String>,
    labels: BTreeMap<String, Vec<String>>,
    apart: Option<&str>,
    together: bool,
    seed: u64,
    explain: u16,
    clock: Option<(f64, f64)>,
    own: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let cluster = &cluster.get().inner;
    let file = app.map(Document::of).transpose()?;
    let (telemetry, cross_traffic) = (LinkRows::of_option(telemetry)?, LinkRows::of_option(cross_traffic)?);
    let raised = Raised::default();
    let (policies, label) =
        registered_or_own(py, policy, own.as_ref(), Placed::Tasks, seed, &cluster.fabric, &raised)?;
    let explain = if explain == u16::MAX { Explain::All } else { Explain::Top(explain) };
    let apart = apart::level(apart).map_err(PyInputError)?;
    let decide = move || -> Result<Value, InputError> {
        let files = Files { base: PathBuf::new(), data };
        let mut app = match (&file, &matrix, &square) {
            (Some(_), ..) if cpus.is_some() || memory.is_some() => {
                let field = if cpus.is_some() { "cpus" } else { "memory" };
                let message = "the app file already defines it; use it only with a matrix";
                return Err(InputError::new("request", message).in_field(field));
            }
            (Some(app), ..) => read_app(app, files.data.clone())?,
            (None, Some(matrix), _) => App::from_rows(matrix, equal_task(cpus, memory)?)?,
            (None, None, Some(square)) => App::from_matrix_file(square, &files, equal_task(cpus, memory)?)?,
            (None, None, None) => {
                let message = "expected an app file, a matrix, or both";
                return Err(InputError::new("request", message).in_field("app"));
            }
        };
        if !together {
            let file = file.as_ref().map(|app| app.name("app"));
            reject_traffic(file, matrix.is_some() || square.is_some(), &app)?;
        }
        if let Some(matrix) = &matrix {
            app.set_matrices(std::slice::from_ref(matrix))?;
        } else if let Some(square) = &square {
            app.set_matrix_file(square, &files)?;
        }
        constrain(&mut app, &cluster.fabric, &exclude, &tags)?;
        app.request.constraints.require_labels(&cluster.fabric, &labels)?;
        app.request.constraints.apart = apart;
        let (mut ledger, now) = ledger(cluster, telemetry.as_ref(), clock, None)?;
        set_cross_traffic(&mut ledger, cross_traffic.as_ref(), now)?;
        let mut engine = Engine::new(ledger, policies, seed, explain);
        let forecast = together.then(|| Forecast { ledger: engine.ledger().clone(), now, seed });
        let answers = requests(&app.request, together)
            .map(|request| (request.tasks.len(), place_app(&mut engine, now, request)))
            .collect::<Vec<_>>();
        Ok(describe(&cluster.fabric, &label, &app, answers, forecast))
    };
    let decided = py.detach(decide);
    if let Some(error) = raised.take() {
        return Err(error);
    }
    as_python(py, &decided.map_err(PyInputError)?)
}

/// Decides which running tasks should leave hot racks, in which order, and which tasks stay.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "these are the arguments of the command, named on the Python side"
)]
#[pyo3(signature = (cluster, policy, running, telemetry, hot = None, seed = 1, clock = None))]
pub fn migrate(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    running: &Bound<'_, PyAny>,
    telemetry: &Bound<'_, PyAny>,
    hot: Option<f64>,
    seed: u64,
    clock: Option<(f64, f64)>,
) -> PyResult<Py<PyAny>> {
    let cluster = &cluster.get().inner;
    let fabric = &cluster.fabric;
    let spec = spec(policy)?;
    let policy =
        moves::REGISTRY.make(&spec.name, &spec.settings).map_err(|e| invalid("policy", e.to_string()))?;
    let (running, telemetry) = (Document::of(running)?, LinkRows::of(telemetry)?);
    let decide = || -> Result<Value, InputError> {
        let fleet = match &running {
            Document::File(path) => Fleet::read(&path.to_string_lossy(), fabric)?,
            Document::Text(text) => Fleet::from_text("running", text, fabric).map_err(without_position)?,
        };
        let (ledger, now) = ledger(cluster, Some(&telemetry), clock, hot)?;
        let mut pool = Pool::new(fabric.clone());
        fleet.occupy(&mut pool);
        let mut scratch = Scratch::default();
        let view = &mut ledger.view(now, &mut scratch);
        let mut context = Context { view, pool: &pool, seed, explain: Explain::Off };
        // A fabric without rack links has no hot racks, so the request is an error.
        let decided = if fabric.all_racks().any(|rack| fabric.out_of_domain(rack).is_none()) {
            Err(Refusal::NoRackLinks)
        } else {
            policy.place(std::slice::from_ref(&fleet.request), &mut context).remove(0)
        };
        let (moves, refused) = match decided {
            Ok(decision) => (decision.choice, None),
            Err(refusal) => (Moves::default(), Some(refusal.to_string())),
        };
        let hot = fabric.all_racks().flat_map(|rack| [fabric.out_of_domain(rack), fabric.into_domain(rack)]);
        let hot = hot.flatten().filter(|&link| context.view.hot_since(link).is_some()).map(|link| {
            let utilization = ledger.view(now, &mut Scratch::default()).utilization_with(link, Load(0));
            let after = context.view.utilization_with(link, Load(0));
            json!({ "link": fabric.resource_name(link), "utilization": utilization, "after": after })
        });
        let mut described = describe_moves(fabric, &spec.label, &fleet, &moves, hot.collect());
        described["refused"] = json!(refused);
        Ok(described)
    };
    as_python(py, &py.detach(decide).map_err(PyInputError)?)
}

pub(crate) fn invalid(field: &str, message: String) -> PyInputError {
    PyInputError(InputError::new("request", message).in_field(field))
}

pub(crate) fn spec(policy: &str) -> Result<PolicySpec, PyInputError> {
    policy.parse().map_err(|message| invalid("policy", message))
}

/// Resources of each task of a matrix without an app file.
fn equal_task(cpus: Option<String>, memory: Option<String>) -> Result<Task, InputError> {
    let invalid = |field: &str, message: String| InputError::new("request", message).in_field(field);
    let cpus = cpus
        .map_or(Ok(Cpus(1000)), |text| text.parse().map_err(|error| invalid("cpus", format!("{error}"))))?;
    let memory = memory
        .map_or(Ok(Bytes(0)), |text| text.parse().map_err(|error| invalid("memory", format!("{error}"))))?;
    Ok(Task { cpus, memory, ..Task::default() })
}

pub(crate) fn read_app(app: &Document, data: Option<PathBuf>) -> Result<App, InputError> {
    match app {
        Document::File(path) => {
            let base = path.parent().map(PathBuf::from).unwrap_or_default();
            App::read(&path.to_string_lossy(), &Files { base, data })
        }
        Document::Text(text) => {
            let files = Files { base: PathBuf::new(), data };
            App::from_text("app", text, &files).map_err(without_position)
        }
    }
}

/// A ledger with the data of telemetry, and the time at which the data ends.
pub(crate) fn ledger(
    cluster: &leeward_fabric::Cluster,
    telemetry: Option<&LinkRows>,
    clock: Option<(f64, f64)>,
    hot: Option<f64>,
) -> Result<(Ledger, Nanos), InputError> {
    // Data of a file does not age.
    let mut settings = LedgerSettings { unknown_after: 1e9, ..LedgerSettings::default() };
    settings.hot = hot.unwrap_or(settings.hot);
    let interval = settings.interval;
    let ledger = Ledger::of_cluster(cluster, settings);
    let mut ledger = ledger.map_err(|error| InputError::new("ledger", error.to_string()))?;
    let Some(rows) = telemetry else { return Ok((ledger, Nanos(0))) };
    let (samples, until) = rows.samples(&cluster.fabric, interval, clock.map(to_clock))?;
    ledger.report(&samples, until);
    Ok((ledger, until))
}

/// Replaces the numbers of connections of others on links by those of a file or a table.
pub(crate) fn set_cross_traffic(
    ledger: &mut Ledger,
    rows: Option<&LinkRows>,
    now: Nanos,
) -> Result<(), InputError> {
    let Some(rows) = rows else { return Ok(()) };
    let fabric = ledger.fabric().clone();
    for (link, connections) in rows.connections(&fabric)? {
        ledger.set_cross_traffic(link, connections, now);
    }
    Ok(())
}

/// Adds the constraints of a request to those between the app's tasks.
pub(crate) fn constrain(
    app: &mut App,
    fabric: &Fabric,
    exclude: &[String],
    tags: &[String],
) -> Result<(), InputError> {
    let Constraints { apart_groups, latency, .. } = std::mem::take(&mut app.request.constraints);
    let named = Constraints::named(fabric, exclude, tags)?;
    app.request.constraints = Constraints { apart_groups, latency, ..named };
    Ok(())
}

/// Rejects traffic between tasks if they are placed one by one.
fn reject_traffic(file: Option<String>, matrix: bool, app: &App) -> Result<(), InputError> {
    let invalid = |name: String, field: &str| {
        let message =
            "a job's tasks are placed one by one; transfers would be ignored: use --app (or together)";
        Err(InputError::new(name, message).in_field(field))
    };
    if matrix {
        return invalid("request".into(), "matrix");
    }
    if !app.request.constraints.apart_groups.is_empty() {
        let message =
            "a job's tasks are placed one by one, without groups: use --apart, or --app (or together)";
        return Err(InputError::new(file.unwrap_or_default(), message).in_field("apart"));
    }
    let of_app = [
        ("latency", !app.request.constraints.latency.is_empty()),
        ("goal", app.request.goal != Goal::default()),
    ];
    if let Some((field, _)) = of_app.into_iter().find(|(_, is_given)| *is_given) {
        let message = "a job's tasks are placed one by one, without it: use --app (or together)";
        return Err(InputError::new(file.unwrap_or_default(), message).in_field(field));
    }
    if app.request.transfers.is_empty() { Ok(()) } else { invalid(file.unwrap_or_default(), "transfers") }
}

/// Requests to decide: the whole app, or each of its tasks alone, as a task scheduler would.
fn requests(app: &AppRequest, together: bool) -> impl Iterator<Item = AppRequest> + '_ {
    let apart = app.tasks.iter().enumerate().map(|(at, task)| AppRequest {
        id: at as u64,
        tasks: vec![*task],
        transfers: Vec::new(),
        ..app.clone()
    });
    let whole = together.then(|| app.clone());
    whole.into_iter().chain(apart.filter(move |_| !together))
}

fn place_app(
    engine: &mut Engine,
    now: Nanos,
    request: AppRequest,
) -> Result<CommittedDecision<Assignment>, Refusal> {
    let request = apart::from_earlier_tasks(engine, request);
    engine.place_app(now, request, Ruling::default(), &mut Vec::new())
}

/// State for predicting when an app's transfers end: the network before the placement.
struct Forecast {
    ledger: Ledger,
    now: Nanos,
    seed: u64,
}

impl Forecast {
    /// Predicted completion time, each transfer with its bottleneck, and the gain over random placements.
    fn describe(
        &self,
        fabric: &Arc<Fabric>,
        app: &App,
        hosts: &[HostId],
        by: Estimate,
    ) -> (Value, Value, Value) {
        let mut scratch = Scratch::default();
        let mut view = self.ledger.view(self.now, &mut scratch);
        let gain = Gain::of(&app.request, &Pool::new(fabric.clone()), &mut view, by, self.seed);
        let transfers = &app.request.transfers;
        let completion = completion(&view, transfers, hosts, by);
        let finite = |seconds: f64| seconds.is_finite().then_some(seconds);
        let records = transfers.iter().zip(&completion.transfers).map(|(transfer, forecast)| {
            let (from, to) = (transfer.from as usize, transfer.to as usize);
            json!({
                "from": app.names[from],
                "to": app.names[to],
                "bytes": transfer.bytes.0,
                "phase": transfer.phase,
                "from_host": fabric.host_name(hosts[from]),
                "to_host": fabric.host_name(hosts[to]),
                "limit": forecast.limit.map(|link| fabric.resource_name(link)),
                "seconds": finite(forecast.seconds),
            })
        });
        let gain = gain.map(|gain| {
            let measurements = match gain.measurements(completion.seconds) {
                Use::Worthwhile => "worthwhile",
                Use::Short => "short",
                Use::Uniform => "uniform",
            };
            json!({ "random_s": gain.random_s, "survey_s": gain.survey_s, "measurements": measurements })
        });
        (json!(finite(completion.seconds)), records.collect(), json!(gain))
    }
}

/// Candidates for tasks. `first` is the position of the first task of their request in `names`.
pub(crate) fn reasons(fabric: &Fabric, names: &[String], first: usize, why: &[Considered]) -> Vec<Value> {
    let reason = |considered: &Considered| {
        let at = first + considered.objectives.map_or(0, |objectives| objectives.task as usize);
        json!({ "task": names[at], "reason": Reason::of(fabric, considered) })
    };
    why.iter().map(reason).collect()
}

fn describe(
    fabric: &Arc<Fabric>,
    policy: &str,
    app: &App,
    answers: Vec<(usize, Result<CommittedDecision<Assignment>, Refusal>)>,
    forecast: Option<Forecast>,
) -> Value {
    let (mut placed, mut refused, mut why) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut hosts, mut basis, mut first) = (Vec::new(), None::<Basis>, 0);
    for (count, answer) in answers {
        match answer {
            Ok(CommittedDecision { decision, .. }) => {
                for (at, &host) in (first..).zip(&decision.choice) {
                    placed.insert(at, fabric.host_name(host));
                }
                why.extend(reasons(fabric, &app.names, first, &decision.why));
                hosts.extend(decision.choice);
                basis = basis.or(Some(decision.basis));
            }
            Err(refusal) => refused.push(refusal.with_task_names(&app.names[first..])),
        }
        first += count;
    }
    let (seconds, transfers, gain) = match forecast.filter(|_| refused.is_empty()) {
        Some(forecast) => {
            let by = basis.and_then(|basis| basis.estimate).unwrap_or_default();
            forecast.describe(fabric, app, &hosts, by)
        }
        None => (Value::Null, json!([]), Value::Null),
    };
    let gaps = basis.and_then(|basis| basis.gaps);
    let finite = |gap: f64| gap.is_finite().then_some(gap);
    let cost = fabric.has_costs().then(|| fabric.cost_of(&hosts).0 as f64 / 1e6);
    json!({
        "app": app.name,
        "policy": policy,
        "tasks": (0..app.names.len())
            .map(|at| json!({ "task": app.names[at], "host": placed.get(&at) }))
            .collect::<Vec<_>>(),
        "refused": (!refused.is_empty()).then_some(refused),
        "completion_s": seconds,
        "time_gap": gaps.and_then(|gaps| finite(gaps.time)),
        "cost_gap": gaps.and_then(|gaps| gaps.cost).and_then(finite),
        "proven": gaps.map(|gaps| gaps.proven()),
        "cost": cost,
        "goal": app.request.goal,
        "transfers": transfers,
        "gain": gain,
        "oldest_telemetry_s": basis.and_then(|basis| basis.oldest).map(Nanos::as_secs_f64),
        "why": why,
    })
}

fn describe_moves(fabric: &Fabric, policy: &str, fleet: &Fleet, moves: &Moves, hot: Vec<Value>) -> Value {
    let task = |at: u32| &fleet.names[at as usize];
    let from = |at: u32| fabric.host_name(fleet.request.running[at as usize].host);
    let moved = moves.moves.iter().map(|planned| {
        let (to, link) = (fabric.host_name(planned.to), fabric.resource_name(planned.link));
        json!({ "task": task(planned.at), "from": from(planned.at), "to": to, "link": link })
    });
    let kept = moves.kept.iter().map(|kept| {
        let link = fabric.resource_name(kept.link);
        json!({ "task": task(kept.at), "host": from(kept.at), "link": link, "because": kept.why.text() })
    });
    json!({
        "policy": policy,
        "hot": hot,
        "moves": moved.collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
    })
}

/// An arriving app: its arrival, the needs of its tasks (processors, bytes of memory), and its transfers (from, to,
/// bytes).
type ArrivingApp = (f64, Vec<(f64, u64)>, Vec<(u32, u32, u64)>);

/// Simulates apps on the fluid network. Each app is placed at its arrival. The policy uses the link capacities of
/// `believed`, if given, instead of those of `cluster`.
#[pyfunction]
#[pyo3(signature = (cluster, policy, apps, seed = 1, believed = None))]
pub fn simulate_apps(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    apps: Vec<ArrivingApp>,
    seed: u64,
    believed: Option<&Bound<'_, Cluster>>,
) -> PyResult<Py<PyAny>> {
    let cluster = &cluster.get().inner;
    let spec = spec(policy)?;
    let policy =
        tasks::REGISTRY.make(&spec.name, &spec.settings).map_err(|e| invalid("policy", e.to_string()))?;
    let arrivals = apps.into_iter().enumerate().map(|(at, app)| arrival(at, app));
    let arrivals = arrivals.collect::<Result<Vec<_>, _>>().map_err(PyInputError)?;
    let believed = believed.map_or(cluster, |believed| &believed.get().inner);
    if believed.fabric.resource_count() != cluster.fabric.resource_count() {
        return Err(invalid("believed", "expected a cluster of the same hosts and links".into()).into());
    }
    let runs = py.detach(|| run_apps(cluster, &believed.capacities, &arrivals, policy, seed));
    let runs = runs.map_err(|error| invalid("apps", error.to_string()))?;
    let finite = |seconds: f64| seconds.is_finite().then_some(seconds);
    let described = runs.into_iter().zip(&arrivals).map(|(run, arrival)| {
        let name = |&host: &HostId| cluster.fabric.host_name(host);
        json!({
            "start_s": arrival.start,
            "hosts": run.placed.as_ref().ok().map(|hosts| hosts.iter().map(name).collect::<Vec<_>>()),
            "refused": run.placed.as_ref().err().map(Refusal::to_string),
            "forecast_s": finite(run.forecast),
            "gap": run.gap.and_then(finite),
            "seconds": run.seconds,
        })
    });
    as_python(py, &described.collect::<Vec<_>>())
}

fn arrival(at: usize, (start, needs, sends): ArrivingApp) -> Result<TimedApp, InputError> {
    let invalid = |message: String| Err(InputError::new("apps", message).in_field(format!("[{at}]")));
    let tasks = needs.len() as u32;
    let mut list = Vec::with_capacity(needs.len());
    for (cpus, memory) in needs {
        if !(0.0..=1e6).contains(&cpus) {
            return invalid(format!("{cpus} processors: expected a number from 0 to 1000000"));
        }
        list.push(Task {
            cpus: Cpus((cpus * 1000.0).round() as u64),
            memory: Bytes(memory),
            ..Task::default()
        });
    }
    let mut seen = BTreeSet::new();
    let mut total = 0_u64;
    for &(from, to, bytes) in &sends {
        total = total.saturating_add(bytes);
        if from.max(to) >= tasks || from == to || !seen.insert((from, to)) || total > 1 << 62 {
            return invalid(format!(
                "transfer from {from} to {to}: expected two different tasks of {tasks}, each pair once, \
                 and at most 2^62 bytes in all"
            ));
        }
    }
    let transfer = |(from, to, bytes)| Transfer { from, to, bytes: Bytes(bytes), phase: 0 };
    let transfers = sends.into_iter().map(transfer).collect();
    if list.is_empty() {
        return invalid("expected at least one task".into());
    }
    Ok(TimedApp { start, request: AppRequest { tasks: list, transfers, ..AppRequest::default() } })
}
