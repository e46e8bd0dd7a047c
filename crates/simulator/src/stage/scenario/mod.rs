//! Scenarios: one cluster, some workloads, what happens, and the policies to try, ready to run.

mod file;

use std::path::Path;
use std::sync::Arc;

pub use file::{EventFile, HostState, PolicySpec, ScenarioFile};
use leeward_fabric::input::{Files, InputError, Spanned, read_text, read_yaml};
use leeward_fabric::{Cluster, DomainId, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::LedgerSettings;
use leeward_placement::replicas;

use super::telemetry::Telemetry;
use super::workload::{Source, Workload};

/// The policies of a scenario that names none.
const DEFAULT_POLICIES: [&str; 2] = ["uniform", "sinbad"];

/// A scenario, checked and with its files found.
#[derive(Debug)]
pub struct Scenario {
    /// What people call it.
    pub name: String,
    /// The cluster as its file says, which is what is true at the start and believed throughout unless told.
    pub cluster: Cluster,
    /// Policies to try; the first is the baseline.
    pub policies: Vec<PolicySpec>,
    /// How the network is seen.
    pub telemetry: Telemetry,
    /// How what is seen becomes estimates.
    pub ledger: LedgerSettings,
    /// What happens, by time.
    pub events: Vec<Event>,
    /// Fault domains besides the first copy's that must hold a copy.
    pub fault_domains: u8,
    /// How long it runs.
    pub horizon: Nanos,
    /// From when on results are counted.
    pub warmup: Nanos,
    /// Length of the intervals over which loads are recorded.
    pub sample: Nanos,
    /// Seed of everything random, unless a run is given another.
    pub seed: u64,
    sources: Vec<Source>,
    files: Files,
}

/// Something that happens besides work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What.
    pub change: Change,
    /// Whether the ledger is told.
    pub told: bool,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// A link has another capacity.
    Capacity(ResourceId, Load),
    /// A host changes state.
    Host(HostId, HostState),
    /// All hosts of a rack or pod change state, and its links fail or work with them.
    Domain(DomainId, HostState),
}

/// What arrives in one run, and what each source says of itself.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// What arrives.
    pub workload: Arc<Workload>,
    /// One line for each source: what it is, how many of what, and what was left out.
    pub provenance: Vec<String>,
}

impl Scenario {
    /// Reads a scenario file. `data` is the folder of traces, for files named `data:...`.
    pub fn from_file(path: &str, data: Option<&Path>) -> Result<Scenario, InputError> {
        let base = Path::new(path).parent().unwrap_or(Path::new(""));
        Scenario::from_text(path, &read_text(path)?, base, data)
    }

