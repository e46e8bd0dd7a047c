//! The only error type for input files. It prints on one line, regardless of the file's content.

use std::fmt;

use super::{Place, Spanned};

/// An error in an input: file, line, field, the problem, and the expected value.
///
/// Printed on one line: `cluster.yaml:7:12: racks[3].uplink: ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError {
    /// The file as the user named it, or a placeholder (`<text>`).
    pub file: String,
    /// Line from 1, if known.
    pub line: Option<u64>,
    /// Column from 1, if known.
    pub column: Option<u64>,
    /// The field, as a path (`racks[3].uplink`) or a column name.
    pub field: Option<String>,
    /// The problem and the expected value.
    pub message: String,
}

impl InputError {
    /// An error about the whole of `file`.
    pub fn new(file: impl Into<String>, message: impl fmt::Display) -> Self {
        let (file, message) = (file.into(), message.to_string());
        InputError { file, line: None, column: None, field: None, message }
    }

    /// The same error, at a line (from 1).
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same error, about a field.
    pub fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// The same error, about a field inside `parent`.
    pub fn under(mut self, parent: impl fmt::Display) -> Self {
        self.field = Some(match self.field {
            Some(field) => format!("{parent}.{field}"),
            None => parent.to_string(),
        });
        self
    }

    /// The same error, at the place of `spanned` in its YAML text.
    pub fn at<T>(self, spanned: &Spanned<T>) -> Self {
        self.at_place(spanned.place)
    }

    /// The same error, at a place in a YAML text. An unknown place changes nothing.
    pub(crate) fn at_place(mut self, place: Place) -> Self {
        if place.line > 0 {
            (self.line, self.column) = (Some(place.line.into()), Some(place.column.into()));
        }
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputError {}

/// A number for an error message. Very large and very small numbers are in scientific notation.
pub fn format_number(number: f64) -> String {
    let size = number.abs();
    let plain = !number.is_finite() || size == 0.0 || (1e-6..1e15).contains(&size);
    if plain { number.to_string() } else { format!("{number:e}") }
}

/// Text of a file for an error message: on one line, cut after 60 characters.
pub fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let short: String = text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { short + "..." } else { short }
}
