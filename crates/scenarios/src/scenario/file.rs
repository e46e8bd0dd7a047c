//! Fields of a scenario file.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};

use leeward_fabric::input::{Place, Spanned, one_line};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_ledger::LedgerSettings;
use leeward_moves::{HotLoad, HotTest};
use leeward_registry::PolicySpec;
use leeward_workloads::{Faults, Share, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::telemetry::Telemetry;

/// A scenario: one cluster, its workloads, events, and the policies to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name of the scenario.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// Path of the cluster file, relative to this file.
    #[schemars(with = "String")]
    pub cluster: Spanned<String>,
    /// Workloads. They all run together.
    #[schemars(with = "Vec<Source>")]
    pub workloads: Vec<Spanned<Source>>,
    /// Policies to compare, each on the same arrivals; the first is the baseline. Default uniform and sinbad.
    #[schemars(with = "Option<Vec<PolicySpec>>")]
    pub policies: Option<Spanned<Vec<PolicySpec>>>,
    /// Telemetry of the network.
    #[serde(default = "unlocated_default::<Telemetry>")]
    #[schemars(with = "Telemetry")]
    pub telemetry: Spanned<Telemetry>,
    /// Estimation from telemetry. Its `interval` is the interval of `telemetry`.
    #[serde(default = "unlocated_default::<LedgerSettings>")]
    #[schemars(with = "LedgerSettings")]
    pub ledger: Spanned<LedgerSettings>,
    /// Events: failures and changes of capacity.
    #[serde(default)]
    #[schemars(with = "Vec<EventFile>")]
    pub events: Vec<Spanned<EventFile>>,
    /// Re-placement of running apps, and the cost of moves. Default never.
    #[schemars(with = "Option<MigrationFile>")]
    pub migration: Option<Spanned<MigrationFile>>,
    /// Moves of a cell's tasks from hot racks, by policies that move tasks.
    #[schemars(with = "Option<MovesFile>")]
    pub moves: Option<Spanned<MovesFile>>,
    /// Re-replication of blocks whose copies are on failed hosts. Default none.
    #[schemars(with = "Option<RepairFile>")]
    pub repair: Option<Spanned<RepairFile>>,
    /// Number of hosts, drawn for each task that writes a file, of which the task runs on the one with the most capacity
    /// left out of its rack and pod (Sinbad section 8). The host of the workload is one of them. Default 1, that host.
    #[schemars(with = "Option<NonZeroU16>")]
    pub writer_choices: Option<Spanned<NonZeroU16>>,
    /// Stragglers among the tasks that write files, and tasks that fail. Default none.
    #[schemars(with = "Option<Faults>")]
    pub faults: Option<Spanned<Faults>>,
    /// Fault domains besides the first copy's that must hold a copy of each block. Default 1, or 0 for blocks with one
    /// copy.
    #[schemars(with = "Option<u8>")]
    pub fault_domains: Option<Spanned<u8>>,
    /// Largest excess of a host's fill over the cluster's mean fill, as a share of its storage (the limit on imbalance
    /// of Sinbad section 7.4). Default no limit.
    pub max_imbalance: Option<Share>,
    /// Duration of the run. Default 1h.
    #[serde(default = "hour")]
    #[schemars(with = "Nanos")]
    pub horizon: Spanned<Nanos>,
    /// Initial time that results leave out. Default 0s.
    #[serde(default = "unlocated_default::<Nanos>")]
    #[schemars(with = "Nanos")]
    pub warmup: Spanned<Nanos>,
    /// Length of the intervals over which link loads are recorded. Default 10s (Sinbad section 4.3).
    #[serde(default = "ten_seconds")]
    #[schemars(with = "Nanos")]
    pub sample: Spanned<Nanos>,
    /// Seed of all random draws. Default 1.
    #[serde(default = "first")]
    pub seed: u64,
}

/// Re-placement of running apps (Choreo section 2.4).
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationFile {
    /// Interval between re-placements of all running apps.
    pub every: Nanos,
    /// Pause of an app when it moves, after the memory of its tasks has arrived. Default 10s.
    #[serde(default = "ten")]
    pub pause: Nanos,
    /// Share of the remaining time that a move must save, after its costs. Default 0.1.
    #[serde(default = "tenth")]
    pub margin: Share,
}

/// Moves of a cell's tasks from hot racks (Hotspots section 5.1): the settings `moves` of the service, which has
/// `load: window` by default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MovesFile {
    /// Load that must exceed the threshold: the `estimate`, or the mean of the last `window` alone. Default `estimate`.
    pub load: HotLoad,
    /// Number of consecutive hot windows before tasks move. Default 1.
    pub windows: NonZeroU32,
    /// Number of telemetry intervals in which a moved task is not moved again. Default 10.
    pub cooldown: u32,
}

