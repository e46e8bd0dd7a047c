//! Scenarios: one cluster, its workloads, events, and the policies to compare, ready to run.

mod cell_policies;
mod file;
mod kind;
mod sections;

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use file::{EventFile, HostState, MigrationFile, MovesFile, RepairFile, RepairSource, ScenarioFile};
pub use kind::Kind;
use leeward_fabric::input::{Files, InputError, Spanned, excerpt, read_text, read_yaml};
use leeward_fabric::{Cluster, DomainId, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::LedgerSettings;
pub use leeward_registry::PolicySpec;
pub use leeward_workloads::Tables;
use leeward_workloads::{Faults, HostChoices, Inputs, MOST_RECORDS, Share, Source, Workload};
use sections::{NO_APPS, NO_COPIES, NO_FILES, NO_TASKS, section};

use super::telemetry::Telemetry;

/// Longest run. In longer runs, the simulator's clock is too coarse for nanoseconds.
const LONGEST: Nanos = Nanos(100 * 86_400 * Nanos::SECOND.0);

/// Largest number of reports of one counter in a run.
const MOST_REPORTS: u64 = 100_000_000;

/// A checked scenario, with its files located.
#[derive(Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// The cluster of its file: the true state at the start, and the state that the ledger assumes until it learns of
    /// changes.
    pub cluster: Cluster,
    /// Policies to compare; the first is the baseline.
    pub policies: Vec<PolicySpec>,
    /// Telemetry of the network.
    pub telemetry: Telemetry,
    /// Estimation from telemetry.
    pub ledger: LedgerSettings,
    /// Events, by time.
    pub events: Vec<Event>,
    /// Re-placement of running apps; never if `None`.
    pub migration: Option<MigrationFile>,
    /// Moves of a cell's tasks.
    pub moves: MovesFile,
    /// Number of hosts from which each task that writes a file chooses its own.
    pub writer_choices: u16,
    /// Re-replication of blocks on failed hosts; none if `None`.
    pub repair: Option<RepairFile>,
    /// Fault domains besides the first copy's that must hold a copy.
    pub fault_domains: Option<u8>,
    /// Largest excess of a host's fill over the mean fill, as a share of its storage.
    pub max_imbalance: Option<f64>,
    /// Duration of the run.
    pub horizon: Nanos,
    /// Time from which results count.
    pub warmup: Nanos,
    /// Length of the intervals over which loads are recorded.
    pub sample: Nanos,
    /// Seed of all random draws, unless a run has its own.
    pub seed: u64,
    /// The text of its file.
    pub origin: Origin,
    kind: Kind,
    faults: Option<Faults>,
    sources: Vec<Source>,
    inputs: Inputs,
}

/// The text from which a scenario was read. With the cluster, it makes the same scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Name of the file in errors.
    pub file: String,
    /// Text of the file.
    pub text: String,
    /// Folder of files that the text names.
    pub base: PathBuf,
    /// Folder of traces, for files named `data:...`.
    pub data: Option<PathBuf>,
}

impl Origin {
    fn new(file: &str, text: &str, base: &Path, data: Option<&Path>) -> Origin {
        let (file, text) = (file.to_owned(), text.to_owned());
        Origin { file, text, base: base.to_owned(), data: data.map(Path::to_owned) }
    }
}

/// A scheduled change of the cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Time of the event.
    pub at: Nanos,
    /// The change.
    pub change: Change,
    /// True if the ledger is informed.
    pub announced: bool,
}

/// A change of the cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// A link changes its capacity.
    Capacity(ResourceId, Load),
    /// A host changes state.
    Host(HostId, HostState),
    /// The links and devices of a host are slower by a factor.
    Slowdown(HostId, f64),
    /// All hosts of a rack or pod change state, and its links fail or recover with them.
    Domain(DomainId, HostState),
}

/// Arrivals of one run, and the provenance of each source.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Workload that arrives.
    pub workload: Arc<Workload>,
    /// One line per source: its kind, its counts, and omissions.
    pub provenance: Vec<String>,
}

impl Scenario {
    /// Reads a scenario file. `data` is the folder of traces, for files named `data:...`.
    ///
    /// # Errors
    /// Returns an error if a file is missing or unreadable, or for an invalid field.
    pub fn from_file(path: &str, data: Option<&Path>) -> Result<Scenario, InputError> {
        let base = Path::new(path).parent().unwrap_or(Path::new(""));
        Scenario::from_text(path, &read_text(path)?, base, data)
    }