    /// Reads a scenario from text; `file` names it in errors, other files are looked up from `base`.
    pub fn from_text(
        file: &str,
        text: &str,
        base: &Path,
        data: Option<&Path>,
    ) -> Result<Scenario, InputError> {
        let read: ScenarioFile = read_yaml(file, text)?;
        let cluster_path = base.join(&read.cluster.value);
        let cluster = Cluster::from_file(&cluster_path.to_string_lossy())?;
        let error = |field: &str, message: String| InputError::new(file, message).in_field(field);
        let horizon = read.horizon.value;
        if horizon.0 == 0 {
            return Err(error("horizon", format!("{horizon}: expected a positive time")).at(&read.horizon));
        }
        if read.sample.0 == 0 || read.sample > horizon {
            let message =
                format!("{}: expected a positive time, up to the horizon of {horizon}", read.sample);
            return Err(error("sample", message));
        }
        if read.warmup >= horizon {
            let message = format!("{}: expected less than the horizon of {horizon}", read.warmup);
            return Err(error("warmup", message));
        }
        read.telemetry.check().map_err(|(field, message)| error(&format!("telemetry.{field}"), message))?;
        let (mut ledger, interval) = (read.ledger, read.telemetry.interval);
        if ledger.interval != LedgerSettings::default().interval && ledger.interval != interval {
            return Err(error(
                "ledger.interval",
                "the interval stands under `telemetry`; leave it out here".into(),
            ));
        }
        ledger.interval = interval;
        // Reports that are always late are not missing: the ledger is told how late they come.
        let late = read.telemetry.delay.plus(read.telemetry.jitter);
        ledger.grace = ledger.grace.or(Some(Nanos(interval.0 / 2).plus(late)));
        ledger.unknown_after += late.0 as f64 / interval.0 as f64;
        let fault_domains = cluster.fabric.fault_domain_count();
        if usize::from(read.fault_domains) >= fault_domains {
            let wanted = read.fault_domains;
            let message = format!(
                "{wanted} besides the first copy's, but the cluster has {fault_domains} in all; `fault_domains: 0` allows copies in one"
            );
            return Err(error("fault_domains", message));
        }
        ledger.check().map_err(|e| error("ledger", e.to_string()))?;
        let mut policies = read.policies;
        if policies.is_empty() {
            policies = DEFAULT_POLICIES.iter().map(|name| PolicySpec::named(name)).collect();
        }
        for policy in &policies {
            replicas::make(&policy.name, &policy.settings).map_err(|e| error("policies", e.to_string()))?;
        }
        let mut events = Vec::with_capacity(read.events.len());
        for (i, spanned) in read.events.iter().enumerate() {
            let read = event(&cluster, &spanned.value, horizon);
            events.push(read.map_err(|message| error(&format!("events[{i}]"), message).at(spanned))?);
        }
        events.sort_by_key(|event| event.at);
        Ok(Scenario {
            name: read.name.unwrap_or_else(|| stem(file)),
            cluster,
            policies,
            telemetry: read.telemetry,
            ledger,
            events,
            fault_domains: read.fault_domains,
            horizon,
            warmup: read.warmup,
            sample: read.sample,
            seed: read.seed,
            sources: read.workloads.into_iter().map(|spanned: Spanned<Source>| spanned.value).collect(),
            files: Files { base: base.to_owned(), data: data.map(Path::to_owned) },
        })
    }

    /// What arrives under a seed: the same for every policy.
    pub fn arrivals(&self, seed: u64) -> Result<Arrivals, InputError> {
        let mut workload = Workload::default();
        let mut provenance = Vec::with_capacity(self.sources.len());
        for (i, source) in self.sources.iter().enumerate() {
            // Sources draw apart from each other: each has a seed of its own.
            let seed = seed.wrapping_add((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let loaded = source.load(&self.cluster, &self.files, seed, self.horizon.as_secs_f64())?;
            workload.merge(loaded.workload);
            provenance.push(loaded.provenance);
        }
        Ok(Arrivals { workload: Arc::new(workload), provenance })
    }
}

fn event(cluster: &Cluster, file: &EventFile, horizon: Nanos) -> Result<Event, String> {
    let fabric = &cluster.fabric;
    if file.at >= horizon {
        return Err(format!("at {}: the run is over at {horizon}", file.at));
    }
    if !file.told && matches!(file.state, Some(HostState::Draining | HostState::Serving)) {
        return Err("`draining` and `serving` are words to the ledger: leave `told: false` out".into());
    }
    let change = match (&file.host, &file.rack, &file.link, file.state, file.capacity) {
        (Some(name), None, None, Some(state), None) => {
            Change::Host(fabric.host(name).ok_or_else(|| format!("unknown host `{name}`"))?, state)
        }
        (None, Some(name), None, Some(state), None) => {
            Change::Domain(fabric.domain(name).ok_or_else(|| format!("unknown rack `{name}`"))?, state)
        }
        (None, None, Some(name), None, Some(capacity)) => {
            let link = fabric.resource(name);
            let link = link.filter(|&link| fabric.kind(link) != ResourceKind::Device);
            let message = || format!("unknown link `{name}`; links are named like r3:uplink or r3h7:ingress");
            Change::Capacity(link.ok_or_else(message)?, capacity.as_load())
        }
        _ => return Err("expected host or rack with a state, or link with a capacity".into()),
    };
    Ok(Event { at: file.at, change, told: file.told })
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned())
}
