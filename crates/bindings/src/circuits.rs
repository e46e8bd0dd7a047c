//! `leeward.circuits`: schedules of circuits for a demand, and the demand that they serve.

use leeward_circuits::schedulers::{self, FixedDay, fixed_schedule};
use leeward_circuits::{
    CircuitsError, DemandError, DemandMatrix, Evaluation, MAX_RACKS, Network, NetworkError,
};
use leeward_circuits::{Guarantees, Schedule, Scheduler, check, evaluate};
use leeward_fabric::input::{Files, InputError, read_matrix, read_text, read_yaml};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_registry::RegistryError;
use leeward_scenarios::scenario::PolicySpec;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::errors::{PyInputError, Raised};
use crate::simulation::as_python;

/// Reads a demand matrix of bytes without a header: one row per source rack, and one column per destination rack.
#[pyfunction]
pub fn read_demand(py: Python<'_>, path: &str) -> PyResult<Vec<Vec<u64>>> {
    let read = || -> Result<Vec<Vec<u64>>, InputError> {
        let mut lines = Files::default().open(path)?.lines();
        let mut rows: Vec<Vec<f64>> = Vec::new();
        read_matrix(&mut lines, |line, _, column, bytes| {
            if column as usize >= MAX_RACKS {
                return Err(line.error("columns", format!("more than {MAX_RACKS} racks")));
            }
            if column == 0 {
                rows.push(Vec::new());
            }
            rows.last_mut().expect("column 0 comes first").push(bytes);
            Ok(())
        })?;
        whole_bytes(&rows).map_err(|error| InputError::new(path, error))
    };
    Ok(py.detach(read).map_err(PyInputError)?)
}

/// Rounds a demand matrix to whole bytes, and checks the matrix.
#[pyfunction]
pub fn check_demand(rows: Vec<Vec<f64>>) -> PyResult<Vec<Vec<u64>>> {
    Ok(whole_bytes(&rows).map_err(|error| input_error(error.into()))?)
}

/// A valid demand matrix in whole bytes, with its diagonal.
fn whole_bytes(rows: &[Vec<f64>]) -> Result<Vec<Vec<u64>>, DemandError> {
    DemandMatrix::from_rows(rows)?;
    Ok(rows.iter().map(|row| row.iter().map(|bytes| bytes.round() as u64).collect()).collect())
}

/// Computes the schedule of a scheduler for a demand, and the part of the demand that it serves. The scheduler's name
/// may include settings, as in `NAME:SETTING=VALUE`; otherwise `settings` has them as YAML. `network` has rates and
/// times as texts: circuit, packet, night, week, min_day.
#[pyfunction]
#[pyo3(signature = (demand, network, scheduler, settings = None))]
pub fn schedule_circuits(
    py: Python<'_>,
    demand: Vec<Vec<f64>>,
    network: [String; 5],
    scheduler: &str,
    settings: Option<&str>,
) -> PyResult<Py<PyAny>> {
    let spec: PolicySpec =
        scheduler.parse().map_err(|message: String| PyInputError(InputError::new("scheduler", message)))?;
    if settings.is_some() && !spec.settings.is_empty() {
        let message = format!(
            "`{}` has settings already: give settings in the name or as `settings`, not both",
            spec.label
        );
        return Err(PyInputError(InputError::new("settings", message)).into());
    }
    let settings = settings.unwrap_or(&spec.settings);
    let scheduler =
        schedulers::REGISTRY.make(&spec.name, settings).map_err(|error| input_error(error.into()))?;
    let label = if spec.settings.is_empty() { scheduler.name().to_owned() } else { spec.label.clone() };
    let make = |demand: &DemandMatrix, network: &Network| scheduler.schedule(demand, network);
    run_scheduler(py, &demand, &network, scheduler.guarantees(), make, &label)
}

/// Evaluates a user's days: the part of a demand that they serve.
#[pyfunction]
pub fn evaluate_circuits(
    py: Python<'_>,
    demand: Vec<Vec<f64>>,
    network: [String; 5],
    days: UserDays,
    name: &str,
) -> PyResult<Py<PyAny>> {
    let days = fixed_days(days);
    let make =
        |demand: &DemandMatrix, network: &Network| fixed_schedule(demand.racks(), network.night(), &days);
    run_scheduler(py, &demand, &network, Guarantees::default(), make, name)
}

/// Reads the days of a file with `days`, in the form that `evaluate_circuits` takes.
#[pyfunction]
pub fn read_days(py: Python<'_>, path: &str) -> PyResult<UserDays> {
    let read = || -> Result<UserDays, InputError> {
        let file: DaysFile = read_yaml(path, &read_text(path)?)?;
        if file.days.is_empty() {
            return Err(InputError::new(path, "empty: expected at least one").in_field("days"));
        }
        Ok(file.days.into_iter().map(|day| (day.length.0, day.circuits)).collect())
    };
    Ok(py.detach(read).map_err(PyInputError)?)
}

/// Days from a user: for each day, its length in nanoseconds, and its circuits as pairs of source and destination.
type UserDays = Vec<(u64, Vec<[u32; 2]>)>;

/// A file of days.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DaysFile {
    days: Vec<FixedDay>,
}

fn fixed_days(days: UserDays) -> Vec<FixedDay> {
    days.into_iter().map(|(length, circuits)| FixedDay { length: Nanos(length), circuits }).collect()
}

