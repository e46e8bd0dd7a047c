//! Text files that a user provides: their paths, and readers of their lines. A table in columns takes the place of a text
//! file of cells ([`Text::from_rows`]).
//!
//! A file is plain text, gzip, bzip2 or zstd, recognized by its first bytes rather than by its name. The reader streams a
//! file in constant memory, and always to its end. It therefore rejects a truncated file even if the wanted part is
//! complete. Every error names the file and the line, and the field where there is one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use super::compression::Compression;
use super::{Cell, InputError, Rows, cells, excerpt, format_number, reason};

/// Length of the longest accepted line, in bytes. The limit bounds the memory for a damaged file.
const LONGEST_LINE: u64 = 1 << 20;

/// Folders of the files that a scenario names.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Folder that relative names start from: the scenario's own.
    pub base: PathBuf,
    /// Folder of traces, for names that begin with `data:`; set by LEEWARD_DATA.
    pub data: Option<PathBuf>,
}

impl Files {
    /// Opens a file by its name in a scenario: a path relative to the base folder, an absolute path, or
    /// `data:NAME/FILE` below the data folder.
    ///
    /// # Errors
    ///
    /// Fails if the name is not valid (see [`Files::path`]) or if the file cannot be opened and read.
    pub fn open(&self, name: &str) -> Result<Text, InputError> {
        let path = self.path(name)?;
        let file = File::open(&path).map_err(|error| {
            let location =
                if path == Path::new(name) { String::new() } else { format!(" ({})", path.display()) };
            InputError::new(name, reason(&error) + &location)
        })?;
        Text::from_reader(name, BufReader::new(file))
    }

    /// The path of a file with this name; see [`Files::open`]. The file need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the name begins with `data:` and no data folder is set, or if the name leads out of the data folder.
    pub fn path(&self, name: &str) -> Result<PathBuf, InputError> {
        let Some(below) = name.strip_prefix("data:") else { return Ok(self.base.join(name)) };
        let Some(data) = &self.data else {
            let message = "data folder unknown; set LEEWARD_DATA";
            return Err(InputError::new(name, message));
        };
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        if below.is_empty() || !Path::new(below).components().all(plain) {
            let message = "expected `data:` and a path below the data folder, without `..`";
            return Err(InputError::new(name, message));
        }
        Ok(data.join(below))
    }
}

/// An open text file, with its name for error messages.
pub struct Text {
    name: String,
    reader: Box<dyn BufRead>,
    compression: Option<Compression>,
    /// Rows in place of the text.
    rows: Option<Box<dyn Rows>>,
}

impl Text {
    /// The text in `bytes`, plain or compressed.
    ///
    /// # Errors
    ///
    /// Never fails, because bytes in memory can be read: [`Lines`] reports invalid compressed data and invalid UTF-8.
    pub fn from_bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Result<Text, InputError> {
        Text::from_reader(name, Cursor::new(bytes.into()))
    }

    /// The text that `reader` yields, plain or compressed.
    ///
    /// # Errors
    ///
    /// Fails if the beginning of the text cannot be read.
    pub fn from_reader(name: &str, mut reader: impl BufRead + 'static) -> Result<Text, InputError> {
        let start = reader.fill_buf().map_err(|error| InputError::new(name, reason(&error)))?;
        let compression = Compression::of(start);
        let reader: Box<dyn BufRead> = match compression {
            Some(compression) => compression.decoder(reader),
            None => Box::new(reader),
        };
        Ok(Text { name: name.to_owned(), reader, compression, rows: None })
    }

    /// A table: its names of columns are the first line, and each row is a line whose cells are [`Line::cells`].
    pub fn from_rows(name: &str, rows: Box<dyn Rows>) -> Text {
        Text { name: name.to_owned(), reader: Box::new(io::empty()), compression: None, rows: Some(rows) }
    }

    /// The name of the text in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lines of this text.
    pub fn lines(self) -> Lines {
        Lines { text: self, number: 0, buffer: Vec::new(), any: false, header: String::new() }
    }
}

/// The lines of a text, one at a time. Empty lines are skipped; a text with only empty lines is an error.
pub struct Lines {
    text: Text,
    number: u64,
    buffer: Vec<u8>,
    /// True after the first non-empty line.
    any: bool,
    /// Names of the columns of a table.
    header: String,
}

