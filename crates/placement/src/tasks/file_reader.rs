//! Reader of app files: turns tasks, names and traffic into a request.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::input::{Files, InputError, Spanned, excerpt, read_json, read_text, read_yaml};
use leeward_fabric::{Bytes, Nanos};

use super::app::{App, MOST_BYTES, MOST_PHASES, MOST_TASKS, MOST_TRANSFERS};
use super::file::{ApartFile, AppFile, LatencyFile, PhaseFile, TaskFile, TransferFile};
use super::{AppRequest, Task, Transfer, matrix};
use crate::{ApartGroup, Constraints, LatencyBound, MOST_BOUNDS, MOST_GROUPED};

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

    /// Reads an app from a JSON value with the fields of an app file. A matrix, which is the name of a file, is rejected.
    ///
    /// # Errors
    /// [`InputError`] with the field.
    pub fn from_json(value: &serde_json::Value) -> Result<App, InputError> {
        let file: AppFile = read_json("app", value)?;
        let of_phase = file.phases.iter().position(|phase| phase.value.matrix.is_some());
        let of_phase = of_phase.map(|number| format!("phases[{number}].matrix"));
        let of_app = file.matrix.is_some().then(|| "matrix".to_owned());
        if let Some(field) = of_app.or(of_phase) {
            let message = "files cannot be named here; give `transfers`";
            return Err(InputError::new("app", message).in_field(field));
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
        let transfers = self.traffic(&file, files)?;
        let constraints = Constraints {
            apart_groups: self.apart(&file.apart)?,
            latency: self.latency(&file.latency)?,
            ..Constraints::default()
        };
        let name = file.name.unwrap_or_else(|| "app".into());
        let (tasks, goal) = (self.tasks, file.goal);
        let request = AppRequest { tasks, transfers, constraints, goal, ..AppRequest::default() };
        Ok(App { name, names: self.names, commands: self.commands, request })
    }

    /// Traffic of the app: transfers, a matrix, or phases of these.
    fn traffic(&self, file: &AppFile, files: &Files) -> Result<Vec<Transfer>, InputError> {
        let mut total = Total::default();
        if file.phases.is_empty() {
            return self.phase("", &file.transfers, file.matrix.as_deref(), files, 0, &mut total);
        }
        let invalid = |field: &str, message: &str| InputError::new(self.path, message).in_field(field);
        if file.matrix.is_some() || !file.transfers.is_empty() {
            return Err(invalid("phases", "give `phases`, or `transfers`, or `matrix`"));
        }
        if file.phases.len() > MOST_PHASES {
            let message = format!("{}: expected at most {MOST_PHASES}", file.phases.len());
            return Err(invalid("phases", &message));
        }
        let mut all = Vec::new();
        for (number, item) in (0..).zip(&file.phases) {
            let field = format!("phases[{number}].");
            let PhaseFile { transfers, matrix } = &item.value;
            if transfers.is_empty() && matrix.is_none() {
                let message = "expected `transfers` or `matrix`";
                return Err(invalid(&format!("phases[{number}]"), message).at(item));
            }
            all.extend(self.phase(&field, transfers, matrix.as_deref(), files, number, &mut total)?);
        }
        Ok(all)
    }

    /// Traffic of a phase, from the fields of this beginning.
    fn phase(
        &self,
        field: &str,
        transfers: &[Spanned<TransferFile>],
        matrix: Option<&str>,
        files: &Files,
        phase: u32,
        total: &mut Total,
    ) -> Result<Vec<Transfer>, InputError> {
        let Some(matrix) = matrix else { return self.transfers(field, transfers, phase, total) };
        let invalid =
            |message: String| InputError::new(self.path, message).in_field(format!("{field}matrix"));
        if !transfers.is_empty() {
            return Err(invalid("give `transfers` or `matrix`, not both".to_owned()));
        }
        let read = matrix::read(matrix, files, Some(self.tasks.len()))?.1;
        let sum: f64 = read.iter().map(|transfer| transfer.bytes.0 as f64).sum();
        total.add(read.len(), sum).map_err(|(_, message)| invalid(message))?;
        Ok(read.into_iter().map(|transfer| Transfer { phase, ..transfer }).collect())
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
                tasks.extend(self.named("tasks", name, |_, message| invalid(message))?);
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

    fn latency(&self, items: &[Spanned<LatencyFile>]) -> Result<Vec<LatencyBound>, InputError> {
        let mut bounds = BTreeMap::<(u32, u32), Nanos>::new();
        for (at, item) in items.iter().enumerate() {
            let invalid = |field: &str, message: String| {
                let error = InputError::new(self.path, message).in_field(format!("latency[{at}].{field}"));
                error.at(item)
            };
            let LatencyFile { from, to, max } = &item.value;
            let (one, other) = (self.named("from", from, invalid)?, self.named("to", to, invalid)?);
            let mut names_two = false;
            for (one, other) in one.flat_map(|one| other.clone().map(move |other| (one, other))) {
                if one != other {
                    names_two = true;
                    let bound = bounds.entry((one.min(other), one.max(other))).or_insert(*max);
                    *bound = (*bound).min(*max);
                }
                if bounds.len() > MOST_BOUNDS {
                    let message = format!("expected at most {MOST_BOUNDS} pairs of tasks in all bounds");
                    return Err(invalid("to", message));
                }
            }
            if !names_two {
                return Err(invalid("to", format!("`{}`: expected another task", excerpt(to))));
            }
        }
        Ok(bounds.into_iter().map(|(tasks, max)| LatencyBound { tasks, max }).collect())
    }

    /// Tasks of a name.
    fn named(
        &self,
        field: &str,
        name: &str,
        invalid: impl Fn(&str, String) -> InputError,
    ) -> Result<std::ops::Range<u32>, InputError> {
        let unknown = || invalid(field, format!("`{}`: no task has this name", excerpt(name)));
        self.groups.get(name).cloned().ok_or_else(unknown)
    }

    fn transfers(
        &self,
        field: &str,
        items: &[Spanned<TransferFile>],
        phase: u32,
        total: &mut Total,
    ) -> Result<Vec<Transfer>, InputError> {
        let mut bytes = BTreeMap::<(u32, u32), u64>::new();
        for (at, item) in items.iter().enumerate() {
            let invalid = |end: &str, message: String| {
                let field = format!("{field}transfers[{at}].{end}");
                InputError::new(self.path, message).in_field(field).at(item)
            };
            let TransferFile { from, to, bytes: amount } = &item.value;
            let (senders, receivers) = (self.named("from", from, invalid)?, self.named("to", to, invalid)?);
            if senders == receivers && senders.len() == 1 {
                return Err(invalid("to", format!("`{}`: a task sends nothing to itself", excerpt(to))));
            }
            // Check before creation, so that a short hostile file costs no memory.
            let pairs = senders.len() * receivers.len();
            let counted = total.add(pairs, amount.0 as f64 * pairs as f64);
            counted.map_err(|(field, message)| invalid(field, message))?;
            for (from, to) in senders.flat_map(|from| receivers.clone().map(move |to| (from, to))) {
                if from != to && bytes.insert((from, to), amount.0).is_some() {
                    let [from, to] = [from, to].map(|task| &self.names[task as usize]);
                    return Err(invalid("to", format!("the transfer from {from} to {to} is given twice")));
                }
            }
        }
        let transfer = |((from, to), bytes)| Transfer { from, to, bytes: Bytes(bytes), phase };
        Ok(bytes.into_iter().map(transfer).collect())
    }
}

/// Transfers of an app so far, and their bytes.
#[derive(Default)]
struct Total {
    transfers: usize,
    bytes: f64,
}

impl Total {
    /// Counts transfers, and their bytes.
    ///
    /// # Errors
    /// The field of a transfer that exceeds a limit, and a message.
    fn add(&mut self, transfers: usize, bytes: f64) -> Result<(), (&'static str, String)> {
        self.transfers = self.transfers.saturating_add(transfers);
        self.bytes += bytes;
        if self.transfers > MOST_TRANSFERS {
            return Err(("to", format!("more than {MOST_TRANSFERS} transfers in one app")));
        }
        if self.bytes > MOST_BYTES { Err(("bytes", "too much for one app".to_owned())) } else { Ok(()) }
    }
}
