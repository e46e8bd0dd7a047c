//! Mismatches of a document and the expected type, in words for people who do not know the type.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::spanned::Place;
use super::{InputError, excerpt};

/// Largest number of steps of a path in an error. A longer path helps less than line and column.
const LONGEST_PATH: usize = 16;

/// A mismatch, with its place and the path to its field.
#[derive(Debug, Default)]
pub(super) struct Mismatch {
    place: Place,
    /// Steps to the field, the last one first.
    path: Vec<String>,
    message: String,
}

impl Mismatch {
    pub fn new(message: impl fmt::Display) -> Mismatch {
        Mismatch { message: message.to_string(), ..Mismatch::default() }
    }

    /// The same mismatch, at `place` if it has none yet.
    pub fn at(mut self, place: Place) -> Mismatch {
        if self.place == Place::default() {
            self.place = place;
        }
        self
    }

    /// The same mismatch, with a step that precedes its path.
    pub fn under(mut self, step: String) -> Mismatch {
        self.path.push(step);
        self
    }

    /// The error of a document called `name`.
    pub fn error(self, name: &str) -> InputError {
        let error = InputError::new(name, self.message).at_place(self.place);
        if self.path.is_empty() || self.path.len() > LONGEST_PATH {
            return error;
        }
        let mut path = String::new();
        for step in self.path.iter().rev() {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path += step;
        }
        error.in_field(path)
    }
}

impl Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Mismatch {
        Mismatch::new(message)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Mismatch {
        let found = match unexpected {
            Unexpected::Map => "fields: ".to_owned(),
            Unexpected::Seq => "a list: ".to_owned(),
            Unexpected::Unit | Unexpected::Option => "empty; ".to_owned(),
            Unexpected::Str(text) => format!("`{}`: ", excerpt(text)),
            Unexpected::Bool(truth) => format!("`{truth}`: "),
            Unexpected::Unsigned(number) => format!("`{number}`: "),
            Unexpected::Signed(number) => format!("`{number}`: "),
            Unexpected::Float(number) => format!("`{number}`: "),
            other => format!("{other}: "),
        };
        Mismatch::new(format_args!("{found}expected {}", in_words(&expected.to_string())))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Mismatch {
        Mismatch::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Mismatch {
        Mismatch::new(format_args!("`{}`: expected one of {}", excerpt(variant), expected.join(", ")))
    }

    // The path already ends in the unknown field.
    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Mismatch {
        if expected.is_empty() {
            return Mismatch::new("unknown field; expected none");
        }
        Mismatch::new(format_args!("unknown field; expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Mismatch {
        Mismatch::new("missing").under(field.to_owned())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mismatch {}

/// Plain words for serde's name of a kind of value.
pub(super) fn in_words(kind: &str) -> &str {
    match kind {
        "a map" => "fields, such as `name: value`",
        "a sequence" => "a list, such as `[a, b]`",
        "a string" => "a text",
        "a boolean" => "`true` or `false`",
        "f32" | "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 to 18446744073709551615",
        "a nonzero u8" => "a whole number from 1 to 255",
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "a nonzero u64" | "a nonzero usize" => "a whole number of at least 1",
        kind if kind.starts_with("struct ") => "fields, such as `name: value`",
        kind if kind.starts_with(['i', 'u']) && kind[1..].parse::<u8>().is_ok() => "a whole number in range",
        kind => kind,
    }
}