    /// Reads a scenario from text; `file` names it in errors, other files are relative to `base`.
    ///
    /// # Errors
    /// Returns an error if another file is missing or unreadable, or for an invalid field.
    pub fn from_text(
        file: &str,
        text: &str,
        base: &Path,
        data: Option<&Path>,
    ) -> Result<Scenario, InputError> {
        let read: ScenarioFile = read_yaml(file, text)?;
        let cluster_path = base.join(&read.cluster.value);
        if !cluster_path.is_file() {
            let message = format!("no such file ({})", cluster_path.display());
            return Err(InputError::new(file, message).in_field("cluster").at(&read.cluster));
        }
        let cluster = Cluster::from_file(&cluster_path.to_string_lossy())?;
        Scenario::build(Origin::new(file, text, base, data), read, cluster)
    }

    /// Reads a scenario from text, as [`Scenario::from_text`] does, on this cluster in place of the one that the text names.
    ///
    /// # Errors
    /// As [`Scenario::from_text`].
    pub fn on_cluster(
        file: &str,
        text: &str,
        base: &Path,
        data: Option<&Path>,
        cluster: Cluster,
    ) -> Result<Scenario, InputError> {
        Scenario::build(Origin::new(file, text, base, data), read_yaml(file, text)?, cluster)
    }

