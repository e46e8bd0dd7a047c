//! Reads YAML files into values. Messages of the YAML library are reworded, because users know neither the library nor
//! the types behind the file.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{
    Error, NonFiniteFloatPolicy, Options, UserMessageFormatter, with_deserializer_from_str_with_options,
};

use super::{InputError, Location, excerpt};

/// Limit on values that a file writes out (hosts times fields); 100,000 hosts with every field are two million.
const MOST_VALUES: usize = 5_000_000;
/// Limit on references (`*alias`, `<<`) in a file to its anchors.
const MOST_ALIASES: usize = 200_000;
/// Limit on what all references together may repeat: values, and beginnings and ends of lists and maps.
const MOST_REPEATED: usize = 4_000_000;

/// Reads a YAML text (JSON is YAML too) into a `T`; `file` names the text in errors.
///
/// `T` and its parts must not have a field called `value`. [`Spanned`](super::Spanned) has a field of this name, and
/// errors leave it out of field paths.
///
/// # Errors
///
/// Fails if the text is empty, is not YAML, exceeds the limits, or does not describe a `T`.
pub fn read_yaml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() {
        return Err(InputError::new(file, "the file is empty"));
    }
    // Tracking fields takes a third of the time of a large file, so only a rejected file is read again with tracking.
    // A file that exceeds the limits is not read again.
    let read = |deserializer: serde_saphyr::Deserializer<'_, '_>| T::deserialize(deserializer);
    with_deserializer_from_str_with_options(text, options(), read).or_else(|error| match error {
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => {
            Err(located(file, text, Vec::new(), &error))
        }
        _ => read_with_path(file, text),
    })
}

fn read_with_path<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    let mut path = Vec::new();
    with_deserializer_from_str_with_options(text, options(), |deserializer| {
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(deserializer, &mut track);
        T::deserialize(tracked).inspect_err(|_| path = steps(&track.path()))
    })
    .map_err(|error| located(file, text, path, &error))
}

/// The message of `error`, with its place in the text and the field at `path`.
fn located(file: &str, text: &str, mut path: Vec<String>, error: &Error) -> InputError {
    let (field, mut message) = explain(error);
    path.extend(field);
    if let (Error::InvalidScalar { .. }, Some(found)) = (error, word_at(text, error.location())) {
        message = format!("`{}`: {message}", excerpt(found));
    }
    let located = InputError::new(file, message).at_place(error.location().unwrap_or(Location::UNKNOWN));
    if path.is_empty() { located } else { located.in_field(joined(&path)) }
}

/// The word or number that stands at a place in the text.
fn word_at(text: &str, place: Option<Location>) -> Option<&str> {
    let place = place.filter(|place| place.line() > 0)?;
    let line = text.lines().nth(usize::try_from(place.line() - 1).ok()?)?;
    let (start, _) = line.char_indices().nth(usize::try_from(place.column().checked_sub(1)?).ok()?)?;
    let word = line[start..].split([',', '}', ']', '#', ' ', '\t']).next()?;
    (!word.is_empty()).then_some(word)
}

/// Limits: generous for a long legitimate file, strict for a hostile one. A few lines of nested aliases can expand to
/// billions of values.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MOST_VALUES,
            max_events: 2 * MOST_VALUES,
            max_aliases: MOST_ALIASES,
            max_merge_keys: MOST_ALIASES,
            enforce_alias_anchor_ratio: false,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_REPEATED },
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

/// The steps of a path as the user wrote them, without the steps that `Spanned` adds.
pub(super) fn steps(path: &Path) -> Vec<String> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(format!("[{index}]")),
        Segment::Map { key } if key != "value" => Some(excerpt(key)),
        _ => None,
    };
    path.iter().filter_map(step).collect()
}

pub(super) fn joined(steps: &[String]) -> String {
    let mut path = String::new();
    for step in steps {
        if !path.is_empty() && !step.starts_with('[') {
            path.push('.');
        }
        path += step;
    }
    path
}

/// The field below the current one, if the error concerns one; and the problem with the expected value.
fn explain(error: &Error) -> (Option<String>, String) {
    let message = match error {
        Error::SerdeMissingField { field, .. } => return (Some((*field).to_owned()), "missing".into()),
        Error::DuplicateMappingKey { key, .. } => return (key.as_deref().map(excerpt), "given twice".into()),
        Error::AliasError { error, .. } => return explain(error),
        // The path already ends in the unknown field.
        Error::SerdeUnknownField { expected, .. } if expected.is_empty() => {
            "unknown field; expected none".into()
        }
        Error::SerdeUnknownField { expected, .. } => {
            format!("unknown field; expected one of {}", expected.join(", "))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("`{}`: expected one of {}", excerpt(variant), expected.join(", "))
        }
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("{}: expected {expected}", excerpt(unexpected))
        }
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | Error::UnexpectedValueForUnitEnumVariant { .. } => "expected a single word".into(),
        Error::Unexpected { expected, .. } => format!("expected {}", in_words(expected)),
        Error::InvalidScalar { ty, .. } => format!("expected {}", in_words(ty)),
        Error::NullIntoString { .. } => "empty; expected a text".into(),
        Error::Eof { .. } => "the file ends where a value is expected".into(),
        Error::UnknownAnchor { .. } => {
            "unknown alias; an alias repeats the value of an earlier anchor (`&name`)".into()
        }
        Error::MergeValueNotMapOrSeqOfMaps { .. } => "`<<` expects fields, or a list of fields".into(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias inside its own anchor".into(),
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            "a second document begins here; expected one".into()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "nested too deeply".into(),
        Error::Budget { breach: BudgetBreach::Aliases { .. } | BudgetBreach::MergeKeys { .. }, .. } => {
            format!("more than {MOST_ALIASES} aliases")
        }
        Error::Budget { .. } => format!("too large: more than {MOST_VALUES} values"),
        Error::AliasReplayLimitExceeded { .. } => {
            format!("too large: aliases repeat more than {MOST_REPEATED} values")
        }
        // Syntax errors of the parser.
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => "nested too deeply".into(),
        Error::ExternalMessage { msg, .. } => format!("not YAML: {msg}"),
        other => {
            let text = other.render_with_formatter(&UserMessageFormatter);
            let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(head, _)| head);
            return (None, text.to_owned());
        }
    };
    (None, message)
}

/// Plain words for the library's name of a kind of value.
pub(super) fn in_words(kind: &str) -> &str {
    match kind {
        "mapping start" => "fields, such as `name: value`",
        "sequence start" => "a list, such as `[a, b]`",
        "string scalar" => "a text",
        "boolean" => "`true` or `false`",
        "floating point" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 to 18446744073709551615",
        kind if kind.starts_with(['i', 'u']) && kind[1..].parse::<u8>().is_ok() => "a whole number in range",
        other => other,
    }
}
