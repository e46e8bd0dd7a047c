//! Readers of input files, and the error type of all of them.

mod compression;
mod document;
mod error;
mod json;
mod matrix;
mod mismatch;
mod reader;
mod rows;
mod scalar;
mod schema;
mod spanned;
mod table;
mod text;
mod yaml;

pub use error::{InputError, excerpt, format_number};
pub use json::read_json;
pub use matrix::read_matrix;
pub use rows::{Cell, Rows};
pub(crate) use scalar::{Scalar, scalars_by_text};
pub use spanned::{Place, Spanned};
pub use table::{Row, Table, cells};
pub use text::{Clock, Files, Line, Lines, Text};
pub use yaml::read_yaml;

/// Reads a title: text that fits one line of a terminal.
///
/// # Errors
///
/// Fails if the value is not a text, is empty, or contains control characters.
pub fn one_line<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = serde::Deserialize::deserialize(deserializer)?;
    match text {
        Some(text) if text.trim().is_empty() || text.chars().any(char::is_control) => {
            Err(serde::de::Error::custom("expected a text on one line"))
        }
        text => Ok(text),
    }
}

/// The reason why a file cannot be read, in plain words.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::IsADirectory => "is a directory; expected a file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Reads a whole text file.
///
/// # Errors
///
/// Fails if the file cannot be read or is not UTF-8.
pub fn read_text(path: &str) -> Result<String, InputError> {
    let bytes = std::fs::read(path).map_err(|error| InputError::new(path, reason(&error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        InputError::new(path, "not UTF-8 text").at_line(line as u64)
    })
}

/// Reads a secret from the first line of a file. Error messages never contain it.
///
/// # Errors
///
/// Fails if the file cannot be read or is not UTF-8, or if its first line is blank.
pub fn read_secret(path: &str) -> Result<String, InputError> {
    let text = read_text(path)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        return Err(InputError::new(path, "expected a secret in the first line"));
    }
    Ok(line.to_owned())
}