    fn build(origin: Origin, read: ScenarioFile, cluster: Cluster) -> Result<Scenario, InputError> {
        let file = origin.file.as_str();
        let error = |field: &str, message: String| InputError::new(file, message).in_field(field);
        if !cluster.cross_traffic.is_empty() {
            let message =
                "`cross_traffic` of the cluster has no effect in a simulation; use a workload instead";
            return Err(error("cluster", message.to_owned()).at(&read.cluster));
        }
        let (horizon, sample, warmup) = (read.horizon.value, read.sample.value, read.warmup.value);
        if horizon.0 == 0 || horizon > LONGEST {
            let message = format!("{horizon}: expected a positive time, up to {LONGEST}");
            return Err(error("horizon", message).at(&read.horizon));
        }
        if sample.0 == 0 || sample > horizon {
            let message = format!("{sample}: expected a positive time, up to the horizon of {horizon}");
            return Err(error("sample", message).at(&read.sample));
        }
        let links = 2 * cluster.fabric.domain_count() as u64;
        if (horizon.0 / sample.0).saturating_mul(links) > MOST_RECORDS as u64 {
            let message = format!(
                "{sample}: the {links} links of racks and pods would have more than {MOST_RECORDS} intervals"
            );
            return Err(error("sample", message).at(&read.sample));
        }
        if warmup >= horizon {
            let message = format!("{warmup}: expected less than the horizon of {horizon}");
            return Err(error("warmup", message).at(&read.warmup));
        }
        let telemetry = &read.telemetry;
        let invalid = |field: &str, message| error(&format!("telemetry.{field}"), message).at(telemetry);
        telemetry.value.check().map_err(|(field, message)| invalid(field, message))?;
        let interval = telemetry.value.interval;
        if horizon.0 / interval.0 > MOST_REPORTS {
            let message = format!("{interval}: more than {MOST_REPORTS} reports in {horizon}");
            return Err(invalid("interval", message));
        }
        let ledger = ledger(&read.ledger.value, &telemetry.value)
            .map_err(|(field, message)| error(&field, message).at(&read.ledger))?;
        let kind = Kind::of(read.workloads.iter().map(|source| &source.value))
            .map_err(|(i, message)| error(&format!("workloads[{i}]"), message).at(&read.workloads[i]))?;
        if let Some(wanted) = &read.fault_domains {
            let (domains, value) = (cluster.fabric.fault_domain_count(), wanted.value);
            if usize::from(value) >= domains {
                let message = format!(
                    "{value} besides the first copy's, but the cluster has only {domains}; `fault_domains: 0` allows all copies in one"
                );
                return Err(error("fault_domains", message).at(wanted));
            }
        } else if kind == Kind::Replicas && cluster.fabric.fault_domain_count() == 1 {
            let message = "the cluster has a single fault domain; `fault_domains: 0` allows all copies in it";
            return Err(error("fault_domains", message.into()));
        }
        if kind != Kind::Replicas && (read.fault_domains.is_some() || read.max_imbalance.is_some()) {
            let field = if read.fault_domains.is_some() { "fault_domains" } else { "max_imbalance" };
            return Err(error(field, NO_COPIES.into()));
        }
        if kind == Kind::Coflows && telemetry.value != Telemetry::default() {
            let message = "nothing is placed by telemetry: all workloads are background with coflows";
            return Err(error("telemetry", message.into()).at(telemetry));
        }
        let writes_files = read.workloads.iter().any(|source| source.value.writes_files());
        let apps = (kind == Kind::Apps, NO_APPS);
        let check_migration = |read: &MigrationFile| read.check(horizon);
        let migration = section(file, "migration", read.migration.as_ref(), apps, check_migration)?;
        let of_cell = (kind == Kind::Cell, NO_TASKS);
        let moves = section(file, "moves", read.moves.as_ref(), of_cell, |_| Ok(()))?.unwrap_or_default();
        let (tasks, copies) = ((writes_files, NO_FILES), (writes_files, NO_COPIES));
        let choices = section(file, "writer_choices", read.writer_choices.as_ref(), tasks, |_| Ok(()))?;
        let faults = section(file, "faults", read.faults.as_ref(), tasks, Faults::check)?;
        let check_repair = |read: &RepairFile| read.check(horizon);
        let repair = section(file, "repair", read.repair.as_ref(), copies, check_repair)?;
        let defaults = kind.default_policies();
        let default_specs = || defaults.iter().map(|name| PolicySpec::named(name)).collect();
        let policies: Vec<PolicySpec> =
            read.policies.as_ref().map_or_else(default_specs, |read| read.value.clone());
        if let Some(read) = &read.policies {
            let invalid = |message: String| Err(error("policies", message).at(read));
            if policies.is_empty() {
                return invalid(format!("an empty list; leave it out for {}", defaults.join(" and ")));
            }
            for (i, policy) in policies.iter().enumerate() {
                if let Err(error) = kind.check(policy) {
                    return invalid(error.to_string());
                }
                if policies[..i].iter().any(|other| other.label == policy.label) {
                    return invalid(format!("`{}` is given twice", policy.label));
                }
            }
        }
        let mut events = Vec::with_capacity(read.events.len());
        for (i, spanned) in read.events.iter().enumerate() {
            let read = event(&cluster, kind, &spanned.value, horizon);
            let invalid = |(field, message): (&str, String)| {
                let path = if field.is_empty() { String::new() } else { format!(".{field}") };
                error(&format!("events[{i}]{path}"), message).at(spanned)
            };
            events.push(read.map_err(invalid)?);
        }
        events.sort_by_key(|event| event.at);
        Ok(Scenario {
            name: read.name.unwrap_or_else(|| stem(file)),
            cluster,
            policies,
            telemetry: read.telemetry.value,
            ledger,
            events,
            migration,
            moves,
            writer_choices: choices.map_or(1, NonZeroU16::get),
            repair,
            faults,
            kind,
            fault_domains: read.fault_domains.map(|wanted| wanted.value),
            max_imbalance: read.max_imbalance.map(Share::get),
            horizon,
            warmup,
            sample,
            seed: read.seed,
            sources: read.workloads.into_iter().map(|spanned: Spanned<Source>| spanned.value).collect(),
            inputs: Inputs {
                files: Files { base: origin.base.clone(), data: origin.data.clone() },
                tables: None,
            },
            origin,
        })
    }

    /// Sets the tables in columns: the reader of Parquet files, and tables in memory.
    pub fn with_tables(self, tables: Arc<dyn Tables>) -> Scenario {
        Scenario { inputs: Inputs { tables: Some(tables), ..self.inputs }, ..self }
    }

