//! The dialect of the block traces of Tencent's cloud block storage (Zhang et al., USENIX ATC 2020), SNIA trace 27917.
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`: seconds since 1970, sectors of 512 bytes, and 0 for a read or 1 for a write.

use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 5] = ["Timestamp", "Offset", "Size", "IOType", "VolumeID"];

pub(super) fn matches(line: &str) -> bool {
    let number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    let typed = matches!(cells(line).nth(3), Some("0" | "1"));
    fields::is_heading(line, &COLUMNS)
        || typed && cells(line).count() == COLUMNS.len() && cells(line).all(number)
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
        let [at, offset, size, kind, disk] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        let request = Request {
            at: fields::seconds(line, "Timestamp", at)?,
            kind: fields::kind(line, "IOType", kind, &["0"], &["1"])?,
            size: fields::sectors(line, "Size", size)?,
            offset: Some(fields::sectors(line, "Offset", offset)?),
        };
        let selected = self.volume.as_ref().is_none_or(|volume| volume == disk);
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
