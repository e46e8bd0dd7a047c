//! A scenario of the packet plant: a file that was checked, and its run.

use std::sync::Arc;

use leeward_circuits::routing::{self, Routes};
use leeward_circuits::switch::Resize;
use leeward_circuits::{Day, DemandMatrix, Matching, Network, Schedule, Scheduler, check, schedulers};
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text, read_yaml};

use super::file::{ControlFile, DfsioFile, EceFile, NetworkFile, PacketsFile, SchedulerFile, WorkloadFile};
use super::placer::Placer;
use super::plant::{Plant, PlantError};
use super::records::Records;
use super::settings::{Plan, Settings};
use super::workload::Workload;
use crate::stage::scenario::PolicySpec;

/// How early Etalon's code tells of circuits where queues are not resized.
const EARLY: Nanos = Nanos(600_000);
/// The routing where none is named.
const DIRECT: &str = "direct";
/// A run is told of so many times.
const STEPS: u64 = 200;
/// Hosts, and samples of a run, at most.
const MOST_HOSTS: usize = 1 << 17;
const MOST_SAMPLES: u64 = 20_000_000;

/// A scenario that can be run.
pub struct Scenario {
    settings: Settings,
    circuits: Circuits,
    workload: Workload,
    copies: Option<Copies>,
    horizon: Nanos,
}

/// Who says where copies of blocks go.
struct Copies {
    dfsio: DfsioFile,
    network: NetworkFile,
    circuits: bool,
    seed: u64,
}

impl Copies {
    fn placer(&self) -> Result<Placer, InputError> {
        let DfsioFile { copies, replication, report, .. } = &self.dfsio;
        Placer::new(copies, *replication, *report, &self.network, self.circuits, self.seed)
    }
}

/// What circuits there will be.
enum Circuits {
    None,
    Fixed(Schedule, Arc<Routes>),
    Weekly { file: SchedulerFile, network: Network, scheduler: Box<dyn Scheduler> },
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What was recorded.
    pub records: Records,
    /// When the run was over: at the horizon, or when the last byte had arrived and was acknowledged.
    pub ended: Nanos,
}

