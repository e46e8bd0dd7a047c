//! Arriving apps: tasks with a traffic matrix, which a policy places together (Choreo sections 2 and 6).
//!
//! An app is an app file, or only a matrix: a square matrix of bytes as CSV with one row per task. One source is one
//! app, either once or repeated at an interval of `every`. Several sources generate apps of several kinds.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, one_line, read_text};
use leeward_fabric::{Bytes, Cpus, Nanos};
use leeward_placement::tasks::{App as AppTasks, AppRequest, Task, Transfer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inputs::Inputs;
use crate::model::{AppArrival, Loaded, MOST_RECORDS, Workload};
use crate::settings::{Factor, amount, whole_bytes};

/// Apps that a policy places on arrival.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// An app file: a path from the scenario's folder, or `data:NAME/FILE`. Alternative: `matrix`.
    pub file: Option<String>,
    /// A square matrix of bytes as CSV without a header, named like `file`: an app with one task per row.
    pub matrix: Option<String>,
    /// Name in results; default is the name in its file. If there are several apps, each has its number appended.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// Processors of each task of a `matrix`. Default 1.
    pub cpus: Option<Cpus>,
    /// Memory of each task of a `matrix`. Default 0B.
    pub memory: Option<Bytes>,
    /// Factor on the bytes of each transfer.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// Arrival time of the first app. Default 0s.
    #[serde(default)]
    pub at: Nanos,
    /// Interval between arrivals; without it all apps arrive at once.
    pub every: Option<Nanos>,
    /// Number of apps; default is one, or with `every` as many as fit in the run.
    pub count: Option<NonZeroU32>,
}

impl App {
    /// Reads the app, and generates its arrivals within `horizon` seconds.
    ///
    /// # Errors
    /// Returns an error for invalid settings, an invalid file, or a task with `egress` or `ingress` to no
    /// other task.
    pub fn read(&self, inputs: &Inputs, horizon: f64) -> Result<Loaded, InputError> {
        if self.every == Some(Nanos(0)) {
            return Err(invalid("every", "0s: must be positive; without `every` all arrive at once"));
        }
        let (file, mut app) = self.tasks(inputs)?;
        for (index, task) in app.request.tasks.iter().enumerate() {
            if task.entry_count() > 0 {
                let message = format!(
                    "{}: `egress` and `ingress` name no other task, so no link carries them; leave them out",
                    app.names[index]
                );
                return Err(InputError::new(file, message).in_field(format!("tasks[{index}]")));
            }
        }
        let scaled = |transfer: &Transfer| {
            let bytes = whole_bytes(transfer.bytes.0 as f64 * self.scale.get());
            let too_much = || invalid("scale", format!("{}: more than any app sends", self.scale.get()));
            Ok(Transfer { bytes: Bytes(bytes.ok_or_else(too_much)?), ..*transfer })
        };
        let transfers: Result<Vec<Transfer>, InputError> = app.request.transfers.iter().map(scaled).collect();
        app.request.transfers = transfers?;
        let total: u128 = app.request.transfers.iter().map(|transfer| u128::from(transfer.bytes.0)).sum();
        if total > MOST_BYTES {
            return Err(invalid("scale", format!("{}: more than any app sends", self.scale.get())));
        }
        let arrivals = self.arrivals(app.request.transfers.len(), horizon)?;
        let provenance = format!(
            "app {file}: {} times {} tasks and {} transfers of {}",
            arrivals.len(),
            app.request.tasks.len(),
            app.request.transfers.len(),
            amount(total)
        );
        let name = self.name.as_ref().unwrap_or(&app.name);
        let request = Arc::new(AppRequest { ..app.request });
        let several = arrivals.len() > 1;
        let apps = arrivals.into_iter().enumerate().map(|(number, arrive)| AppArrival {
            arrive,
            name: if several { format!("{name}/{number}") } else { name.clone() },
            request: request.clone(),
        });
        let workload = Workload { apps: apps.collect(), ..Workload::default() };
        Ok(Loaded { workload, provenance })
    }

    /// Returns the app, and the name of its file.
    fn tasks(&self, inputs: &Inputs) -> Result<(&str, AppTasks), InputError> {
        let matrix_settings = [("cpus", self.cpus.is_some()), ("memory", self.memory.is_some())];
        match (&self.file, &self.matrix) {
            (Some(file), None) => {
                if let Some((field, _)) = matrix_settings.iter().find(|(_, given)| *given) {
                    return Err(invalid(field, "the app file has it; set it with `matrix` only"));
                }
                // This call reports errors of the name. The app's matrix is relative to its own folder.
                inputs.files.open(file)?;
                let path = inputs.files.path(file)?;
                let base = path.parent().unwrap_or(Path::new("")).to_owned();
                let files = leeward_fabric::input::Files { base, ..inputs.files.clone() };
                let text = read_text(&path.to_string_lossy())?;
                Ok((file, AppTasks::from_text(file, &text, &files)?))
            }
            (None, Some(matrix)) => {
                let cpus = self.cpus.unwrap_or(Cpus(1000));
                let task = Task { cpus, memory: self.memory.unwrap_or_default(), ..Task::default() };
                Ok((matrix, AppTasks::from_matrix_file(matrix, &inputs.files, task)?))
            }
            _ => Err(invalid("file", "expected one of `file` and `matrix`")),
        }
    }

    /// Returns the arrival times, in seconds.
    fn arrivals(&self, transfers: usize, horizon: f64) -> Result<Vec<f64>, InputError> {
        let (first, count) = (self.at.as_secs_f64(), self.count.map(NonZeroU32::get));
        let gap = self.every.map_or(0.0, Nanos::as_secs_f64);
        let fit = match self.every {
            _ if first >= horizon => 0.0,
            Some(_) => ((horizon - first) / gap).ceil(),
            None => f64::INFINITY,
        };
        let wanted = count.map_or(if self.every.is_some() { f64::INFINITY } else { 1.0 }, f64::from);
        let count = fit.min(wanted);
        if count * (transfers.max(1) as f64) > MOST_RECORDS as f64 {
            let field = if self.every.is_some() { "every" } else { "count" };
            return Err(invalid(field, format!("more than {MOST_RECORDS} transfers in all")));
        }
        let at = |number: u32| first + f64::from(number) * gap;
        Ok((0..count as u32).map(at).filter(|&at| at < horizon).collect())
    }
}

/// Largest total number of bytes that an app may send.
const MOST_BYTES: u128 = 1 << 62;

/// Creates an error about the settings of this source.
fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("app", message).in_field(field)
}
