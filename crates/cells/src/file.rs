//! Scenario file of cells: YAML or JSON, with quantities that have units.

use leeward_fabric::cluster::ClusterSource;
use leeward_fabric::input::one_line;
use leeward_fabric::{Bandwidth, Nanos};
use leeward_ledger::LedgerSettings;
use leeward_registry::PolicySpec;
use leeward_workloads::{Facebook, Factor, Share};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::digest::Choice;

/// A scenario of cells: the cluster of one cell, the number of cells, their work, and the messages between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellsFile {
    /// Name of the scenario.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// Number of cells, which are all alike.
    pub cells: u32,
    /// The cluster of one cell, with counted racks and pods: the path of its file, relative to this file, or its
    /// fields.
    pub cluster: ClusterSource,
    /// Policy for copies inside a cell, and for the one ledger.
    #[serde(default = "sinbad")]
    pub policy: PolicySpec,
    /// Choice of the cell that is asked to place copies. Default `two`.
    #[serde(default)]
    pub choice: Choice,
    /// Share of capacity by which the room of another cell must exceed that of the home cell to get copies that may be
    /// anywhere. Default 0.05.
    #[serde(default = "margin")]
    pub margin: Share,
    /// Generator of the files that the hosts of each cell write. Its background and its phases have no effect here.
    #[serde(default)]
    pub writes: Facebook,
    /// Largest rate of a write. Default: the write rate of the fastest device.
    pub rate: Option<Bandwidth>,
    /// Share of files whose copies besides the first must be in another cell. Default 0.2.
    #[serde(default = "fifth")]
    pub elsewhere: Share,
    /// Share of files whose copies besides the first may be in any cell. Default 0.3.
    #[serde(default = "three_tenths")]
    pub anywhere: Share,
    /// Traffic that no placement moves.
    #[serde(default)]
    pub background: BackgroundFile,
    /// Settings of the ledgers; `interval` is also the interval of telemetry.
    #[serde(default)]
    pub ledger: LedgerSettings,
    /// Messages between cells.
    #[serde(default)]
    pub exchange: ExchangeFile,
    /// Controllers that are away for a time. Each run of cells is then made without and with them.
    #[serde(default)]
    pub absent: Vec<AbsenceFile>,
    /// Duration of a run.
    pub horizon: Nanos,
    /// Initial time that records leave out. Default 0s.
    #[serde(default)]
    pub warmup: Nanos,
    /// Seed of random draws. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
}

fn sinbad() -> PolicySpec {
    PolicySpec::named("sinbad")
}

fn share(number: f64) -> Share {
    Share::new(number).expect("a default in range")
}

fn factor(number: f64) -> Factor {
    Factor::new(number).expect("a default in range")
}

fn margin() -> Share {
    share(0.05)
}

fn fifth() -> Share {
    share(0.2)
}

fn three_tenths() -> Share {
    share(0.3)
}

fn one() -> u64 {
    1
}

/// Traffic that no placement moves, in each direction of the links of racks and pods.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundFile {
    /// Mean share of the capacity of racks' links. Default 0.3.
    pub mean: Share,
    /// Largest share of the capacity of a rack's link. Default 0.95.
    pub ceiling: Share,
    /// Share of the background of racks that crosses the links of pods. Default 0.5.
    pub core: Share,
    /// Standard deviation of the logarithm of a factor for each rack, at most 3. Default 0.5.
    pub racks: Factor,
    /// The same for each pod. Default 0.3.
    pub pods: Factor,
    /// The same for each cell. Default 0.2.
    pub cells: Factor,
    /// Time for which a factor stays. Default 30s.
    pub period: Nanos,
}

impl Default for BackgroundFile {
    fn default() -> BackgroundFile {
        BackgroundFile {
            mean: share(0.3),
            ceiling: share(0.95),
            core: share(0.5),
            racks: factor(0.5),
            pods: factor(0.3),
            cells: factor(0.2),
            period: Nanos(30 * Nanos::SECOND.0),
        }
    }
}

/// Messages between cells.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExchangeFile {
    /// Times between the digests of a cell, with a run for each. At 0s, each decision knows the present state of all
    /// cells. Default 1s.
    pub intervals: Vec<Nanos>,
    /// Shares of lost messages, with a run for each. Default 0.
    pub losses: Vec<Share>,
    /// Delay of a message. Default 5ms.
    pub delay: Nanos,
    /// Largest additional random delay of a message. Default 5ms.
    pub jitter: Nanos,
    /// If true, an answer carries the state of the cell, as a digest does. Default true.
    pub answers_carry_state: bool,
    /// Number of intervals after which a digest is too old, at least 1. Default 3.
    pub unknown_after: f64,
    /// Time after which a request without an answer is sent again. Default 100ms.
    pub timeout: Nanos,
    /// Times that a cell is asked before another one is, 1 to 100. Default 2.
    pub repeats: u32,
    /// Number of cells that are asked for a block, 1 to 100. Default 3.
    pub tries: u32,
    /// Time after which a grant ends if its writer is never heard of again. Default 2min.
    pub lease: Nanos,
}

impl Default for ExchangeFile {
    fn default() -> ExchangeFile {
        ExchangeFile {
            intervals: vec![Nanos::SECOND],
            losses: vec![share(0.0)],
            delay: Nanos(5_000_000),
            jitter: Nanos(5_000_000),
            answers_carry_state: true,
            unknown_after: 3.0,
            timeout: Nanos(100_000_000),
            repeats: 2,
            tries: 3,
            lease: Nanos(120 * Nanos::SECOND.0),
        }
    }
}

/// Time in which the controller of a cell is away: it decides nothing, and hears no message and no report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbsenceFile {
    /// Number of the cell, from 0.
    pub cell: u32,
    /// Time at which it goes away.
    pub from: Nanos,
    /// Time at which it comes back.
    pub until: Nanos,
}
