//! Forms: workloads as the fields of a workload file, before and after their admission.

use std::collections::BTreeSet;

use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError};
use leeward_slo::file::Workloads;
use leeward_traces::Stage;
use serde_json::{Map, Value, json};

use super::{ActiveWorkload, GrantedStage, Rejected, by_stage, is_storage, levels};

/// Fields of a workload as JSON, with the names of a workload file.
pub type Form = Map<String, Value>;

/// Largest form, in bytes; curves and models of three stages take a few thousand.
const LARGEST: usize = 1 << 16;
/// Longest name, in characters.
const LONGEST_NAME: usize = 128;

/// Checks that a form names no other file, and that all fields that the decision sets are empty. A server is allowed
/// only if `placed`.
///
/// # Errors
/// [`InputError`] with the field and the expected value.
pub fn check(form: &Form, placed: bool) -> Result<(), InputError> {
    let invalid = |field: &str, message: &str| Err(InputError::new("workload", message).in_field(field));
    if Value::Object(form.clone()).to_string().len() > LARGEST {
        let message =
            format!("more than {LARGEST} bytes: give curves of fewer buckets, or models of fewer states");
        return Err(InputError::new("workload", message));
    }
    let name = form.get("name").and_then(Value::as_str).unwrap_or_default();
    if !(1..=LONGEST_NAME).contains(&name.len()) {
        return invalid("name", "expected a name of 1 to 128 characters");
    }
    if form.get("trace").is_some_and(|trace| !trace.is_null()) {
        return invalid(
            "trace",
            "files cannot be named here; give `curves`, which `leeward slo curve` computes from a trace",
        );
    }
    for field in ["curves", "model"] {
        if form.get(field).is_some_and(Value::is_string) {
            return invalid(field, "files cannot be named here; give the contents of the file");
        }
    }
    for field in ["priority", "limits"] {
        if form.get(field).is_some_and(|given| !given.is_null()) {
            return invalid(field, "expected none: the decision sets it");
        }
    }
    if form.get("over").is_some_and(|over| !over.is_null() && !holds_on_networks(over)) {
        return invalid(
            "over",
            "expected held, or a handling at storage such as {storage: demoted}: enforcers of networks hold requests",
        );
    }
    if form.get("slo").is_none_or(Value::is_null) {
        return invalid("slo", "missing; best effort needs no promise");
    }
    let server = form.get("server").is_some_and(|server| !server.is_null());
    match (server, placed) {
        (false, true) => invalid("server", "missing; expected the host that has the volume, or its device"),
        (true, false) => invalid("server", "expected none: the decision sets it"),
        _ => Ok(()),
    }
}

/// True if requests over a limit are held on networks, as their enforcers do. The reader of the form checks its names.
fn holds_on_networks(over: &Value) -> bool {
    const HELD: &str = "held";
    match over {
        Value::Object(stages) => {
            let is_held = |(stage, over): (&String, &Value)| {
                Stage::from_name(stage) == Some(Stage::Storage) || over.as_str() == Some(HELD)
            };
            stages.iter().all(is_held)
        }
        over => over.as_str() == Some(HELD),
    }
}

/// Active workloads and the new one, as workload files.
pub(super) struct Read {
    pub residents: Workloads,
    pub arriving: Workloads,
}

/// Reads the active workloads and the new one.
pub(super) fn read(cluster: &Cluster, active: &[ActiveWorkload], form: &Form) -> Result<Read, Rejected> {
    let levels = levels(&cluster.fabric)?;
    let names: BTreeSet<&str> = active.iter().map(|workload| workload.agreed.workload.as_str()).collect();
    let read = |levels: Option<u32>, others: Option<&Workloads>| {
        let mut file = json!({ "workloads": [form] });
        if let Some(levels) = levels {
            file["levels"] = levels.into();
        }
        Workloads::from_json("workload", &file, cluster, others)
    };
    let invalid = |error: InputError| {
        let field = error.field.as_deref().map(|field| field.trim_start_matches("workloads[0].").to_owned());
        Rejected::Invalid(InputError { field, ..error })
    };
    if active.is_empty() {
        let arriving = read(Some(levels), None).map_err(invalid)?;
        let residents = Workloads { entries: Vec::new(), ..arriving.clone() };
        return Ok(Read { residents, arriving });
    }
    let forms = active.iter().map(|workload| form_with_grant(workload, &names)).collect();
    let residents = read_stored("active workloads", forms, levels, cluster).map_err(|error| {
        Rejected::Infeasible(format!("the active workloads do not fit the cluster: {error}"))
    })?;
    let arriving = read(None, Some(&residents)).map_err(invalid)?;
    Ok(Read { residents, arriving })
}

/// Reads stored forms. Earlier versions accepted and stored numbers in quotes, which are numbers in YAML only.
fn read_stored(
    name: &str,
    forms: Vec<Form>,
    levels: u32,
    cluster: &Cluster,
) -> Result<Workloads, InputError> {
    let file = json!({ "workloads": forms, "levels": levels });
    Workloads::from_json(name, &file, cluster, None).or_else(|_| {
        let open = |file: &str| Err(InputError::new(file, "files cannot be named here"));
        Workloads::from_text(name, &file.to_string(), cluster, &Files::default(), &open, None)
    })
}

/// Form of an active workload with its promise. Keeps only dependencies on active workloads.
fn form_with_grant(active: &ActiveWorkload, names: &BTreeSet<&str>) -> Form {
    let (mut form, stages) = (active.form.clone(), &active.agreed.stages);
    form.insert("server".to_owned(), active.agreed.volume.clone().into());
    form.insert("priority".to_owned(), by_stage(|stage| Some(stage.priority.into()), stages));
    let limit = |stage: &GrantedStage| (!stage.own_curve && !stage.queues.is_empty()).then(|| limits(stage));
    form.insert("limits".to_owned(), by_stage(limit, stages));
    if let Some(Value::Array(depends)) = form.get_mut("depends_on") {
        depends.retain(|name| name.as_str().is_some_and(|name| names.contains(name)));
    }
    form
}

/// Limits in the syntax of a file. The values are already whole bytes, nanoseconds and millionths of a device.
fn limits(stage: &GrantedStage) -> Value {
    let bucket = |bucket: &leeward_models::BucketRecord| match is_storage(stage) {
        true => json!({
            "rate": format!("{:.4}%", 100.0 * bucket.rate),
            "burst": format!("{}ns", (1e9 * bucket.burst).round() as u64),
        }),
        false => json!({
            "rate": format!("{}B/s", bucket.rate.round() as u64),
            "burst": format!("{}B", bucket.burst.round() as u64),
        }),
    };
    stage.limits.iter().map(bucket).collect()
}
