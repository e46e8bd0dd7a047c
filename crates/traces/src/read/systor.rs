//! The dialect of the block traces of virtual desktops (Lee et al., SYSTOR 2017), SNIA trace 4964.
//!
//! `Timestamp,Response,IOType,LUN,Offset,Size`: seconds since 1970, the response time in seconds (not used, and empty if
//! unknown), `R` or `W`, the unit, and bytes.

use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 6] = ["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"];

pub(super) fn matches(line: &str) -> bool {
    let word = cells(line).nth(2).unwrap_or("");
    let typed = word.eq_ignore_ascii_case("r") || word.eq_ignore_ascii_case("w");
    fields::is_heading(line, &COLUMNS) || typed && cells(line).count() == COLUMNS.len()
}

pub(super) struct Parser {
    pub volume: Option<String>,
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "Timestamp", size: "Size" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if fields::is_heading(line.text, &COLUMNS) {
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let [at, _, kind, unit, offset, size] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        let request = Request {
            at: fields::seconds(line, "Timestamp", at)?,
            kind: fields::kind(line, "IOType", kind, &["R"], &["W"])?,
            size: fields::signed(line, "Size", "bytes", size)?,
            offset: Some(fields::signed(line, "Offset", "bytes", offset)?),
        };
        let selected = self.volume.as_ref().is_none_or(|volume| volume == unit);
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
