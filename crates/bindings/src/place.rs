//! `place_replicas`: one decision on a telemetry file.

use std::collections::BTreeMap;

use leeward_engine::{CommittedDecision, Engine, Input, Output, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Fabric, Nanos};
use leeward_ledger::{Clock, Ledger, LedgerSettings};
use leeward_placement::replicas::{Chain, Coding, ReplicaRequest, ReplicasSpec};
use leeward_placement::{Decision, Explain, Note, Reason, Refusal};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::errors::{PyInputError, Raised};
use crate::link_rows::LinkRows;
use crate::policy::{Placed, registered_or_own};
use crate::simulation::as_python;

/// Places the replicas of one block. Links missing from the telemetry, a file or a table, are unknown. `own` starts a policy
/// of the user, whose name `policy` is then.
#[pyfunction]
#[pyo3(signature = (cluster, policy, size, telemetry = None, writer = None, replicas = None, coding = None,
    fault_domains = None, exclude = vec![], tags = vec![], collocate = vec![], max_imbalance = None, existing = vec![], prefer = vec![],
    storage = None, labels = BTreeMap::new(), seed = 1, explain = 0, clock = None, own = None))]
#[expect(clippy::too_many_arguments, reason = "these are the fields of a request, named on the Python side")]
pub fn place_replicas(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    size: &str,
    telemetry: Option<&Bound<'_, PyAny>>,
    writer: Option<&str>,
    replicas: Option<u8>,
    coding: Option<&str>,
    fault_domains: Option<u8>,
    exclude: Vec<String>,
    tags: Vec<String>,
    collocate: Vec<String>,
    max_imbalance: Option<f64>,
    existing: Vec<String>,
    prefer: Vec<String>,
    storage: Option<String>,
    labels: BTreeMap<String, Vec<String>>,
    seed: u64,
    explain: u16,
    clock: Option<(f64, f64)>,
    own: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let cluster = &cluster.get().inner;
    let fabric = &cluster.fabric;
    let invalid =
        |field: &str, message: String| PyInputError(InputError::new("request", message).in_field(field));
    let telemetry = LinkRows::of_option(telemetry)?;
    let raised = Raised::default();
    let (policies, label) =
        registered_or_own(py, policy, own.as_ref(), Placed::Replicas, seed, fabric, &raised)?;
    let size: Bytes = size.parse().map_err(|e| invalid("size", format!("{e}")))?;
    let coding: Option<Coding> =
        coding.map(|text| text.parse().map_err(|e| invalid("coding", e))).transpose()?;
    let missing = coding.map(|coding| coding.missing(existing.len()));
    if missing.is_some() && replicas.is_some() {
        let message = "give `replicas` or `coding`, not both";
        return Err(invalid("replicas", message.to_owned()).into());
    }
    let request = ReplicasSpec {
        writer: writer.map(str::to_owned),
        replicas: missing.or(replicas).unwrap_or(3),
        coding,
        fault_domains,
        exclude,
        tags,
        collocate,
        max_imbalance,
        existing,
        prefer,
        storage,
        labels,
        ..ReplicasSpec::new(size)
    };
    let request = request.request(fabric, 0).map_err(PyInputError)?;
    // Data of a file does not age while a policy waits.
    let settings = LedgerSettings { unknown_after: 1e9, ..LedgerSettings::default() };
    let interval = settings.interval;
    let ledger = Ledger::of_cluster(cluster, settings);
    let ledger = ledger.map_err(|e| invalid("ledger", e.to_string()))?;
    let explain = if explain == u16::MAX { Explain::All } else { Explain::Top(explain) };
    let mut engine = Engine::new(ledger, policies, seed, explain);
    let answer = py.detach(|| decide(&mut engine, telemetry, clock, interval, request));
    if let Some(error) = raised.take() {
        return Err(error);
    }
    as_python(py, &describe(fabric, &label, answer.map_err(PyInputError)?))
}

/// Clock from Python: seconds since 1970, and the maximum age of telemetry.
pub fn to_clock((now, max_age): (f64, f64)) -> Clock {
    Clock { now, max_age }
}

/// Decides on the request, with the loads of telemetry.
fn decide(
    engine: &mut Engine,
    telemetry: Option<LinkRows>,
    clock: Option<(f64, f64)>,
    interval: Nanos,
    request: ReplicaRequest,
) -> Result<Result<CommittedDecision<Chain>, Refusal>, InputError> {
    let fabric = engine.ledger().fabric().clone();
    let mut outputs = Vec::new();
    let mut now = Nanos(0);
    if let Some(rows) = telemetry {
        let (samples, until) = rows.samples(&fabric, interval, clock.map(to_clock))?;
        now = until;
        engine.report(now, &samples, &mut outputs);
    }
    let request = engine.with_source(now, request);
    if let Some(answer) = engine.place_replicas(now, 0, request, Ruling::default(), &mut outputs) {
        return Ok(answer);
    }
    // A policy that collects requests decides at the end of its interval.
    while let Some(at) = next_wake(&outputs) {
        outputs.retain(|output| !matches!(output, Output::WakeAt(_)));
        engine.handle(at, Input::Wake, &mut outputs);
    }
    let answer = outputs.into_iter().find_map(|output| match output {
        Output::ReplicasPlaced(_, answer) => Some(answer),
        _ => None,
    });
    Ok(answer.expect("the engine answers at once or after a wake"))
}

/// Next wake time of the engine; `None` once the request is answered.
fn next_wake(outputs: &[Output]) -> Option<Nanos> {
    let answered = outputs.iter().any(|output| matches!(output, Output::ReplicasPlaced(..)));
    let wake = outputs.iter().rev().find_map(|output| match output {
        Output::WakeAt(at) => Some(*at),
        _ => None,
    });
    wake.filter(|_| !answered)
}

pub fn describe(fabric: &Fabric, policy: &str, answer: Result<CommittedDecision<Chain>, Refusal>) -> Value {
    match answer {
        Ok(CommittedDecision { decision: Decision { choice, basis, why, .. }, .. }) => json!({
            "policy": policy,
            "hosts": choice.iter().map(|&host| fabric.host_name(host)).collect::<Vec<_>>(),
            "source": basis.source.map(|host| fabric.host_name(host)),
            "refused": null,
            "oldest_telemetry_s": basis.oldest.map(Nanos::as_secs_f64),
            "note": basis.note.map(Note::text),
            "why": why.iter().map(|considered| Reason::of(fabric, considered)).collect::<Vec<_>>(),
        }),
        Err(refusal) => json!({
            "policy": policy,
            "hosts": null,
            "source": null,
            "refused": refusal.to_string(),
            "oldest_telemetry_s": null,
            "note": null,
            "why": [],
        }),
    }
}
