//! The dialect of the block traces of Alibaba Cloud (Li et al., IISWC 2020).
//!
//! `device_id,opcode,offset,length,timestamp`: `R` or `W`, bytes, and microseconds since 1970.

use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 5] = ["device_id", "opcode", "offset", "length", "timestamp"];
const MICROSECOND: u64 = 1000;

pub(super) fn matches(line: &str) -> bool {
    let word = cells(line).nth(1).unwrap_or("");
    let typed = word.eq_ignore_ascii_case("r") || word.eq_ignore_ascii_case("w");
    fields::is_heading(line, &COLUMNS) || typed && cells(line).count() == COLUMNS.len()
}

pub(super) struct Parser {
    pub volume: Option<String>,
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "timestamp", size: "length" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if fields::is_heading(line.text, &COLUMNS) {
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let [device, kind, offset, size, at] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        let request = Request {
            at: fields::ticks(line, "timestamp", at, MICROSECOND)?,
            kind: fields::kind(line, "opcode", kind, &["R"], &["W"])?,
            size: fields::signed(line, "length", "bytes", size)?,
            offset: Some(fields::signed(line, "offset", "bytes", offset)?),
        };
        let selected = self.volume.as_ref().is_none_or(|volume| volume == device);
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
