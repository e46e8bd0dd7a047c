//! `reevaluate`: whether the tasks of a running app should move to other hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use leeward_engine::{Engine, GivenTerms};
use leeward_fabric::input::{Files, InputError, excerpt};
use leeward_fabric::{Bytes, Fabric, HostId, Nanos};
use leeward_ledger::LedgerSettings;
use leeward_placement::Explain;
use leeward_placement::tasks::{App, ReevaluationRecord, Worth};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::apart;
use crate::cluster::Cluster;
use crate::documents::Document;
use crate::errors::{PyInputError, Raised};
use crate::link_rows::LinkRows;
use crate::place::to_clock;
use crate::policy::{Placed, registered_or_own};
use crate::simulation::as_python;
use crate::tasks::{constrain, ledger, read_app, set_cross_traffic};

/// Places the rest of a running app again, and says if the moves are worth their cost. `hosts` are the current hosts
/// by task. `remaining`, a matrix for each phase, or the file `square` replaces the transfers of the app. `pause_s` is the pause of the app after
/// a move; `state` is the state of each task in bytes, by default its memory.
#[pyfunction]
#[pyo3(signature = (cluster, policy, app, hosts, remaining = None, square = None, data = None, pause_s = 0.0,
    state = None, margin = 0.1, telemetry = None, cross_traffic = None, exclude = vec![], tags = vec![],
    labels = BTreeMap::new(), apart = None, seed = 1, clock = None, own = None))]
#[expect(clippy::too_many_arguments, reason = "these are the fields of a request, named on the Python side")]
pub fn reevaluate(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    app: &Bound<'_, PyAny>,
    hosts: BTreeMap<String, String>,
    remaining: Option<Vec<Vec<Vec<f64>>>>,
    square: Option<String>,
    data: Option<PathBuf>,
    pause_s: f64,
    state: Option<u64>,
    margin: f64,
    telemetry: Option<&Bound<'_, PyAny>>,
    cross_traffic: Option<&Bound<'_, PyAny>>,
    exclude: Vec<String>,
    tags: Vec<String>,
    labels: BTreeMap<String, Vec<String>>,
    apart: Option<&str>,
    seed: u64,
    clock: Option<(f64, f64)>,
    own: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let cluster = &cluster.get().inner;
    let app = Document::of(app)?;
    let (telemetry, cross_traffic) = (LinkRows::of_option(telemetry)?, LinkRows::of_option(cross_traffic)?);
    let raised = Raised::default();
    let (policies, label) =
        registered_or_own(py, policy, own.as_ref(), Placed::Tasks, seed, &cluster.fabric, &raised)?;
    let apart = apart::level(apart).map_err(PyInputError)?;
    let worth = Worth { pause: Nanos::from_secs_f64(pause_s), state: state.map(Bytes), margin };
    let decide = move || -> Result<Value, InputError> {
        let files = Files { base: PathBuf::new(), data };
        let fabric = &cluster.fabric;
        let mut app = read_app(&app, files.data.clone())?;
        constrain(&mut app, fabric, &exclude, &tags)?;
        app.request.constraints.require_labels(fabric, &labels)?;
        app.request.constraints.apart = apart;
        let current = current_hosts(fabric, &app, &hosts)?;
        let (mut ledger, start) = ledger(cluster, None, None, None)?;
        set_cross_traffic(&mut ledger, cross_traffic.as_ref(), start)?;
        let mut engine = Engine::new(ledger, policies, seed, Explain::Off);
        let terms = GivenTerms { started: start, seen: false, compare: false };
        let given = engine.check_given_app(start, &app.request, &current, terms);
        engine.commit_given_app(&app.request, given.decision);
        // The app runs already, so the loads of the file include its traffic.
        let mut now = start;
        if let Some(rows) = &telemetry {
            let interval = LedgerSettings::default().interval;
            let (samples, until) = rows.samples(fabric, interval, clock.map(to_clock))?;
            engine.report(until, &samples, &mut Vec::new());
            now = until;
        }
        if let Some(phases) = &remaining {
            app.set_matrices(phases)?;
        } else if let Some(square) = &square {
            app.set_matrix_file(square, &files)?;
        }
        let alternative = engine.consider_again(now, &app.request, &worth);
        let alternative = alternative.map(|alternative| alternative.expect("the app was committed above"));
        let names = app.names.iter().map(String::as_str);
        let mut record = json!(ReevaluationRecord::of(fabric, names, &current, &alternative, margin));
        (record["app"], record["policy"]) = (json!(app.name), json!(label));
        Ok(record)
    };
    let decided = py.detach(decide);
    if let Some(error) = raised.take() {
        return Err(error);
    }
    as_python(py, &decided.map_err(PyInputError)?)
}

/// Current host of each task.
fn current_hosts(
    fabric: &Fabric,
    app: &App,
    hosts: &BTreeMap<String, String>,
) -> Result<Vec<HostId>, InputError> {
    let invalid = |message: String| InputError::new("request", message).in_field("where");
    if let Some(unknown) = hosts.keys().find(|name| !app.names.contains(name)) {
        return Err(invalid(format!("the app has no task `{}`", excerpt(unknown))));
    }
    let host = |task: &String| {
        let name = hosts.get(task).ok_or_else(|| invalid(format!("no host for the task `{task}`")))?;
        let unknown = || invalid(format!("task `{task}`: no host is named `{}`", excerpt(name)));
        fabric.host(name).ok_or_else(unknown)
    };
    app.names.iter().map(host).collect()
}
