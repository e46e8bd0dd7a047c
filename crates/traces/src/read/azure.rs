//! The dialect of the blob accesses of Azure Functions (Romero et al., SoCC 2021), the data set of 2020.
//!
//! A header, then a line for each access: milliseconds since 1970, the bytes of the blob, and `True` or `False` for a read
//! and a write. An access that is both counts as a write.

use leeward_fabric::input::{InputError, Line, cells, excerpt};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::{Kind, Request};

const COLUMNS: [&str; 11] = [
    "Timestamp",
    "AnonRegion",
    "AnonUserId",
    "AnonAppName",
    "AnonFunctionInvocationId",
    "AnonBlobName",
    "BlobType",
    "AnonBlobETag",
    "BlobBytes",
    "Read",
    "Write",
];
const MILLISECOND: u64 = 1_000_000;

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

pub(super) fn matches(line: &str) -> bool {
    let typed = [9, 10].iter().all(|&at| truth(cells(line).nth(at).unwrap_or("")).is_some());
    fields::is_heading(line, &COLUMNS) || typed && cells(line).count() == COLUMNS.len()
}

pub(super) struct Parser;

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "Timestamp", size: "BlobBytes" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if fields::is_heading(line.text, &COLUMNS) {
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let [at, _, _, _, _, _, _, _, size, read, write] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        let known = |field: &str, text: &str| {
            let message = || format!("`{}`: expected True or False", excerpt(text));
            truth(text).ok_or_else(|| line.error(field, message()))
        };
        let kind = match (known("Read", read)?, known("Write", write)?) {
            (_, true) => Kind::Write,
            (true, false) => Kind::Read,
            (false, false) => return Ok(ParsedLine::Rest(Rest::NoPayload)),
        };
        // Some copies have sizes with a decimal point.
        let at = fields::ticks(line, "Timestamp", at, MILLISECOND)?;
        let (size, is_rounded) = fields::size(line, "BlobBytes", size)?;
        Ok(ParsedLine::of(Request { at, kind, size, offset: None }, is_rounded))
    }
}
