//! App files: tasks and their traffic matrix. `read` returns a request and the names of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::input::{Files, InputError, Spanned, excerpt, one_line, read_json, read_text, read_yaml};
use leeward_fabric::{Bandwidth, Bytes, Cpus};
use schemars::JsonSchema;
use serde::Deserialize;

use super::app::{App, MOST_BYTES, MOST_TASKS, MOST_TRANSFERS};
use super::{AppRequest, Class, Task, Traffic, Transfer, matrix};
use crate::constraints::MOST_GROUPED;
use crate::{Apart, ApartGroup, Constraints};

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
    /// Traffic between tasks; alternatively `matrix`.
    #[serde(default)]
    #[schemars(with = "Vec<TransferFile>")]
    pub transfers: Vec<Spanned<TransferFile>>,
    /// Groups of tasks that stay apart.
    #[serde(default)]
    #[schemars(with = "Vec<ApartFile>")]
    pub apart: Vec<Spanned<ApartFile>>,
    /// CSV file with a square matrix of bytes, without a header: a row and a column for each task, in their order.
    pub matrix: Option<String>,
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

impl App {
    /// Reads an app file; its matrix is looked up from the folder of `files`.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field.
    pub fn read(path: &str, files: &Files) -> Result<App, InputError> {
        App::from_text(path, &read_text(path)?, files)
    }

    /// Reads an app file from text; `path` names it in errors.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field.
    pub fn from_text(path: &str, text: &str, files: &Files) -> Result<App, InputError> {
        Reader::new(path).read(read_yaml(path, text)?, files)
    }

    /// Reads an app from a JSON value with the fields of an app file. A matrix, which is a file, is rejected.
    ///
    /// # Errors
    /// [`InputError`] with the field.
    pub fn from_json(value: &serde_json::Value) -> Result<App, InputError> {
        let file: AppFile = read_json("app", value)?;
        if file.matrix.is_some() {
            let message = "files cannot be named here; give `transfers`";
            return Err(InputError::new("app", message).in_field("matrix"));
        }
        Reader::new("app").read(file, &Files::default())
    }
}

struct Reader<'a> {
    path: &'a str,
    /// Tasks of each name, as positions.
    groups: BTreeMap<String, std::ops::Range<u32>>,
    names: Vec<String>,
    tasks: Vec<Task>,
    commands: Vec<Option<String>>,
}