/// A scheduler that a Python function implements. The function takes rows of bytes and the network's texts, and returns
/// days.
pub struct PythonScheduler {
    pub name: String,
    pub call: Py<PyAny>,
    pub raised: Raised,
}

impl PythonScheduler {
    fn days(&self, demand: &DemandMatrix, network: &Network) -> PyResult<UserDays> {
        let rows: Vec<&[u64]> = demand.bytes().chunks(demand.racks()).collect();
        let texts = (
            network.circuit().to_string(),
            network.packet().to_string(),
            network.night().to_string(),
            network.week().to_string(),
            network.min_day().to_string(),
        );
        Python::attach(|py| self.call.call1(py, (rows, texts))?.extract(py))
    }
}

impl Scheduler for PythonScheduler {
    fn name(&self) -> &str {
        &self.name
    }

    /// The days of a user's scheduler may have any length.
    fn guarantees(&self) -> Guarantees {
        Guarantees::default()
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let days = self.days(demand, network).map_err(|error| {
            let problem = error.to_string();
            self.raised.set(error);
            CircuitsError::Unfit { name: self.name.clone(), problem }
        })?;
        fixed_schedule(demand.racks(), network.night(), &fixed_days(days))
    }
}

fn run_scheduler(
    py: Python<'_>,
    demand: &[Vec<f64>],
    network: &[String; 5],
    guarantees: Guarantees,
    make: impl Fn(&DemandMatrix, &Network) -> Result<Schedule, CircuitsError> + Send + Sync,
    label: &str,
) -> PyResult<Py<PyAny>> {
    let value = py.detach(|| -> Result<Value, PyInputError> {
        let demand = DemandMatrix::from_rows(demand).map_err(|error| input_error(error.into()))?;
        let network = read_network(network)?;
        let schedule = make(&demand, &network).map_err(input_error)?;
        let invalid = |error| PyInputError(InputError::new(label, error));
        check(&schedule, demand.racks(), &network, guarantees).map_err(invalid)?;
        let served = evaluate(&schedule, &demand, &network).map_err(invalid)?;
        Ok(describe(label, &schedule, &served, &network, demand.within()))
    })?;
    as_python(py, &value)
}

fn read_network([circuit, packet, night, week, min_day]: &[String; 5]) -> Result<Network, PyInputError> {
    let rate = |name: &str, text: &str| {
        text.parse::<Bandwidth>().map_err(|error| PyInputError(InputError::new(name, error)))
    };
    let time = |name: &str, text: &str| {
        text.parse::<Nanos>().map_err(|error| PyInputError(InputError::new(name, error)))
    };
    let network = Network::new(
        rate("circuit", circuit)?,
        rate("packet", packet)?,
        time("night", night)?,
        time("week", week)?,
        time("min_day", min_day)?,
    );
    network.map_err(|error| input_error(error.into()))
}

/// Converts an error for Python and names the argument and the scheduler's setting.
fn input_error(error: CircuitsError) -> PyInputError {
    let text = error.to_string();
    PyInputError(match error {
        CircuitsError::Demand(error) => {
            let text = error.to_string();
            match (error, text.split_once(": ")) {
                (DemandError::Racks { .. }, _) | (_, None) => InputError::new("demand", text),
                (_, Some((place, message))) => InputError::new("demand", message).in_field(place),
            }
        }
        CircuitsError::Network(error) => {
            let argument = match error {
                NetworkError::Rate { switch, .. } => switch,
                NetworkError::Week { .. } => "week",
                NetworkError::Night { .. } => "night",
                NetworkError::MinDay { .. } => "min_day",
            };
            let text = error.to_string();
            InputError::new(argument, text.split_once(": ").map_or(text.as_str(), |(_, message)| message))
        }
        CircuitsError::Settings(mut error) | CircuitsError::Registry(RegistryError::Settings(mut error)) => {
            if let Some(scheduler) = error.file.strip_prefix("settings of ") {
                error = error.clone().under(scheduler);
                (error.line, error.column) = (None, None);
            }
            error.file = "scheduler".to_owned();
            error
        }
        CircuitsError::Registry(_) | CircuitsError::Unfit { .. } => InputError::new("scheduler", text),
        CircuitsError::Matching { .. } | CircuitsError::Schedule(_) => InputError::new("days", text),
    })
}

fn describe(label: &str, schedule: &Schedule, served: &Evaluation, network: &Network, within: u64) -> Value {
    let seconds = |time: Nanos| time.as_secs_f64();
    let days = served.days.iter().map(|day| {
        let circuits = day.circuits.iter().map(|circuit| {
            json!({
                "source": circuit.source,
                "destination": circuit.destination,
                "bytes": circuit.bytes,
            })
        });
        json!({
            "start_s": seconds(day.start),
            "length_s": seconds(day.length),
            "served_bytes": day.served,
            "circuit_bytes": network.carries(day.length),
            "circuits": circuits.collect::<Vec<_>>(),
        })
    });
    let left = &served.left;
    json!({
        "scheduler": label,
        "racks": schedule.racks(),
        "night_s": seconds(schedule.night()),
        "length_s": seconds(schedule.length()),
        "week_s": seconds(network.week()),
        "within_bytes": within,
        "demand_bytes": served.served + left.total(),
        "served_bytes": served.served,
        "left_bytes": left.total(),
        "packets_take_s": seconds(served.packets_take),
        "pairs": served.pairs,
        "days": days.collect::<Vec<_>>(),
        "left": left.bytes().chunks(left.racks()).collect::<Vec<_>>(),
    })
}
