//! A checked scenario, and its runs.

use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, read_text, read_yaml};
use leeward_fabric::{Cluster, Nanos};
use leeward_workloads::{Share, Writers};

use crate::arrivals::{self, Arrival};
use crate::background::Levels;
use crate::controller::Controller;
use crate::file::{AbsenceFile, BackgroundFile, CellsFile, ExchangeFile};
use crate::geometry::Geometry;
use crate::network;
use crate::plan::{Absence, Arm, Exchange, Plan};
use crate::records::RunRecord;
use crate::simulation::Simulation;

/// Longest run: a day.
const LONGEST: Nanos = Nanos(86_400 * Nanos::SECOND.0);
/// Largest number of runs.
const MOST_ARMS: usize = 1000;
/// Largest number of telemetry windows of a run, and of digests of a cell.
const MOST_STEPS: u64 = 1_000_000;
/// Largest number of absences.
const MOST_ABSENCES: usize = 10_000;
/// Number of progress reports of a run.
const STEPS: u64 = 100;

/// A checked scenario, ready to run.
#[derive(Clone)]
pub struct Scenario {
    name: String,
    plan: Plan,
}

/// Blocks that arrive in each run of a scenario.
#[derive(Clone, Debug)]
pub struct Work {
    arrivals: Vec<Arrival>,
}

impl Work {
    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.arrivals.len()
    }
}

/// Error that ends a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// The work cannot be drawn, or a controller cannot be made.
    #[error(transparent)]
    Invalid(#[from] InputError),
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}

