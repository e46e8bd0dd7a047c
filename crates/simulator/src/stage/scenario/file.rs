//! The fields of a scenario file, as written.

use leeward_fabric::input::{Spanned, one_line};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_ledger::LedgerSettings;
use leeward_placement::PolicySpec;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::stage::telemetry::Telemetry;
use crate::stage::workload::{Share, Source};

/// A scenario: one cluster, some workloads, what happens, and the policies to try.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// What people call it.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// A cluster file, by its path from this file.
    #[schemars(with = "String")]
    pub cluster: Spanned<String>,
    /// What arrives; all of these together.
    #[schemars(with = "Vec<Source>")]
    pub workloads: Vec<Spanned<Source>>,
    /// Policies to try, each on the same arrivals; the first is what the others are compared with. Default uniform and
    /// sinbad.
    #[schemars(with = "Option<Vec<PolicySpec>>")]
    pub policies: Option<Spanned<Vec<PolicySpec>>>,
    /// How the network is seen.
    #[serde(default = "unplaced::<Telemetry>")]
    #[schemars(with = "Telemetry")]
    pub telemetry: Spanned<Telemetry>,
    /// How what is seen becomes estimates. Its `interval` is that of `telemetry`.
    #[serde(default = "unplaced::<LedgerSettings>")]
    #[schemars(with = "LedgerSettings")]
    pub ledger: Spanned<LedgerSettings>,
    /// What happens besides work.
    #[serde(default)]
    #[schemars(with = "Vec<EventFile>")]
    pub events: Vec<Spanned<EventFile>>,
    /// When apps that run are placed again, and what moving them costs. Default never.
    #[schemars(with = "Option<MigrationFile>")]
    pub migration: Option<Spanned<MigrationFile>>,
    /// Fault domains besides the first copy's that must hold a copy of each block. Default 1, or none
    /// where a block has one copy.
    #[schemars(with = "Option<u8>")]
    pub fault_domains: Option<Spanned<u8>>,
    /// How much more of its room, as a share, a host may fill than the hosts of the cluster do in the mean (a limit on
    /// imbalance: Sinbad section 7.4). Default no limit.
    pub max_imbalance: Option<Share>,
    /// How long it runs. Default 1h.
    #[serde(default = "hour")]
    #[schemars(with = "Nanos")]
    pub horizon: Spanned<Nanos>,
    /// How long results are not counted at the beginning. Default 0s.
    #[serde(default = "unplaced::<Nanos>")]
    #[schemars(with = "Nanos")]
    pub warmup: Spanned<Nanos>,
    /// Length of the intervals over which link loads are recorded. Default 10s (Sinbad section 4.3).
    #[serde(default = "ten_seconds")]
    #[schemars(with = "Nanos")]
    pub sample: Spanned<Nanos>,
    /// Seed of everything random. Default 1.
    #[serde(default = "first")]
    pub seed: u64,
}

/// Re-placement of apps that run (Choreo section 2.4).
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationFile {
    /// How often all apps that run are placed again.
    pub every: Nanos,
    /// For how long an app stands still when it moves, once the memory of its tasks is carried. Default 10s.
    #[serde(default = "ten")]
    pub pause: Nanos,
    /// The share of the time left that moving must save, costs included. Default 0.1.
    #[serde(default = "tenth")]
    pub margin: Share,
}

impl MigrationFile {
    /// What is wrong with these settings: the field, and what was expected.
    pub(super) fn check(&self, horizon: Nanos) -> Result<(), (&'static str, String)> {
        const MOST: u64 = 1_000_000;
        if self.every.0 == 0 || horizon.0 / self.every.0 > MOST {
            let message =
                format!("{}: expected a positive time, and at most {MOST} of them in a run", self.every);
            return Err(("every", message));
        }
        if self.pause > horizon {
            return Err(("pause", format!("{}: expected at most the horizon of {horizon}", self.pause)));
        }
        Ok(())
    }
}

/// Something that happens at a time: exactly one of `host`, `rack` and `link` is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// When.
    pub at: Nanos,
    /// To which host.
    pub host: Option<String>,
    /// To which rack or pod.
    pub rack: Option<String>,
    /// To which link, such as `r3:uplink`.
    pub link: Option<String>,
    /// What a host or rack becomes.
    pub state: Option<HostState>,
    /// What a link carries from then on.
    pub capacity: Option<Bandwidth>,
    /// Whether the ledger is told; otherwise it must find out by telemetry. Default true.
    #[serde(default = "yes")]
    pub told: bool,
}

/// What a host becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// It fails: what crosses it stands still, blocks under way to it are written elsewhere.
    Down,
    /// It works again.
    Up,
    /// It takes no new blocks.
    Draining,
    /// It takes new blocks again.
    Serving,
}

fn first() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn hour() -> Spanned<Nanos> {
    nowhere(Nanos(3_600_000_000_000))
}

fn ten() -> Nanos {
    Nanos(10_000_000_000)
}

fn ten_seconds() -> Spanned<Nanos> {
    nowhere(ten())
}

fn tenth() -> Share {
    Share::new(0.1).expect("a share")
}

/// The default of what the file does not mention.
fn unplaced<T: Default>() -> Spanned<T> {
    nowhere(T::default())
}

fn nowhere<T>(value: T) -> Spanned<T> {
    let nowhere = serde_saphyr::Location::UNKNOWN;
    Spanned::new(value, nowhere, nowhere)
}
