//! Sources of a workload, as a scenario file names them.
//!
//! A source is a map with one key, its kind: `coflow: {file: "data:fb2010-coflow/FB2010-1Hr-150-0.txt"}`. The kind is
//! the key and not a field beside the others (`kind: coflow`). A reader that must first find the kind has to buffer the
//! other fields, and loses their line numbers.

use std::fmt;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Cluster, HostId};
use leeward_placement::replicas::Layout;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::app::App;
use crate::blocks::{self, Blocks};
use crate::cell::Cell;
use crate::coflow::Coflow;
use crate::facebook::{Facebook, Writers};
use crate::flows::{self, Flows};
use crate::inputs::Inputs;
use crate::matrix::Matrix;
use crate::model::{FileWrite, Loaded, MOST_BLOCKS};
use crate::rates::{self, Rates};
use crate::reads::Reads;
use crate::settings::{enough_hosts, task_hosts};
use crate::swim::Swim;
use crate::tasks::{self, Tasks};

/// Source of a workload.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Generated: an hour that resembles the hours of Facebook's cluster, with file writes and background.
    Facebook(Facebook),
    /// Background flows from a trace in the coflow benchmark's format.
    Coflow(Coflow),
    /// File writes from a SWIM trace of jobs.
    Swim(Swim),
    /// File writes from a list, CSV or Parquet.
    Blocks(Blocks),
    /// Background flows from a list, CSV or Parquet.
    Flows(Flows),
    /// Background rates on links from a list, CSV or Parquet.
    Rates(Rates),
    /// Background from a traffic matrix.
    Matrix(Matrix),
    /// Generated: the tasks of a cell.
    Cell(Cell),
    /// The tasks of a cell from a list, CSV or Parquet.
    Tasks(Tasks),
    /// Generated: reads of written blocks.
    Reads(Reads),
    /// Apps: tasks with a traffic matrix.
    App(App),
}

const KINDS: &[&str] =
    &["facebook", "coflow", "swim", "blocks", "flows", "rates", "matrix", "cell", "tasks", "reads", "app"];

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `deserialize_map` would hide the type of a value that is not a map; `deserialize_any` reports it.
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = Source;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "one source with its settings, such as `facebook: {{}}`; the kinds are {}",
            KINDS.join(", ")
        )
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Source, A::Error> {
        let Some(kind) = map.next_key::<String>()? else {
            return Err(de::Error::invalid_type(de::Unexpected::Other("an empty map"), &self));
        };
        let source = match kind.as_str() {
            "facebook" => Source::Facebook(map.next_value::<Option<Facebook>>()?.unwrap_or_default()),
            "coflow" => Source::Coflow(map.next_value()?),
            "swim" => Source::Swim(map.next_value()?),
            "blocks" => Source::Blocks(map.next_value()?),
            "flows" => Source::Flows(map.next_value()?),
            "rates" => Source::Rates(map.next_value()?),
            "matrix" => Source::Matrix(map.next_value()?),
            "cell" => Source::Cell(map.next_value::<Option<Cell>>()?.unwrap_or_default()),
            "tasks" => Source::Tasks(map.next_value()?),
            "reads" => Source::Reads(map.next_value()?),
            "app" => Source::App(map.next_value()?),
            other => {
                let (other, kinds) = (excerpt(other), KINDS.join(", "));
                return Err(de::Error::custom(format!(
                    "unknown kind of source `{other}`; expected one of {kinds}"
                )));
            }
        };
        match map.next_key::<String>()? {
            None => Ok(source),
            Some(key) => {
                let message = format!(
                    "`{}` beside `{kind}`: expected one source per entry, with its settings below it",
                    excerpt(&key)
                );
                Err(de::Error::custom(message))
            }
        }
    }
}