impl Default for MovesFile {
    fn default() -> Self {
        MovesFile { load: HotLoad::Estimate, windows: NonZeroU32::MIN, cooldown: 10 }
    }
}

impl MovesFile {
    /// Test for the links from which tasks move.
    pub(crate) fn test(&self) -> HotTest {
        HotTest { load: self.load, windows: self.windows.get() }
    }
}

/// Checks a time between repeated actions. On failure, returns the field and the expected value.
fn check_every(every: Nanos, horizon: Nanos) -> Result<(), (&'static str, String)> {
    const MOST: u64 = 1_000_000;
    if every.0 == 0 || horizon.0 / every.0 > MOST {
        return Err((
            "every",
            format!("{every}: expected a positive time, and at most {MOST} of them in a run"),
        ));
    }
    Ok(())
}

impl MigrationFile {
    /// Checks the settings. On failure, returns the field and the expected value.
    pub(super) fn check(&self, horizon: Nanos) -> Result<(), (&'static str, String)> {
        check_every(self.every, horizon)?;
        if self.pause > horizon {
            return Err(("pause", format!("{}: expected at most the horizon of {horizon}", self.pause)));
        }
        Ok(())
    }
}

/// Re-replication of blocks whose copies, or chunks, are on failed hosts. The defaults are those of HDFS.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepairFile {
    /// Time after a failure at which the copies of a host count as lost. Default 10min30s.
    pub after: Nanos,
    /// Interval between rounds that start repairs. Default 3s.
    pub every: Nanos,
    /// Most repairs that a host sends at once. Default 2.
    pub streams: NonZeroU8,
    /// Largest rate of each transfer. Default no limit.
    pub rate: Option<Bandwidth>,
    /// Host with a copy that sends it. Default drawn.
    pub source: RepairSource,
}

/// Host with a copy that sends it to new hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepairSource {
    /// Drawn from the holders that can send.
    #[default]
    Drawn,
    /// The holder with the most capacity left out of its rack and pod, as in the service.
    Fastest,
}

impl Default for RepairFile {
    fn default() -> Self {
        RepairFile {
            after: Nanos(630 * Nanos::SECOND.0),
            every: Nanos(3 * Nanos::SECOND.0),
            streams: NonZeroU8::new(2).expect("two is not zero"),
            rate: None,
            source: RepairSource::Drawn,
        }
    }
}

impl RepairFile {
    /// Checks the settings. On failure, returns the field and the expected value.
    pub(super) fn check(&self, horizon: Nanos) -> Result<(), (&'static str, String)> {
        check_every(self.every, horizon)?;
        if self.after >= horizon {
            let message = format!("{}: expected less than the horizon of {horizon}", self.after);
            return Err(("after", message));
        }
        if self.rate == Some(Bandwidth(0)) {
            return Err(("rate", "0bps: must be positive; leave it out for no limit".to_owned()));
        }
        Ok(())
    }
}

/// An event: exactly one of `host`, `rack` and `link` is given, with what changes there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// Time of the event.
    pub at: Nanos,
    /// Host that changes.
    pub host: Option<String>,
    /// Rack or pod that changes.
    pub rack: Option<String>,
    /// Link that changes, such as `r3:uplink`.
    pub link: Option<String>,
    /// New state of the host or rack.
    pub state: Option<HostState>,
    /// New capacity of the link.
    pub capacity: Option<Bandwidth>,
    /// Factor from 1 to 1e6 by which the links and devices of the host are slower from then on; 1 ends a slowdown.
    pub slowdown: Option<f64>,
    /// If true, the ledger is informed. Otherwise it must detect the event by telemetry. Default true.
    #[serde(default = "yes", rename = "told")]
    pub announced: bool,
}

/// New state of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// Failure: its transfers stall, and unfinished blocks on it are written elsewhere.
    Down,
    /// Recovery.
    Up,
    /// Drain: the host takes no new blocks.
    Draining,
    /// End of the drain: the host takes new blocks again.
    Serving,
}

fn first() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn hour() -> Spanned<Nanos> {
    unlocated(Nanos(3_600_000_000_000))
}

fn ten() -> Nanos {
    Nanos(10_000_000_000)
}

fn ten_seconds() -> Spanned<Nanos> {
    unlocated(ten())
}

fn tenth() -> Share {
    Share::new(0.1).expect("a share")
}

/// Default of fields that the file does not mention.
fn unlocated_default<T: Default>() -> Spanned<T> {
    unlocated(T::default())
}

fn unlocated<T>(value: T) -> Spanned<T> {
    Spanned { value, place: Place::default() }
}
