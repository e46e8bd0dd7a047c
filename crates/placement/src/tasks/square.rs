//! Traffic matrices as squares of bytes: a row for each task that sends, a column for each that receives. As CSV without
//! a header, as profilers of MPI programs write them, or as rows of numbers. A square by itself is an app of tasks alike.

use leeward_fabric::Bytes;
use leeward_fabric::input::{Files, InputError, read_square, shown};

use super::file::{App, MOST_BYTES, MOST_TASKS, MOST_TRANSFERS};
use super::{AppRequest, Task, Transfer};

/// What a square has come to so far.
#[derive(Default)]
struct Square {
    transfers: Vec<Transfer>,
    total: f64,
}

impl Square {
    /// Takes the next number in, or says what is wrong with it.
    fn add(&mut self, from: u64, to: u64, bytes: f64) -> Result<(), String> {
        self.total += bytes;
        // Not a number is none of these.
        if !(bytes >= 0.0 && bytes.is_finite()) {
            return Err(format!("{}: expected a number of bytes, not negative", shown(bytes)));
        }
        if self.total > MOST_BYTES {
            return Err(format!("{}: too much for one app", shown(bytes)));
        }
        // What a task sends to itself crosses nothing.
        if bytes < 0.5 || from == to {
            return Ok(());
        }
        if self.transfers.len() == MOST_TRANSFERS {
            return Err(format!("more than {MOST_TRANSFERS} transfers in one app"));
        }
        let (from, to, bytes) = (from as u32, to as u32, Bytes(bytes.round() as u64));
        self.transfers.push(Transfer { from, to, bytes });
        Ok(())
    }
}

/// Reads a square as CSV; `tasks` is how many rows it must have, if that is known. Returns how many it has.
pub(super) fn read(
    name: &str,
    files: &Files,
    tasks: Option<usize>,
) -> Result<(usize, Vec<Transfer>), InputError> {
    if name.to_ascii_lowercase().ends_with(".npy") {
        let message =
            "an array of NumPy: in an app file the matrix is CSV; `leeward place tasks --matrix` reads both";
        return Err(InputError::new(name, message));
    }
    let mut lines = files.open(name)?.lines();
    let mut square = Square::default();
    let most = tasks.unwrap_or(MOST_TASKS) as u64;
    let rows = read_square(&mut lines, |line, from, to, bytes| {
        let at = from.max(to) + 1;
        if at > most {
            let there = if tasks.is_some() { "there are" } else { "an app has at most" };
            return Err(
                line.error("columns", format!("row or column {at} of the matrix, but {there} {most} tasks"))
            );
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
    /// An app of tasks alike that send each other what a square of bytes says, as many as it has rows; they are
    /// called `task0`, `task1` and so on.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and column.
    pub fn from_square(name: &str, files: &Files, task: Task) -> Result<App, InputError> {
        let (rows, transfers) = read(name, files, None)?;
        let mut app = App::alike(name, rows, task);
        app.request.transfers = transfers;
        Ok(app)
    }

    /// The same from rows of numbers.
    ///
    /// # Errors
    /// An [`InputError`] about `matrix`, which names what is wrong where.
    pub fn from_rows(rows: &[Vec<f64>], task: Task) -> Result<App, InputError> {
        if rows.is_empty() || rows.len() > MOST_TASKS {
            let message = format!("{} rows: expected 1 to {MOST_TASKS}", rows.len());
            return Err(InputError::new("matrix", message));
        }
        let mut app = App::alike("matrix", rows.len(), task);
        app.set_matrix(rows)?;
        Ok(app)
    }

    /// Tasks alike, which send each other nothing.
    fn alike(name: &str, tasks: usize, task: Task) -> App {
        let file = name.rsplit(['/', ':']).next().unwrap_or(name);
        let stem = file.strip_suffix(".csv").unwrap_or(file);
        App {
            name: stem.to_owned(),
            names: (0..tasks).map(|at| format!("task{at}")).collect(),
            request: AppRequest { tasks: vec![task; tasks], ..AppRequest::default() },
        }
    }

    /// Puts a square of bytes, as CSV, in the place of what tasks send each other.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and column.
    pub fn set_square(&mut self, name: &str, files: &Files) -> Result<(), InputError> {
        self.request.transfers = read(name, files, Some(self.names.len()))?.1;
        Ok(())
    }

    /// Puts a square of bytes in the place of what tasks send each other: a row for each sender, a column for each
    /// receiver.
    ///
    /// # Errors
    /// An [`InputError`] about `matrix`, which names what is wrong where.
    pub fn set_matrix(&mut self, rows: &[Vec<f64>]) -> Result<(), InputError> {
        let wrong = |message: String| Err(InputError::new("matrix", message));
        let tasks = self.names.len();
        if rows.len() != tasks {
            return wrong(format!("{} rows, but there are {tasks} tasks", rows.len()));
        }
        let mut square = Square::default();
        for (from, row) in (0..).zip(rows) {
            if row.len() != tasks {
                let message =
                    format!("row {}: {} numbers in {tasks} rows: not a square", from + 1, row.len());
                return wrong(message);
            }
            for (to, &bytes) in (0..).zip(row) {
                if let Err(message) = square.add(from, to, bytes) {
                    return wrong(format!("row {}, column {}: {message}", from + 1, to + 1));
                }
            }
        }
        self.request.transfers = square.transfers;
        Ok(())
    }
}