/// Why there is no outcome.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The plant could not go on.
    #[error(transparent)]
    Plant(#[from] PlantError),
    /// Nobody can say where copies go.
    #[error(transparent)]
    Copies(#[from] InputError),
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or the first field that is not right.
    pub fn from_file(path: &str) -> Result<Scenario, InputError> {
        Scenario::from_text(path, &read_text(path)?)
    }

    /// Reads a text; `name` is for errors.
    ///
    /// # Errors
    /// The first field that is not right.
    pub fn from_text(name: &str, text: &str) -> Result<Scenario, InputError> {
        Scenario::new(&read_yaml(name, text)?).map_err(|error| InputError { file: name.to_owned(), ..error })
    }

    /// Checks what a file says.
    ///
    /// # Errors
    /// The first field that is not right.
    pub fn new(file: &PacketsFile) -> Result<Scenario, InputError> {
        let wrong = |field: &str, message: String| Err(InputError::new("scenario", message).in_field(field));
        if file.horizon == Nanos(0) {
            return wrong("horizon", "0s: must be above 0".to_owned());
        }
        let settings = settings(file)?;
        let hosts = file.network.racks.saturating_mul(file.network.hosts_per_rack);
        if hosts > MOST_HOSTS {
            return wrong(
                "network.hosts_per_rack",
                format!("{hosts} hosts in all: must be at most {MOST_HOSTS}"),
            );
        }
        if let Some(of) = &file.routing
            && file.scheduler.is_none()
        {
            return wrong("routing", format!("`{}` goes by circuits: expected `scheduler`", of.name));
        }
        let circuits = match &file.scheduler {
            None if !file.network.packet_switch => {
                let message = "false: without circuits, expected `scheduler`, nothing would go anywhere";
                return wrong("network.packet_switch", message.to_owned());
            }
            None => Circuits::None,
            Some(of) => circuits(of, file)?,
        };
        let (racks, hosts) = (file.network.racks as u32, file.network.hosts_per_rack as u32);
        let workload = file.workload.workload(racks, hosts, file.horizon, file.seed);
        let under = format!("workload.{}", file.workload.word());
        let workload = workload.map_err(|error| InputError::new("scenario", error).in_field(under))?;
        let copies = match &file.workload {
            WorkloadFile::Dfsio(of) => Some(Copies {
                dfsio: of.clone(),
                network: file.network.clone(),
                circuits: file.scheduler.is_some(),
                seed: file.seed,
            }),
            _ => None,
        };
        // What a run makes of it again is known to be right.
        if let Some(Err(error)) = copies.as_ref().map(Copies::placer) {
            return wrong("workload.dfsio.copies", error.to_string());
        }
        Ok(Scenario { settings, circuits, workload, copies, horizon: file.horizon })
    }

    /// What it is made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long a run is at most.
    pub fn horizon(&self) -> Nanos {
        self.horizon
    }

    /// Runs it. `goes_on` is told the share of the horizon that is over and says whether to go on.
    ///
    /// # Errors
    /// A schedule that cannot be made, or that the run was stopped.
    pub fn run(&self, goes_on: &dyn Fn(f64) -> bool) -> Result<Outcome, ScenarioError> {
        let plan = match &self.circuits {
            Circuits::None => Plan::Packets,
            Circuits::Fixed(schedule, routes) => Plan::Routed(schedule.clone(), routes.clone()),
            Circuits::Weekly { file, network, scheduler } => Plan::Weekly {
                demand: file.demand.expect("weeks are made of demand").into(),
                ahead: file.ahead,
                planner: Box::new(|bytes| self.week(bytes, network, &**scheduler)),
            },
        };
        let mut plant = Plant::new(self.settings.clone(), plan, self.workload.clone())?;
        if let Some(copies) = &self.copies {
            plant = plant.placing(copies.placer()?);
        }
        let mut ended = self.horizon;
        for step in 1..=STEPS {
            let until = u128::from(self.horizon.0) * u128::from(step) / u128::from(STEPS);
            plant.run(Nanos(until as u64))?;
            if !goes_on(step as f64 / STEPS as f64) {
                return Err(ScenarioError::Stopped);
            }
            if plant.is_finished() {
                ended = Nanos(until as u64);
                break;
            }
        }
        Ok(Outcome { records: plant.records().clone(), ended })
    }

    /// The week of a demand. Without any it is a day of no circuits, as long as the week.
    fn week(&self, bytes: &[u64], network: &Network, scheduler: &dyn Scheduler) -> Result<Schedule, String> {
        let racks = self.settings.switch.racks;
        let made = DemandMatrix::new(racks, bytes.to_vec()).map_err(|error| error.to_string())?;
        let schedule = scheduler.schedule(&made, network).map_err(|error| error.to_string())?;
        if !schedule.days().is_empty() {
            check(&schedule, racks, network, scheduler.promises()).map_err(|error| error.to_string())?;
            return Ok(schedule);
        }
        let matching = Matching::new(vec![None; racks]).map_err(|error| error.to_string())?;
        let length = network.week().since(network.night());
        Schedule::new(racks, network.night(), vec![Day { matching, length }])
            .map_err(|error| error.to_string())
    }
}

/// The plant's settings, checked.
fn settings(file: &PacketsFile) -> Result<Settings, InputError> {
    let wrong = |field: &str, message: String| InputError::new("scenario", message).in_field(field);
    let tcp = file.tcp.settings();
    tcp.check().map_err(|error| wrong("tcp", error.to_string()))?;
    let is_retcp = file.tcp.control == ControlFile::Retcp;
    let of_retcp = [
        ("alpha", file.tcp.alpha.is_some()),
        ("beta", file.tcp.beta.is_some()),
        ("ece", file.tcp.ece.is_some()),
    ];
    if let Some((field, _)) = of_retcp.iter().find(|(_, given)| *given && !is_retcp) {
        return Err(wrong(&format!("tcp.{field}"), "is of `control: retcp` alone".to_owned()));
    }
    let mut switch = file.network.switch();
    if let Some(of) = &file.resize {
        let resize = Resize::new(of.small, of.big, of.tau)
            .map_err(|error| wrong("resize", tail(&error.to_string())))?;
        switch.resize = Some(resize);
    }
    if is_retcp {
        switch.circuit_marks = Some(match file.tcp.ece.unwrap_or(EceFile::AtCircuit) {
            EceFile::AtCircuit => Nanos(0),
            EceFile::TauEarly => file.resize.map_or(EARLY, |resize| resize.tau),
        });
    }
    switch.check().map_err(|error| wrong("network", error.to_string()))?;
    let sampled = file.sample.iter().flat_map(|of| &of.pairs).map(|&[from, to]| (from, to)).collect();
    let settings = Settings {
        switch,
        hosts_per_rack: file.network.hosts_per_rack,
        nic: file.network.nic,
        nic_limit: file.network.nic_limit.map(|bytes| bytes.0),
        give_up: file.give_up,
        local_delay: file.network.local_delay,
        tcp,
        jitter: file.network.jitter,
        seed: file.seed,
        sample_every: file.sample.as_ref().map(|of| of.every),
        sampled,
    };
    if let Some(of) = &file.sample {
        if of.every == Nanos(0) {
            return Err(wrong("sample.every", "0s: must be above 0".to_owned()));
        }
        let count = (file.horizon.0 / of.every.0).saturating_mul(of.pairs.len() as u64);
        if count > MOST_SAMPLES {
            return Err(wrong("sample.every", format!("{count} samples: must be at most {MOST_SAMPLES}")));
        }
    }
    settings.check().map_err(|error| wrong("network", error.to_string()))?;
    Ok(settings)
}

/// What an error says after the name of its field, which the file's field says already.
fn tail(text: &str) -> String {
    text.split_once(": ").map_or(text, |(_, tail)| tail).to_owned()
}

/// Refuses what goes by a schedule that repeats where schedules are made of demand.
fn repeats(file: &PacketsFile) -> Result<(), InputError> {
    let wrong = |field: &str, message: String| InputError::new("scenario", message).in_field(field);
    let expected = "expected a schedule that repeats, `scheduler` without `demand`";
    match &file.routing {
        Some(of) if of.name != DIRECT => {
            Err(wrong("routing.name", format!("`{}` looks ahead to later days: {expected}", of.name)))
        }
        _ if !file.network.packet_switch => Err(wrong(
            "network.packet_switch",
            format!("false: pairs without demand have no circuit: {expected}, or a packet switch"),
        )),
        _ => Ok(()),
    }
}

/// How packets go by a schedule that repeats.
fn routes(schedule: &Schedule, network: &Network, file: &PacketsFile) -> Result<Routes, InputError> {
    let wrong = |message: String| InputError::new("scenario", message).in_field("routing.name");
    let name = file.routing.as_ref().map_or(DIRECT, |of| &of.name);
    let spec: PolicySpec = name.parse().map_err(wrong)?;
    let routing = routing::make(&spec.name, &spec.settings).map_err(|error| wrong(error.to_string()))?;
    if spec.name == DIRECT
        && !file.network.packet_switch
        && let Some((source, destination)) = schedule.unlinked()
    {
        let message = format!(
            "false: no day has a circuit from rack {source} to rack {destination}: every pair must have one"
        );
        return Err(InputError::new("scenario", message).in_field("network.packet_switch"));
    }
    routing.routes(schedule, network).map_err(|error| wrong(error.to_string()))
}

fn circuits(of: &SchedulerFile, file: &PacketsFile) -> Result<Circuits, InputError> {
    let wrong = |field: &str, message: String| InputError::new("scenario", message).in_field(field);
    let spec: PolicySpec = of.name.parse().map_err(|message| wrong("scheduler.name", message))?;
    let refused = |error: leeward_circuits::CircuitsError| wrong("scheduler.name", error.to_string());
    let scheduler = schedulers::make(&spec.name, &spec.settings).map_err(refused)?;
    let (circuit, packet) = (file.network.circuit_rate, file.network.packet_rate);
    let network = Network::new(circuit, packet, of.night, of.week, of.min_day)
        .map_err(|error| wrong("scheduler", error.to_string()))?;
    if of.demand.is_some() {
        repeats(file)?;
        return Ok(Circuits::Weekly { file: of.clone(), network, scheduler });
    }
    let racks = file.network.racks;
    let none = DemandMatrix::new(racks, vec![0; racks * racks])
        .map_err(|error| wrong("network.racks", error.to_string()))?;
    let schedule = scheduler.schedule(&none, &network).map_err(refused)?;
    if schedule.days().is_empty() {
        let message = format!("`{}` makes schedules of demand: expected voq, adu, socket or oracle", of.name);
        return Err(wrong("scheduler.demand", message));
    }
    check(&schedule, racks, &network, scheduler.promises())
        .map_err(|error| wrong("scheduler", error.to_string()))?;
    let routes = routes(&schedule, &network, file)?;
    Ok(Circuits::Fixed(schedule, Arc::new(routes)))
}