    /// Entities that its policies place.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the arrivals under a seed, which are the same for every policy.
    ///
    /// # Errors
    /// Returns an error for a trace with an invalid line, or a source that does not fit the cluster.
    pub fn arrivals(&self, seed: u64) -> Result<Arrivals, InputError> {
        let mut workload = Workload::default();
        let mut provenance = Vec::with_capacity(self.sources.len());
        for (i, source) in self.sources.iter().enumerate() {
            // Each source has its own seed, so that sources draw independently.
            let seed = seed.wrapping_add((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut loaded = source.load(&self.cluster, &self.inputs, seed, self.horizon.as_secs_f64())?;
            let files = &mut loaded.workload.files;
            if !files.is_empty() && (self.faults.is_some() || self.writer_choices > 1) {
                let hosts = source.task_hosts(&self.cluster, seed)?;
                if let Some(faults) = &self.faults {
                    loaded.provenance += &format!("; {}", faults.apply(files, &hosts, seed));
                }
                if self.writer_choices > 1 {
                    let choices = HostChoices::of_source(self.writer_choices, hosts, seed);
                    files.iter_mut().zip(choices).for_each(|(file, choices)| file.choices = Some(choices));
                }
            }
            workload.merge(loaded.workload);
            provenance.push(loaded.provenance);
        }
        Ok(Arrivals { workload: Arc::new(workload), provenance })
    }
}

/// Returns the ledger's settings, adapted to the telemetry.
fn ledger(read: &LedgerSettings, telemetry: &Telemetry) -> Result<LedgerSettings, (String, String)> {
    let interval = telemetry.interval;
    if read.interval != LedgerSettings::default().interval && read.interval != interval {
        let message = "`telemetry` has the interval; leave it out here";
        return Err(("ledger.interval".into(), message.into()));
    }
    // Reports that are always late are not missing, because the ledger knows the delay.
    let late = telemetry.delay.plus(telemetry.jitter);
    let grace = read.grace.or(Some(Nanos(interval.0 / 2).plus(late)));
    let unknown_after = read.unknown_after + late.0 as f64 / interval.0 as f64;
    let ledger = LedgerSettings { interval, grace, unknown_after, ..read.clone() };
    ledger
        .check()
        .map_err(|e| (format!("ledger.{}", e.field), format!("{}: expected {}", e.value, e.expected)))?;
    Ok(ledger)
}

/// Returns the event of a file entry, or the invalid field and the reason.
fn event(
    cluster: &Cluster,
    kind: Kind,
    file: &EventFile,
    horizon: Nanos,
) -> Result<Event, (&'static str, String)> {
    let fabric = &cluster.fabric;
    if file.at >= horizon {
        return Err(("at", format!("{}: after the end of the run at {horizon}", file.at)));
    }
    if !file.announced && matches!(file.state, Some(HostState::Draining | HostState::Serving)) {
        let message = "`draining` and `serving` change the ledger only: leave out `told: false`";
        return Err(("told", message.into()));
    }
    let host = |name: &String| {
        fabric.host(name).ok_or_else(|| ("host", format!("unknown host `{}`", excerpt(name))))
    };
    if let (Some(name), None, None, None, None, Some(factor)) =
        (&file.host, &file.rack, &file.link, file.state, file.capacity, file.slowdown)
    {
        if !(1.0..=1e6).contains(&factor) {
            return Err(("slowdown", format!("{factor}: expected a factor from 1 to 1e6")));
        }
        if kind == Kind::Cell {
            let message = "the interfaces and devices of a cell's hosts are not simulated; leave it out";
            return Err(("slowdown", message.into()));
        }
        let change = Change::Slowdown(host(name)?, factor);
        return Ok(Event { at: file.at, change, announced: file.announced });
    }
    if file.slowdown.is_some() {
        return Err(("slowdown", "expected a host with it, and nothing else".into()));
    }
    let change = match (&file.host, &file.rack, &file.link, file.state, file.capacity) {
        (Some(name), None, None, Some(state), None) => Change::Host(host(name)?, state),
        (None, Some(name), None, Some(state), None) => {
            let unknown = || ("rack", format!("unknown rack `{}`", excerpt(name)));
            Change::Domain(fabric.domain(name).ok_or_else(unknown)?, state)
        }
        (None, None, Some(name), None, Some(capacity)) => {
            let link = fabric.resource(name);
            let link = link.filter(|&link| fabric.kind(link) != ResourceKind::Device);
            let unknown = || {
                let name = excerpt(name);
                ("link", format!("unknown link `{name}`; links are named like r3:uplink or r3h7:ingress"))
            };
            Change::Capacity(link.ok_or_else(unknown)?, capacity.as_load())
        }
        _ => {
            let message = "expected host or rack with a state, link with a capacity, or host with a slowdown";
            return Err(("", message.into()));
        }
    };
    Ok(Event { at: file.at, change, announced: file.announced })
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned())
}
