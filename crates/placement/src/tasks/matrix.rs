//! Traffic matrices as square matrices of bytes: a row for each sending task, a column for each receiving task. The
//! format is CSV without a header, as profilers of MPI programs write it, or rows of numbers. A square matrix without
//! an app file is an app of identical tasks.

use leeward_fabric::Bytes;
use leeward_fabric::input::{Files, InputError, format_number, read_matrix};

use super::app::{App, MOST_BYTES, MOST_PHASES, MOST_TASKS, MOST_TRANSFERS};
use super::{AppRequest, Task, Transfer};

/// A partly read square matrix.
#[derive(Default)]
struct Square {
    transfers: Vec<Transfer>,
    total: f64,
}

impl Square {
    /// Adds the next number.
    ///
    /// # Errors
    /// A message for an invalid number, or an app that is too large.
    fn add(&mut self, from: u64, to: u64, bytes: f64) -> Result<(), String> {
        self.total += bytes;
        // NaN fails this test.
        if !(bytes >= 0.0 && bytes.is_finite()) {
            return Err(format!("{}: expected a number of bytes, not negative", format_number(bytes)));
        }
        if self.total > MOST_BYTES {
            return Err(format!("{}: too much for one app", format_number(bytes)));
        }
        // Data from a task to itself crosses no link.
        if bytes < 0.5 || from == to {
            return Ok(());
        }
        if self.transfers.len() == MOST_TRANSFERS {
            return Err(format!("more than {MOST_TRANSFERS} transfers in one app"));
        }
        let (from, to, bytes) = (from as u32, to as u32, Bytes(bytes.round() as u64));
        self.transfers.push(Transfer { from, to, bytes, phase: 0 });
        Ok(())
    }
}

/// Reads a square matrix from CSV; `tasks` is the expected number of rows, if known. Returns the number of rows and the
/// transfers.
pub(super) fn read(
    name: &str,
    files: &Files,
    tasks: Option<usize>,
) -> Result<(usize, Vec<Transfer>), InputError> {
    if name.to_ascii_lowercase().ends_with(".npy") {
        let message =
            "a NumPy array: in an app file the matrix is CSV; `leeward place tasks --matrix` reads both";
        return Err(InputError::new(name, message));
    }
    let mut lines = files.open(name)?.lines();
    let mut square = Square::default();
    let most = tasks.unwrap_or(MOST_TASKS) as u64;
    let rows = read_matrix(&mut lines, |line, from, to, bytes| {
        let number = from.max(to) + 1;
        if number > most {
            let limit = if tasks.is_some() { "there are" } else { "an app has at most" };
            return Err(line.error(
                "columns",
                format!("row or column {number} of the matrix, but {limit} {most} tasks"),
            ));
        }
        let added = square.add(from, to, bytes);
        added.map_err(|message| line.error(&format!("column {}", to + 1), message))
    })?;
    match tasks {
        Some(tasks) if rows != tasks as u64 => {
            Err(lines.error(format!("a matrix of {rows} rows, but there are {tasks} tasks")))
        }
        _ => Ok((rows as usize, square.transfers)),
    }
}

impl App {
    /// Creates an app of identical tasks from a square matrix of bytes, one task per row; the names are `task0`,
    /// `task1` and so on.
    ///
    /// # Errors
    /// [`InputError`] with file, line and column.
    pub fn from_matrix_file(name: &str, files: &Files, task: Task) -> Result<App, InputError> {
        let (rows, transfers) = read(name, files, None)?;
        let mut app = App::identical(name, rows, task);
        app.request.transfers = transfers;
        Ok(app)
    }

    /// Creates an app of identical tasks from rows of numbers.
    ///
    /// # Errors
    /// [`InputError`] about `matrix`, with the position of the invalid number.
    pub fn from_rows(rows: &[Vec<f64>], task: Task) -> Result<App, InputError> {
        if rows.is_empty() || rows.len() > MOST_TASKS {
            let message = format!("{} rows: expected 1 to {MOST_TASKS}", rows.len());
            return Err(InputError::new("matrix", message));
        }
        let mut app = App::identical("matrix", rows.len(), task);
        app.set_matrices(&[rows.to_vec()])?;
        Ok(app)
    }

    /// An app of identical tasks without traffic.
    fn identical(name: &str, tasks: usize, task: Task) -> App {
        let file = name.rsplit(['/', ':']).next().unwrap_or(name);
        let stem = file.strip_suffix(".csv").unwrap_or(file);
        App {
            name: stem.to_owned(),
            names: (0..tasks).map(|at| format!("task{at}")).collect(),
            commands: vec![None; tasks],
            request: AppRequest { tasks: vec![task; tasks], ..AppRequest::default() },
        }
    }

    /// Replaces the traffic between tasks by a square matrix of bytes from CSV.
    ///
    /// # Errors
    /// [`InputError`] with file, line and column.
    pub fn set_matrix_file(&mut self, name: &str, files: &Files) -> Result<(), InputError> {
        self.request.transfers = read(name, files, Some(self.names.len()))?.1;
        Ok(())
    }

    /// Replaces the traffic between tasks by a square matrix of bytes for each phase: a row for each sender, a column for
    /// each receiver.
    ///
    /// # Errors
    /// [`InputError`] about `matrix`, with the position of the invalid number.
    pub fn set_matrices(&mut self, phases: &[Vec<Vec<f64>>]) -> Result<(), InputError> {
        if phases.len() > MOST_PHASES {
            let message = format!("{} phases: expected at most {MOST_PHASES}", phases.len());
            return Err(InputError::new("matrix", message));
        }
        let mut square = Square::default();
        for (phase, rows) in (0..).zip(phases) {
            let first = square.transfers.len();
            self.read_rows(rows, &mut square)?;
            square.transfers[first..].iter_mut().for_each(|transfer| transfer.phase = phase);
        }
        self.request.transfers = square.transfers;
        Ok(())
    }

    fn read_rows(&self, rows: &[Vec<f64>], square: &mut Square) -> Result<(), InputError> {
        let invalid = |message: String| Err(InputError::new("matrix", message));
        let tasks = self.names.len();
        if rows.len() != tasks {
            return invalid(format!("{} rows, but there are {tasks} tasks", rows.len()));
        }
        for (from, row) in (0..).zip(rows) {
            if row.len() != tasks {
                let message =
                    format!("row {}: {} numbers in {tasks} rows: not a square", from + 1, row.len());
                return invalid(message);
            }
            for (to, &bytes) in (0..).zip(row) {
                if let Err(message) = square.add(from, to, bytes) {
                    return invalid(format!("row {}, column {}: {message}", from + 1, to + 1));
                }
            }
        }
        Ok(())
    }
}
