//! Files from outside: how they are read, and the one error that says what is wrong with one.

use std::fmt;

use serde::de::DeserializeOwned;
pub use serde_saphyr::Spanned;

/// What is wrong with an input, where: file, line, field, and what was expected.
///
/// Printed on one line: `cluster.yaml:7:12: racks[3].uplink: ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError {
    /// The file as the user named it, or what stands in for one (`<text>`).
    pub file: String,
    /// Line from 1, where known.
    pub line: Option<u64>,
    /// Column from 1, where known.
    pub column: Option<u64>,
    /// The field, as a path (`racks[3].uplink`) or a column name.
    pub field: Option<String>,
    /// What is wrong and what was expected.
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

    /// The same error, at the place in a YAML text that `spanned` was read from.
    pub fn at<T>(mut self, spanned: &Spanned<T>) -> Self {
        let (line, column) = (spanned.referenced.line(), spanned.referenced.column());
        if line > 0 {
            (self.line, self.column) = (Some(line), Some(column));
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

/// Reads a YAML text (JSON is YAML too) into a `T`; `file` is only for the error message.
pub fn read_yaml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() {
        return Err(InputError::new(file, "the file is empty"));
    }
    // A cluster of 100,000 hosts written out one by one is a legitimate file.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 5_000_000, max_events: 20_000_000, max_documents: 1 },
    };
    let mut field = None;
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(deserializer, &mut track);
        T::deserialize(tracked).inspect_err(|_| field = field_of(&track.path().to_string()))
    })
    .map_err(|error| {
        let location = error.location();
        let message = error.without_snippet().to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(head, _)| head);
        InputError {
            file: file.to_owned(),
            line: location.map(|l| l.line()),
            column: location.map(|l| l.column()),
            field,
            message: message.to_owned(),
        }
    })
}

/// The path of a field as the user wrote it: without the steps that `Spanned` puts in.
fn field_of(path: &str) -> Option<String> {
    let path = path.trim_end_matches('?').replace(".value", "");
    let path = path.trim_matches('.').trim_start_matches("value.");
    (!path.is_empty() && path != "value").then(|| path.to_owned())
}

/// Reads a whole text file.
pub fn read_text(path: &str) -> Result<String, InputError> {
    let bytes = std::fs::read(path).map_err(|error| InputError::new(path, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        InputError::new(path, "not UTF-8 text").at_line(line as u64 + 1)
    })
}