/// Creates an error about a field of the scenario.
fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("cells", message).in_field(field)
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or for the first invalid field.
    pub fn from_file(path: &str) -> Result<Scenario, InputError> {
        let base = Path::new(path).parent().unwrap_or(Path::new(""));
        Scenario::from_text(path, &read_text(path)?, base)
    }

    /// Reads a scenario from text; `file` names it in errors, and the cluster's file is relative to `base`.
    ///
    /// # Errors
    /// Returns an error if the cluster's file cannot be read, or for the first invalid field.
    pub fn from_text(file: &str, text: &str, base: &Path) -> Result<Scenario, InputError> {
        let read: CellsFile = read_yaml(file, text)?;
        let fields = network::fields(&read.cluster, file, base)?;
        let named = |error: InputError| InputError { file: file.to_owned(), ..error };
        let geometry = network::geometry(&fields, read.cells).map_err(named)?;
        let cell = network::cluster(&fields, &geometry, 1).map_err(named)?;
        let plan = plan(&read, geometry, cell).map_err(named)?;
        let name = read.name.unwrap_or_else(|| "cells".to_owned());
        Ok(Scenario { name, plan: Plan { fields, ..plan } })
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers of cells, pods, racks and hosts.
    pub fn geometry(&self) -> Geometry {
        self.plan.geometry
    }

    /// Runs of the scenario, in order: one ledger, and then cells.
    pub fn arms(&self) -> &[Arm] {
        &self.plan.arms
    }

    /// Length of a run.
    pub fn horizon(&self) -> Nanos {
        self.plan.horizon
    }

    /// Makes all runs, one after another. `progress` receives the completed share and returns false to stop.
    ///
    /// # Errors
    /// Returns an error if the work cannot be drawn, or if `progress` stopped the runs.
    pub fn run(&self, progress: &dyn Fn(f64) -> bool) -> Result<Vec<RunRecord>, RunError> {
        let work = self.draw()?;
        let arms = self.plan.arms.len() as f64;
        let each = |(number, &arm): (usize, &Arm)| {
            self.run_arm(&work, arm, &|share| progress((number as f64 + share) / arms))
        };
        self.plan.arms.iter().enumerate().map(each).collect()
    }

    /// Draws the blocks that arrive in each run.
    ///
    /// # Errors
    /// Returns an error for invalid settings of the generator, or for too many blocks.
    pub fn draw(&self) -> Result<Work, InputError> {
        Ok(Work { arrivals: arrivals::draw(&self.plan)? })
    }

    /// Makes one run with blocks that this scenario drew. `progress` receives the completed share and returns false to
    /// stop.
    ///
    /// # Errors
    /// Returns an error if a controller cannot be made, or if `progress` stopped the run.
    pub fn run_arm(
        &self,
        work: &Work,
        arm: Arm,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<RunRecord, RunError> {
        let mut simulation = Simulation::new(&self.plan, arm, &work.arrivals)?;
        for step in 1..=STEPS {
            let until = u128::from(self.plan.horizon.0) * u128::from(step) / u128::from(STEPS);
            simulation.run(Nanos(until as u64));
            if !progress(step as f64 / STEPS as f64) {
                return Err(RunError::Stopped);
            }
        }
        Ok(simulation.finish())
    }
}

/// Checks the contents of a file, except the fields of the cluster.
fn plan(file: &CellsFile, geometry: Geometry, cell: Cluster) -> Result<Plan, InputError> {
    check_times(file)?;
    check_writes(file)?;
    if file.elsewhere.get() + file.anywhere.get() > 1.0 {
        let sum = file.elsewhere.get() + file.anywhere.get();
        return Err(invalid("anywhere", format!("{sum} together with `elsewhere`: expected at most 1")));
    }
    let fabric = &cell.fabric;
    let devices = fabric.all_hosts().flat_map(|host| fabric.devices(host));
    let fastest = devices.map(|device| 8e9 / device.write_ns_per_byte).fold(0.0, f64::max);
    let rate_bps = match file.rate {
        Some(rate) => rate.0,
        None if fastest > 0.0 => fastest as u64,
        None => {
            let message = "missing; expected for example 2Gbps, because the cluster has no devices";
            return Err(invalid("rate", message));
        }
    };
    if rate_bps == 0 {
        return Err(invalid("rate", "0bps: must be positive"));
    }
    let plan = Plan {
        geometry,
        fields: serde_json::Map::new(),
        cell: Arc::new(cell),
        policy: file.policy.clone(),
        ledger: file.ledger.clone(),
        choice: file.choice,
        margin: file.margin.get(),
        writes: file.writes.clone(),
        rate_bps,
        elsewhere: file.elsewhere.get(),
        anywhere: file.anywhere.get(),
        background: levels(&file.background, file.ledger.interval)?,
        exchange: exchange(&file.exchange)?,
        absences: absences(file, &geometry)?,
        arms: arms(file)?,
        horizon: file.horizon,
        warmup: file.warmup,
        seed: file.seed,
    };
    // Names and settings of the policy, and settings of the ledger.
    Controller::new(&plan, &plan.cell, (0, 1))?;
    Ok(plan)
}

/// Checks the times of a run.
fn check_times(file: &CellsFile) -> Result<(), InputError> {
    let interval = file.ledger.interval;
    if interval == Nanos(0) {
        return Err(invalid("ledger.interval", "0s: must be positive"));
    }
    if file.horizon <= interval || file.horizon > LONGEST {
        let message =
            format!("{}: expected more than the interval of {interval}, up to {LONGEST}", file.horizon);
        return Err(invalid("horizon", message));
    }
    if file.warmup >= file.horizon {
        let message = format!("{}: expected less than the horizon of {}", file.warmup, file.horizon);
        return Err(invalid("warmup", message));
    }
    let shortest = file.exchange.intervals.iter().filter(|&&interval| interval > Nanos(0)).min();
    for (field, step) in [("ledger.interval", Some(&interval)), ("exchange.intervals", shortest)] {
        let steps = step.map_or(0, |step| file.horizon.0 / step.0);
        if steps > MOST_STEPS {
            return Err(invalid(field, format!("{steps} in a run: expected at most {MOST_STEPS}")));
        }
    }
    Ok(())
}

/// Checks that the generator draws whole copies of files.
fn check_writes(file: &CellsFile) -> Result<(), InputError> {
    if file.writes.coding.is_some() {
        return Err(invalid("writes.coding", "chunks of codes are not simulated; leave it out"));
    }
    if file.writes.phases.is_some() {
        return Err(invalid("writes.phases", "shuffles are not simulated; leave it out"));
    }
    if file.writes.writers == Writers::None {
        return Err(invalid("writes.writers", "`none`: nothing would be placed"));
    }
    Ok(())
}

fn levels(file: &BackgroundFile, interval: Nanos) -> Result<Levels, InputError> {
    let spread = [("racks", file.racks), ("pods", file.pods), ("cells", file.cells)];
    for (field, spread) in spread {
        if spread.get() > 3.0 {
            let message = format!("{}: expected at most 3", spread.get());
            return Err(invalid(&format!("background.{field}"), message));
        }
    }
    if file.period == Nanos(0) {
        return Err(invalid("background.period", "0s: must be positive"));
    }
    Ok(Levels {
        mean: file.mean.get(),
        ceiling: file.ceiling.get(),
        core: file.core.get(),
        spread: spread.map(|(_, spread)| spread.get()),
        steps: (file.period.0 / interval.0).max(1),
    })
}

fn exchange(file: &ExchangeFile) -> Result<Exchange, InputError> {
    let invalid = |field: &str, message: String| Err(invalid(&format!("exchange.{field}"), message));
    if !(file.unknown_after.is_finite() && file.unknown_after >= 1.0) {
        return invalid("unknown_after", format!("{}: expected at least 1", file.unknown_after));
    }
    for (field, count) in [("repeats", file.repeats), ("tries", file.tries)] {
        if !(1..=100).contains(&count) {
            return invalid(field, format!("{count}: expected 1 to 100"));
        }
    }
    for (field, time) in [("timeout", file.timeout), ("lease", file.lease)] {
        if time == Nanos(0) || time > LONGEST {
            return invalid(field, format!("{time}: expected above 0s, up to {LONGEST}"));
        }
    }
    for (field, time) in [("delay", file.delay), ("jitter", file.jitter)] {
        if time > LONGEST {
            return invalid(field, format!("{time}: expected at most {LONGEST}"));
        }
    }
    Ok(Exchange {
        delay: file.delay,
        jitter: file.jitter,
        answers_carry_state: file.answers_carry_state,
        unknown_after: file.unknown_after,
        timeout: file.timeout,
        repeats: file.repeats,
        tries: file.tries,
        lease: file.lease,
    })
}

fn absences(file: &CellsFile, geometry: &Geometry) -> Result<Vec<Absence>, InputError> {
    if file.absent.len() > MOST_ABSENCES {
        return Err(invalid("absent", format!("{}: expected at most {MOST_ABSENCES}", file.absent.len())));
    }
    let mut absences = Vec::new();
    for (number, &AbsenceFile { cell, from, until }) in file.absent.iter().enumerate() {
        let field = |name: &str| format!("absent[{number}].{name}");
        if cell >= geometry.cells {
            let message = format!("{cell}: expected a number below the {} cells", geometry.cells);
            return Err(invalid(&field("cell"), message));
        }
        if until <= from {
            return Err(invalid(&field("until"), format!("{until}: expected a time after {from}")));
        }
        absences.push(Absence { cell, from, until });
    }
    absences.sort_by_key(|absence| (absence.cell, absence.from));
    let overlap =
        absences.windows(2).find(|pair| pair[0].cell == pair[1].cell && pair[1].from < pair[0].until);
    match overlap {
        Some(pair) => {
            let message = format!("cell {} is away twice at {}", pair[1].cell, pair[1].from);
            Err(invalid("absent", message))
        }
        None => Ok(absences),
    }
}

/// One ledger, and cells for each interval and each loss; all of the latter again with absences, if there are any.
fn arms(file: &CellsFile) -> Result<Vec<Arm>, InputError> {
    let ExchangeFile { intervals, losses, .. } = &file.exchange;
    for (field, count) in [("intervals", intervals.len()), ("losses", losses.len())] {
        if count == 0 {
            return Err(invalid(&format!("exchange.{field}"), "an empty list; expected at least one"));
        }
    }
    let absent: &[bool] = if file.absent.is_empty() { &[false] } else { &[false, true] };
    let count = intervals.len().saturating_mul(losses.len()).saturating_mul(absent.len());
    if count >= MOST_ARMS {
        return Err(invalid("exchange", format!("{count} runs of cells: expected less than {MOST_ARMS}")));
    }
    let mut arms = vec![Arm::OneLedger];
    for &absent in absent {
        for &interval in intervals {
            arms.extend(losses.iter().copied().map(Share::get).map(|loss| Arm::Cells {
                interval,
                loss,
                absent,
            }));
        }
    }
    Ok(arms)
}