impl<'a> Reader<'a> {
    fn new(path: &'a str) -> Reader<'a> {
        Reader { path, groups: BTreeMap::new(), names: Vec::new(), tasks: Vec::new(), commands: Vec::new() }
    }

    fn read(mut self, file: AppFile, files: &Files) -> Result<App, InputError> {
        if file.tasks.is_empty() {
            return Err(InputError::new(self.path, "an empty list; expected at least one").in_field("tasks"));
        }
        for (at, task) in file.tasks.iter().enumerate() {
            self.task(at, task)?;
        }
        let transfers = match &file.matrix {
            Some(_) if !file.transfers.is_empty() => {
                return Err(
                    InputError::new(self.path, "give `transfers` or `matrix`, not both").in_field("matrix")
                );
            }
            Some(matrix) => matrix::read(matrix, files, Some(self.tasks.len()))?.1,
            None => self.transfers(&file.transfers)?,
        };
        let constraints = Constraints { apart_groups: self.apart(&file.apart)?, ..Constraints::default() };
        let name = file.name.unwrap_or_else(|| "app".into());
        let request = AppRequest { tasks: self.tasks, transfers, constraints, ..AppRequest::default() };
        Ok(App { name, names: self.names, commands: self.commands, request })
    }

    fn task(&mut self, at: usize, item: &Spanned<TaskFile>) -> Result<(), InputError> {
        let file = &item.value;
        let invalid = |field: &str, message: String| {
            let error = InputError::new(self.path, message).in_field(format!("tasks[{at}].{field}"));
            Err(error.at(item))
        };
        let count = file.count.unwrap_or(1);
        if count == 0 || self.tasks.len() + count as usize > MOST_TASKS {
            return invalid(
                "count",
                format!("{count}: expected at least 1, and at most {MOST_TASKS} tasks in all"),
            );
        }
        let task = match file.demand() {
            Ok(task) => task,
            Err((field, message)) => return invalid(field, message),
        };
        let first = self.names.len() as u32;
        for number in 0..count {
            let numbered = file.count.map(|_| number.to_string()).unwrap_or_default();
            self.names.push(format!("{}{numbered}", file.name));
            self.tasks.push(task);
            self.commands.push(file.command.clone());
        }
        let names = self.names[first as usize..].to_vec();
        let single = (0..).zip(&names).map(|(i, name)| (name.clone(), first + i..first + i + 1));
        let group = (file.name.clone(), first..first + count);
        for (name, tasks) in single.chain(file.count.map(|_| group)) {
            if self.groups.insert(name.clone(), tasks).is_some() {
                return invalid("name", format!("`{name}`: two tasks have this name"));
            }
        }
        Ok(())
    }

    fn apart(&self, items: &[Spanned<ApartFile>]) -> Result<Vec<ApartGroup>, InputError> {
        let (mut groups, mut grouped) = (Vec::new(), 0);
        for (at, item) in items.iter().enumerate() {
            let invalid = |message: String| {
                let error = InputError::new(self.path, message).in_field(format!("apart[{at}].tasks"));
                error.at(item)
            };
            let mut tasks = BTreeSet::new();
            for name in &item.value.tasks {
                let unknown = || invalid(format!("`{}`: no task has this name", excerpt(name)));
                tasks.extend(self.groups.get(name).ok_or_else(unknown)?.clone());
            }
            grouped += tasks.len();
            if tasks.len() < 2 {
                return Err(invalid("one task: expected at least two".into()));
            }
            if grouped > MOST_GROUPED {
                return Err(invalid(format!("expected at most {MOST_GROUPED} tasks in all groups")));
            }
            groups.push(ApartGroup { tasks: tasks.into_iter().collect(), level: item.value.level });
        }
        Ok(groups)
    }

    fn transfers(&self, items: &[Spanned<TransferFile>]) -> Result<Vec<Transfer>, InputError> {
        let mut bytes = BTreeMap::<(u32, u32), u64>::new();
        let mut total = 0.0;
        for (at, item) in items.iter().enumerate() {
            let invalid = |field: &str, message: String| {
                let error = InputError::new(self.path, message).in_field(format!("transfers[{at}].{field}"));
                error.at(item)
            };
            let tasks = |field: &str, name: &String| {
                let known = self.groups.get(name).cloned();
                known.ok_or_else(|| invalid(field, format!("`{}`: no task has this name", excerpt(name))))
            };
            let TransferFile { from, to, bytes: amount } = &item.value;
            let (senders, receivers) = (tasks("from", from)?, tasks("to", to)?);
            if senders == receivers && senders.len() == 1 {
                return Err(invalid("to", format!("`{}`: a task sends nothing to itself", excerpt(to))));
            }
            // Check before creation, so that a short hostile file costs no memory.
            if bytes.len() + senders.len() * receivers.len() > MOST_TRANSFERS {
                return Err(invalid("to", format!("more than {MOST_TRANSFERS} transfers in one app")));
            }
            for (from, to) in senders.flat_map(|from| receivers.clone().map(move |to| (from, to))) {
                if from != to && bytes.insert((from, to), amount.0).is_some() {
                    let [from, to] = [from, to].map(|task| &self.names[task as usize]);
                    return Err(invalid("to", format!("the transfer from {from} to {to} is given twice")));
                }
                total += amount.0 as f64;
            }
            if total > MOST_BYTES {
                return Err(invalid("bytes", "too much for one app".into()));
            }
        }
        Ok(bytes.into_iter().map(|((from, to), bytes)| Transfer { from, to, bytes: Bytes(bytes) }).collect())
    }
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
