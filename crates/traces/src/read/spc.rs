//! The dialect of the Storage Performance Council (SPC trace file format 1.0.1), as in the traces of the UMass
//! repository.
//!
//! `ASU,LBA,Size,Opcode,Timestamp`: the address space unit, its block of 512 bytes, the size in bytes, `R` or `W`, and
//! seconds. Further fields are ignored.

use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 5] = ["ASU", "LBA", "Size", "Opcode", "Timestamp"];

pub(super) fn matches(line: &str) -> bool {
    let word = cells(line).nth(3).unwrap_or("");
    word.eq_ignore_ascii_case("r") || word.eq_ignore_ascii_case("w")
}

pub(super) struct Parser {
    pub volume: Option<String>,
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "Timestamp", size: "Size" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        let [unit, block, size, kind, at] = fields::row(line, COLUMNS, COLUMNS.len(), true)?;
        let request = Request {
            at: fields::seconds(line, "Timestamp", at)?,
            kind: fields::kind(line, "Opcode", kind, &["R"], &["W"])?,
            size: fields::signed(line, "Size", "bytes", size)?,
            offset: Some(fields::sectors(line, "LBA", block)?),
        };
        let selected = self.volume.as_ref().is_none_or(|volume| volume == unit);
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
