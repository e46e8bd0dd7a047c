//! Circuits of a scenario file.

use std::sync::Arc;

use leeward_circuits::routing::{self, Routes};
use leeward_circuits::schedulers::{self, fixed_schedule};
use leeward_circuits::{CircuitsError, DemandMatrix, Network, Schedule, Scheduler, check};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::PolicySpec;

use crate::file::{PacketsFile, SchedulerFile};
use crate::settings::Demand;

/// Default routing.
const DIRECT: &str = "direct";

/// Plan of circuits.
pub(super) enum Circuits {
    None,
    /// A week that repeats, with the routes of packets over it.
    Fixed(Schedule, Arc<Routes>),
    /// A new week each time, computed from the demand.
    Weekly {
        demand: Demand,
        ahead: Nanos,
        network: Network,
        scheduler: Box<dyn Scheduler>,
    },
}

fn invalid(field: &str, message: impl Into<String>) -> InputError {
    InputError::new("scenario", message.into()).in_field(field)
}

/// Returns the circuits of a file, by `scheduler` if given, else by the scheduler of the file.
pub(super) fn of(file: &PacketsFile, scheduler: Option<Box<dyn Scheduler>>) -> Result<Circuits, InputError> {
    match (&file.scheduler, &file.routing) {
        (None, Some(routing)) => {
            Err(invalid("routing", format!("`{}` routes over circuits: expected `scheduler`", routing.name)))
        }
        (None, _) if !file.network.packet_switch => {
            let message = "false: no packet could be delivered without circuits: expected `scheduler`";
            Err(invalid("network.packet_switch", message))
        }
        (None, _) => Ok(Circuits::None),
        (Some(settings), _) => match (&settings.name, &settings.days) {
            (Some(_), Some(_)) => {
                Err(invalid("scheduler.days", "given together with `name`: expected one of them"))
            }
            (None, None) => Err(invalid("scheduler", "expected `name` or `days`")),
            (None, Some(_)) => schedule_of_days(settings, file),
            (Some(name), None) => {
                let scheduler = scheduler.map_or_else(|| make_scheduler(name), Ok)?;
                schedule_by(settings, file, name, scheduler)
            }
        },
    }
}

fn make_scheduler(name: &str) -> Result<Box<dyn Scheduler>, InputError> {
    let spec: PolicySpec = name.parse().map_err(|message: String| invalid("scheduler.name", message))?;
    schedulers::REGISTRY
        .make(&spec.name, &spec.settings)
        .map_err(|error| invalid("scheduler.name", error.to_string()))
}

/// Returns the schedule of the days in the file, with unchanged lengths.
fn schedule_of_days(settings: &SchedulerFile, file: &PacketsFile) -> Result<Circuits, InputError> {
    let days = settings.days.as_deref().unwrap_or_default();
    if settings.demand.is_some() {
        return Err(invalid("scheduler.demand", "listed days do not depend on demand: expected no `demand`"));
    }
    if days.is_empty() {
        return Err(invalid("scheduler.days", "empty: expected at least one"));
    }
    let schedule = fixed_schedule(file.network.racks, settings.night, days)
        .map_err(|error| invalid("scheduler.days", error.to_string()))?;
    let network = network(settings, file, schedule.length(), Nanos(0))?;
    let routes = routes(&schedule, &network, file)?;
    Ok(Circuits::Fixed(schedule, Arc::new(routes)))
}

/// Returns the schedule of a scheduler: a repeated schedule, or a new one from the demand each week.
fn schedule_by(
    settings: &SchedulerFile,
    file: &PacketsFile,
    name: &str,
    scheduler: Box<dyn Scheduler>,
) -> Result<Circuits, InputError> {
    let network = network(settings, file, settings.week, settings.min_day)?;
    if let Some(demand) = settings.demand {
        check_weekly(file)?;
        return Ok(Circuits::Weekly { demand: demand.into(), ahead: settings.ahead, network, scheduler });
    }
    let racks = file.network.racks;
    let none = DemandMatrix::new(racks, vec![0; racks * racks])
        .map_err(|error| invalid("network.racks", error.to_string()))?;
    let invalid_schedule = |error: CircuitsError| invalid("scheduler.name", error.to_string());
    let schedule = scheduler.schedule(&none, &network).map_err(invalid_schedule)?;
    if schedule.days().is_empty() {
        let message = format!("`{name}` computes schedules from demand: expected voq, adu, socket or oracle");
        return Err(invalid("scheduler.demand", message));
    }
    check(&schedule, racks, &network, scheduler.guarantees())
        .map_err(|error| invalid("scheduler", error.to_string()))?;
    let routes = routes(&schedule, &network, file)?;
    Ok(Circuits::Fixed(schedule, Arc::new(routes)))
}

/// Returns the network for which the scheduler computes schedules.
fn network(
    settings: &SchedulerFile,
    file: &PacketsFile,
    week: Nanos,
    min_day: Nanos,
) -> Result<Network, InputError> {
    let (circuit, packet) = (file.network.circuit_rate, file.network.packet_rate);
    Network::new(circuit, packet, settings.night, week, min_day)
        .map_err(|error| invalid("scheduler", error.to_string()))
}

/// Rejects settings that need a repeating schedule, if schedules follow the demand.
fn check_weekly(file: &PacketsFile) -> Result<(), InputError> {
    let expected = "expected a schedule that repeats, `scheduler` without `demand`";
    match &file.routing {
        Some(routing) if routing.name != DIRECT => {
            Err(invalid("routing.name", format!("`{}` looks ahead to later days: {expected}", routing.name)))
        }
        _ if !file.network.packet_switch => Err(invalid(
            "network.packet_switch",
            format!("false: pairs without demand have no circuit: {expected}, or a packet switch"),
        )),
        _ => Ok(()),
    }
}

/// Returns the routes of packets over a schedule that repeats.
fn routes(schedule: &Schedule, network: &Network, file: &PacketsFile) -> Result<Routes, InputError> {
    let invalid_name = |message: String| invalid("routing.name", message);
    let name = file.routing.as_ref().map_or(DIRECT, |routing| &routing.name);
    let spec: PolicySpec = name.parse().map_err(invalid_name)?;
    let routing = routing::REGISTRY
        .make(&spec.name, &spec.settings)
        .map_err(|error| invalid_name(error.to_string()))?;
    if spec.name == DIRECT
        && !file.network.packet_switch
        && let Some((source, destination)) = schedule.unlinked()
    {
        let message = format!(
            "false: no day has a circuit from rack {source} to rack {destination}: every pair must have one"
        );
        return Err(invalid("network.packet_switch", message));
    }
    routing.routes(schedule, network).map_err(|error| invalid_name(error.to_string()))
}