impl Lines {
    /// The next non-empty line, or `None` after the last.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be read, is empty, or has a line that is not UTF-8 or too long.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, InputError> {
        if self.text.rows.is_some() {
            return self.next_row();
        }
        loop {
            self.buffer.clear();
            let reader = (&mut self.text.reader).take(LONGEST_LINE + 1);
            let read = { reader }.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|error| self.read_error(&error))?;
            if read == 0 {
                return if self.any { Ok(None) } else { Err(self.error("the file is empty")) };
            }
            self.number += 1;
            if read as u64 > LONGEST_LINE {
                let message = format!("the line is longer than {LONGEST_LINE} bytes: is this a text file?");
                return Err(self.error(message).at_line(self.number));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        self.any = true;
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => {
                let text = text.trim_start_matches('\u{feff}').trim_ascii_end();
                Ok(Some(Line { file: &self.text.name, number: self.number, text, row: None }))
            }
            Err(_) => Err(self.error("not UTF-8 text").at_line(self.number)),
        }
    }

    /// The names of the columns of a table, then its rows.
    fn next_row(&mut self) -> Result<Option<Line<'_>>, InputError> {
        let Some(rows) = &mut self.text.rows else { return Ok(None) };
        self.number += 1;
        let (file, number) = (&self.text.name, self.number);
        if number == 1 {
            self.header = rows.columns().join(",");
            return Ok(Some(Line { file, number, text: &self.header, row: None }));
        }
        match rows.advance() {
            Ok(true) => Ok(Some(Line { file, number, text: "", row: Some(&**rows) })),
            Ok(false) => Ok(None),
            Err(message) => Err(InputError::new(file, message).at_line(number)),
        }
    }

    /// An error about the whole file.
    pub fn error(&self, message: impl std::fmt::Display) -> InputError {
        InputError::new(&self.text.name, message)
    }

    fn read_error(&self, error: &io::Error) -> InputError {
        let message = match self.text.compression.map(Compression::name) {
            Some(name) if error.kind() == io::ErrorKind::UnexpectedEof => {
                format!("the {name} data ends early: is the file truncated?")
            }
            Some(name) => format!("not readable as {name}: {error}"),
            None => error.to_string(),
        };
        self.error(message).at_line(self.number + 1)
    }
}

/// A line, without its line ending; or a row of a table.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    file: &'a str,
    number: u64,
    /// Text of the line; empty for a row of a table.
    pub text: &'a str,
    row: Option<&'a dyn Rows>,
}

impl<'a> Line<'a> {
    /// Number of its cells.
    pub fn width(&self) -> usize {
        self.row.map_or_else(|| cells(self.text).count(), |row| row.columns().len())
    }

    /// The cell at a position, if the line is long enough.
    pub fn cell(&self, at: usize) -> Option<Cell<'a>> {
        match self.row {
            Some(row) => (at < row.columns().len()).then(|| row.cell(at)),
            None => cells(self.text).nth(at).map(Cell::Text),
        }
    }

    /// Its cells: those between commas, or those of the row.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'a>> + use<'a> {
        let text = self.row.is_none().then(|| cells(self.text).map(Cell::Text));
        let row = self.row.map(|row| (0..row.columns().len()).map(move |at| row.cell(at)));
        text.into_iter().flatten().chain(row.into_iter().flatten())
    }

    /// An error about one field of this line.
    pub fn error(&self, field: &str, message: impl std::fmt::Display) -> InputError {
        InputError::new(self.file, message).at_line(self.number).in_field(field)
    }

    /// Parses a finite, non-negative number. `what` describes the number in the error.
    ///
    /// # Errors
    ///
    /// Fails if `cell` is not a number, not finite, or negative.
    pub fn number<'c>(&self, field: &str, what: &str, cell: impl Into<Cell<'c>>) -> Result<f64, InputError> {
        let cell = cell.into();
        let invalid = |problem: &str| {
            Err(self.error(field, format_args!("`{}`: {problem}; expected {what}", excerpt(&cell.text()))))
        };
        match cell.number() {
            None => invalid("not a number"),
            Some(number) if !number.is_finite() => invalid("not a finite number"),
            Some(number) if number < 0.0 => invalid("must not be negative"),
            Some(number) => Ok(number),
        }
    }

    /// Parses a non-negative whole number. `what` describes the number in the error.
    ///
    /// # Errors
    ///
    /// Fails if `cell` is not a whole number from 0 to the largest `u64`.
    pub fn count<'c>(&self, field: &str, what: &str, cell: impl Into<Cell<'c>>) -> Result<u64, InputError> {
        let cell = cell.into();
        cell.count().ok_or_else(|| {
            let text = cell.text();
            self.error(
                field,
                format_args!("`{}`: not a whole number from 0; expected {what}", excerpt(&text)),
            )
        })
    }
}

/// The latest time among the lines of a file so far.
#[derive(Default)]
pub struct Clock(f64);

impl Clock {
    /// Advances to the time of the next line, in seconds.
    ///
    /// # Errors
    ///
    /// Fails if the time is before the time of the previous line.
    pub fn reach(&mut self, line: &Line<'_>, field: &str, seconds: f64) -> Result<f64, InputError> {
        if seconds < self.0 {
            let message = format!(
                "{} s is before the line above ({} s): sort the lines by time",
                format_number(seconds),
                format_number(self.0)
            );
            return Err(line.error(field, message));
        }
        self.0 = seconds;
        Ok(seconds)
    }
}
