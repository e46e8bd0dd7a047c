//! The fields of an app file, as written. `file_reader` turns them into a request.

use leeward_fabric::input::{Spanned, excerpt, one_line};
use leeward_fabric::{Bandwidth, Bytes, Cpus, Nanos};
use schemars::JsonSchema;
use serde::Deserialize;

use super::app::{MOST_PHASES, MOST_TASKS};
use super::{Class, Goal, Task, Traffic};
use crate::Apart;

/// An app: tasks, and the traffic between them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// Display name.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// Tasks of the app, at least one.
    #[schemars(with = "Vec<TaskFile>", length(min = 1))]
    pub tasks: Vec<Spanned<TaskFile>>,
    /// Traffic between tasks; alternatively `matrix` or `phases`.
    #[serde(default)]
    #[schemars(with = "Vec<TransferFile>")]
    pub transfers: Vec<Spanned<TransferFile>>,
    /// Groups of tasks that stay apart.
    #[serde(default)]
    #[schemars(with = "Vec<ApartFile>")]
    pub apart: Vec<Spanned<ApartFile>>,
    /// Bounds on round-trip times between tasks.
    #[serde(default)]
    #[schemars(with = "Vec<LatencyFile>")]
    pub latency: Vec<Spanned<LatencyFile>>,
    /// Goal that comes first: `time`, the shortest completion time, or `cost`, the least cost of the hosts. The other one
    /// decides between equals. Default `time`.
    #[serde(default)]
    pub goal: Goal,
    /// CSV file with a square matrix of bytes, without a header: a row and a column for each task, in their order.
    pub matrix: Option<String>,
    /// Traffic that changes over time: the phases of the app, one after another.
    #[serde(default)]
    #[schemars(with = "Vec<PhaseFile>", length(max = MOST_PHASES))]
    pub phases: Vec<Spanned<PhaseFile>>,
}

/// Traffic of a phase. It begins when all transfers of earlier phases have ended.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseFile {
    /// Traffic between tasks; alternatively `matrix`.
    #[serde(default)]
    #[schemars(with = "Vec<TransferFile>")]
    pub transfers: Vec<Spanned<TransferFile>>,
    /// CSV file with a square matrix of bytes.
    pub matrix: Option<String>,
}

/// Bound on the round-trip time between tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyFile {
    /// Name of a task; a name with a `count` means each of its tasks.
    pub from: String,
    /// Name of another task; a name with a `count` means each of its tasks.
    pub to: String,
    /// Longest round-trip time between their hosts.
    pub max: Nanos,
}

/// Tasks of which no two share a host, or a rack.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApartFile {
    /// Names of the tasks; a name with a `count` means each of its tasks.
    #[schemars(length(min = 1))]
    pub tasks: Vec<String>,
    /// `host` or `rack`. Default `host`.
    #[serde(default = "host")]
    pub level: Apart,
}

fn host() -> Apart {
    Apart::Host
}

/// A task, or `count` identical tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Name of the task: letters, digits, `.`, `_` and `-`.
    #[schemars(regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub name: String,
    /// Number of tasks like this one; their numbers are appended to the name.
    #[schemars(range(min = 1, max = MOST_TASKS))]
    pub count: Option<u32>,
    /// Processors. Default 0.
    #[serde(default)]
    pub cpus: Cpus,
    /// Memory. Default 0B.
    #[serde(default)]
    pub memory: Bytes,
    /// Traffic out of its rack.
    #[serde(default)]
    pub egress: DirectionFile,
    /// Traffic into its rack.
    #[serde(default)]
    pub ingress: DirectionFile,
    /// True if the task may be moved. Default false.
    #[serde(default)]
    pub tolerant: bool,
    /// Command line of its program, for `leeward tenant run`; placements do not read it. By default the task only
    /// transfers.
    #[serde(default, deserialize_with = "one_line")]
    pub command: Option<String>,
}

/// Rates in one direction: in the class `non_critical`, or by class.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirectionFile {
    /// Average rate; the peak if left out.
    pub mean: Option<Bandwidth>,
    /// Peak rate; the average if left out.
    pub peak: Option<Bandwidth>,
    /// Performance-critical traffic.
    pub critical: Option<RateFile>,
    /// Traffic that is not critical.
    pub non_critical: Option<RateFile>,
    /// Best effort.
    pub best_effort: Option<RateFile>,
}

/// A rate: its average, its peak, or both.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RateFile {
    /// Average rate; the peak if left out.
    pub mean: Option<Bandwidth>,
    /// Peak rate; the average if left out.
    pub peak: Option<Bandwidth>,
}

/// An element of the traffic matrix.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferFile {
    /// Name of the sending task; a name with a `count` means each of its tasks.
    pub from: String,
    /// Name of the receiving task; a name with a `count` means each of its tasks.
    pub to: String,
    /// Bytes from each sender to each receiver.
    pub bytes: Bytes,
}

impl TaskFile {
    /// Demand of the task.
    ///
    /// # Errors
    /// The name of the invalid field, and a message.
    pub fn demand(&self) -> Result<Task, (&'static str, String)> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        if self.name.is_empty() || !self.name.chars().all(allowed) {
            let name = excerpt(&self.name);
            return Err(("name", format!("`{name}`: a name has letters, digits, `.`, `_` and `-` only")));
        }
        Ok(Task {
            cpus: self.cpus,
            memory: self.memory,
            egress: self.egress.by_class().map_err(|message| ("egress", message))?,
            ingress: self.ingress.by_class().map_err(|message| ("ingress", message))?,
            tolerant: self.tolerant,
        })
    }
}

impl DirectionFile {
    fn by_class(&self) -> Result<[Traffic; Class::COUNT], String> {
        let DirectionFile { mean, peak, critical, non_critical, best_effort } = *self;
        let plain = mean.is_some() || peak.is_some();
        let classes = [critical, non_critical, best_effort];
        if plain && classes.iter().any(Option::is_some) {
            return Err("give `mean` and `peak`, or classes, not both".into());
        }
        let classes = if plain { [None, Some(RateFile { mean, peak }), None] } else { classes };
        let mut by_class = [Traffic::default(); Class::COUNT];
        for (into, rate) in by_class.iter_mut().zip(classes) {
            let RateFile { mean, peak } = rate.unwrap_or_default();
            let (mean, peak) = (mean.or(peak).unwrap_or_default(), peak.or(mean).unwrap_or_default());
            if mean > peak {
                return Err(format!("a mean of {mean} above the peak of {peak}"));
            }
            *into = Traffic { mean_bps: mean.0, peak_bps: peak.0 };
        }
        Ok(by_class)
    }
}
