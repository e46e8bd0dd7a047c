//! A checked scenario of the packet simulator, and its run.

mod circuits;
mod settings;

use leeward_circuits::{Day, DemandMatrix, Matching, Network, Schedule, Scheduler, check};
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text, read_yaml};

use self::circuits::Circuits;
use super::file::{DfsioFile, NetworkFile, PacketsFile, WorkloadFile};
use super::placer::Placer;
use super::records::Records;
use super::settings::{Plan, Settings};
use super::simulator::{Simulator, SimulatorError};
use super::workload::{Workload, WorkloadError};

/// Number of progress reports of a run.
const STEPS: u64 = 200;
/// Largest number of hosts.
const MOST_HOSTS: usize = 1 << 17;

/// A checked scenario, ready to run.
pub struct Scenario {
    settings: Settings,
    circuits: Circuits,
    workload: Workload,
    copies: Option<Copies>,
    horizon: Nanos,
}

/// Settings of the policy that places copies of blocks.
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

/// Outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Records of the run.
    pub records: Records,
    /// End of the run: arrival of the workload's last byte, abandonment of the last flow, or the horizon.
    pub ended: Nanos,
    /// Bytes in the switch at the end.
    pub bytes_in_switch: u64,
}

/// Error of a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The simulator failed.
    #[error(transparent)]
    Simulator(#[from] SimulatorError),
    /// The placement policy of copies is invalid.
    #[error(transparent)]
    Copies(#[from] InputError),
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or for its first invalid field.
    pub fn from_file(path: &str) -> Result<Scenario, InputError> {
        Scenario::from_text(path, &read_text(path)?)
    }

    /// Reads a scenario from text; errors refer to it as `name`.
    ///
    /// # Errors
    /// Returns an error for the first invalid field.
    pub fn from_text(name: &str, text: &str) -> Result<Scenario, InputError> {
        Scenario::new(&read_yaml(name, text)?).map_err(|error| InputError { file: name.to_owned(), ..error })
    }

    /// Reads a scenario like [`Scenario::from_text`], but `scheduler` computes the schedule of circuits in
    /// place of the text's scheduler.
    ///
    /// # Errors
    /// Returns an error for the first invalid field.
    pub fn from_text_by(
        name: &str,
        text: &str,
        scheduler: Box<dyn Scheduler>,
    ) -> Result<Scenario, InputError> {
        let scenario = Scenario::with_scheduler(&read_yaml(name, text)?, Some(scheduler));
        scenario.map_err(|error| InputError { file: name.to_owned(), ..error })
    }

    /// Checks the contents of a file.
    ///
    /// # Errors
    /// Returns an error for the first invalid field.
    pub fn new(file: &PacketsFile) -> Result<Scenario, InputError> {
        Scenario::with_scheduler(file, None)
    }

    fn with_scheduler(
        file: &PacketsFile,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Result<Scenario, InputError> {
        let invalid =
            |field: &str, message: String| Err(InputError::new("scenario", message).in_field(field));
        if file.horizon == Nanos(0) {
            return invalid("horizon", "0s: must be above 0".to_owned());
        }
        let settings = settings::of(file)?;
        let hosts = file.network.racks.saturating_mul(file.network.hosts_per_rack);
        if hosts > MOST_HOSTS {
            return invalid(
                "network.hosts_per_rack",
                format!("{hosts} hosts in all: must be at most {MOST_HOSTS}"),
            );
        }
        let circuits = circuits::of(file, scheduler)?;
        let (racks, hosts) = (file.network.racks as u32, file.network.hosts_per_rack as u32);
        let invalid_workload =
            |error: WorkloadError, field: String| InputError::new("scenario", error).in_field(field);
        let mut workload = match &file.workload {
            Some(traffic) => traffic
                .workload(racks, hosts, file.horizon, file.seed)
                .map_err(|error| invalid_workload(error, format!("workload.{}", traffic.name())))?,
            None if file.trains.is_empty() => {
                return invalid("workload", "none, and no `trains`: expected one of them".to_owned());
            }
            None => Workload::new(racks, hosts),
        };
        for (number, train) in file.trains.iter().enumerate() {
            let added = workload.add_train(train.train());
            added.map_err(|error| invalid_workload(error, format!("trains[{number}]")))?;
        }
        let copies = match &file.workload {
            Some(WorkloadFile::Dfsio(dfsio)) => Some(Copies {
                dfsio: dfsio.clone(),
                network: file.network.clone(),
                circuits: file.scheduler.is_some(),
                seed: file.seed,
            }),
            _ => None,
        };
        // This check creates the placer once, so that a run can create it again without an error.
        if let Some(Err(error)) = copies.as_ref().map(Copies::placer) {
            return invalid("workload.dfsio.copies", error.to_string());
        }
        Ok(Scenario { settings, circuits, workload, copies, horizon: file.horizon })
    }

    /// Settings of the simulator.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Longest duration of a run.
    pub fn horizon(&self) -> Nanos {
        self.horizon
    }

    /// Flows of the workload, and their pieces.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Plan of circuits.
    pub fn plan(&self) -> Plan<'_> {
        match &self.circuits {
            Circuits::None => Plan::Packets,
            Circuits::Fixed(schedule, routes) => Plan::Routed(schedule.clone(), routes.clone()),
            Circuits::Weekly { demand, ahead, network, scheduler } => Plan::Weekly {
                demand: *demand,
                ahead: *ahead,
                planner: Box::new(|bytes| self.week(bytes, network, &**scheduler)),
            },
        }
    }

    /// Policy that places copies of blocks, if the workload has files.
    ///
    /// # Errors
    /// Returns an error if the policy is invalid; reading the scenario has already checked it.
    pub fn placer(&self) -> Result<Option<Placer>, InputError> {
        self.copies.as_ref().map(Copies::placer).transpose()
    }

    /// Runs the scenario. `progress` receives the elapsed share of the horizon and returns false to stop the
    /// run.
    ///
    /// # Errors
    /// Returns an error if a schedule or a placement fails, or if `progress` stopped the run.
    pub fn run(&self, progress: &dyn Fn(f64) -> bool) -> Result<Outcome, ScenarioError> {
        let mut simulator = Simulator::new(self.settings.clone(), self.plan(), self.workload.clone())?;
        if let Some(placer) = self.placer()? {
            simulator = simulator.with_placer(placer);
        }
        for step in 1..=STEPS {
            let until = u128::from(self.horizon.0) * u128::from(step) / u128::from(STEPS);
            let is_over = simulator.run_to_end(Nanos(until as u64))?;
            if !progress(step as f64 / STEPS as f64) {
                return Err(ScenarioError::Stopped);
            }
            if is_over {
                break;
            }
        }
        let (ended, bytes_in_switch) = (simulator.now(), simulator.in_switch());
        Ok(Outcome { records: simulator.records().clone(), ended, bytes_in_switch })
    }

    /// Computes the week of a demand. Without demand, the week is one day without circuits.
    fn week(&self, bytes: &[u64], network: &Network, scheduler: &dyn Scheduler) -> Result<Schedule, String> {
        let racks = self.settings.switch.racks;
        let demand = DemandMatrix::new(racks, bytes.to_vec()).map_err(|error| error.to_string())?;
        let schedule = scheduler.schedule(&demand, network).map_err(|error| error.to_string())?;
        if !schedule.days().is_empty() {
            check(&schedule, racks, network, scheduler.guarantees()).map_err(|error| error.to_string())?;
            return Ok(schedule);
        }
        let matching = Matching::new(vec![None; racks]).map_err(|error| error.to_string())?;
        let length = network.week().since(network.night());
        Schedule::new(racks, network.night(), vec![Day { matching, length }])
            .map_err(|error| error.to_string())
    }
}