impl Source {
    /// Loads this source for a run of `horizon` seconds on `cluster`. Its draws depend only on `seed`. Two sources of
    /// one kind in a scenario need two seeds; otherwise their draws are equal.
    ///
    /// Loads that are a share of a link's capacity refer to the capacities of the cluster's file. Later
    /// changes of links do not change the workload.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the file and line of the trace, or with the field of a setting that does not fit
    /// this cluster.
    pub fn load(
        &self,
        cluster: &Cluster,
        inputs: &Inputs,
        seed: u64,
        horizon: f64,
    ) -> Result<Loaded, InputError> {
        let (text, list) =
            (|name: &str| inputs.files.open(name), |name, columns: &[&str]| inputs.list(name, columns));
        let loaded = match self {
            Source::Facebook(settings) => settings.generate(cluster, seed, horizon),
            Source::Coflow(settings) => settings.read(text(&settings.file)?, cluster, seed, horizon),
            Source::Swim(settings) => settings.read(text(&settings.file)?, cluster, seed, horizon),
            Source::Blocks(settings) => {
                let columns = [&blocks::COLUMNS[..], &blocks::OPTIONAL].concat();
                settings.read(list(&settings.file, &columns)?, cluster, horizon)
            }
            Source::Flows(settings) => {
                settings.read(list(&settings.file, &flows::COLUMNS)?, cluster, horizon)
            }
            Source::Rates(settings) => {
                settings.read(list(&settings.file, &rates::COLUMNS)?, cluster, horizon)
            }
            Source::Matrix(settings) => {
                let columns: Vec<&str> = settings.pairs.iter().flatten().map(String::as_str).collect();
                settings.read(list(&settings.file, &columns)?, cluster, seed, horizon)
            }
            Source::Cell(settings) => settings.generate(cluster, seed, horizon),
            Source::Tasks(settings) => {
                let columns = [&tasks::COLUMNS[..], &tasks::OPTIONAL].concat();
                settings.read(list(&settings.file, &columns)?, cluster, horizon)
            }
            Source::Reads(settings) => settings.generate(cluster, seed, horizon),
            Source::App(settings) => settings.read(inputs, horizon),
        }?;
        for file in &loaded.workload.files {
            self.check(file, cluster)?;
        }
        Ok(loaded)
    }

    /// Returns the hosts that its tasks run on under `seed`, in order of number.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the field of a setting that does not fit this cluster.
    pub fn task_hosts(&self, cluster: &Cluster, seed: u64) -> Result<Vec<HostId>, InputError> {
        match self {
            Source::Facebook(settings) => settings.task_hosts(cluster, seed),
            _ => Ok(task_hosts(cluster)),
        }
    }

    /// Checks that a file can be written.
    fn check(&self, file: &FileWrite, cluster: &Cluster) -> Result<(), InputError> {
        let invalid =
            |field: &str, message: String| Err(InputError::new(self.kind(), message).in_field(field));
        enough_hosts(cluster, file.replicas, file.layout).or_else(|message| match file.layout {
            Layout::Chain => invalid("replicas", message),
            Layout::Stripe { .. } => invalid("coding", message),
        })?;
        if file.bytes.0.div_ceil(file.block.0.max(1)) > MOST_BLOCKS {
            let message =
                format!("{}: a file of {} would have more than {MOST_BLOCKS} blocks", file.block, file.bytes);
            return invalid("block", message);
        }
        Ok(())
    }

    /// Returns true if it generates only tasks of a cell.
    pub fn makes_tasks(&self) -> bool {
        matches!(self, Source::Cell(_) | Source::Tasks(_))
    }

    /// Returns true if it generates only apps.
    pub fn makes_apps(&self) -> bool {
        matches!(self, Source::App(_))
    }

    /// Returns true if tasks of it write files.
    pub fn writes_files(&self) -> bool {
        match self {
            Source::Facebook(settings) => settings.writers != Writers::None,
            Source::Swim(_) | Source::Blocks(_) => true,
            _ => false,
        }
    }

    /// Returns true if it generates coflows.
    pub fn makes_coflows(&self) -> bool {
        matches!(self, Source::Coflow(_))
    }

    /// Returns true if it generates only background.
    pub fn is_background(&self) -> bool {
        matches!(self, Source::Coflow(_) | Source::Flows(_) | Source::Rates(_) | Source::Matrix(_))
    }

    /// Name of the kind, as in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Facebook(_) => "facebook",
            Source::Coflow(_) => "coflow",
            Source::Swim(_) => "swim",
            Source::Blocks(_) => "blocks",
            Source::Flows(_) => "flows",
            Source::Rates(_) => "rates",
            Source::Matrix(_) => "matrix",
            Source::Cell(_) => "cell",
            Source::Tasks(_) => "tasks",
            Source::Reads(_) => "reads",
            Source::App(_) => "app",
        }
    }
}
