//! The dialect of the MSR Cambridge block traces (Narayanan et al., FAST 2008).
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: ticks of 100 ns since 1601, and bytes. The response
//! time, also in ticks, is ignored: it belongs to the traced system. Lines of column names, as in some copies, are skipped.

use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 7] = ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];
/// Nanoseconds per tick.
const TICK: u64 = 100;

pub(super) fn matches(line: &str) -> bool {
    let word = cells(line).nth(3).unwrap_or("");
    let typed = ["Read", "Write"].iter().any(|known| known.eq_ignore_ascii_case(word));
    fields::is_heading(line, &COLUMNS) || (typed && cells(line).count() == COLUMNS.len())
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
        let [at, host, disk, kind, offset, size, _] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        let request = Request {
            at: fields::ticks(line, "Timestamp", at, TICK)?,
            kind: fields::kind(line, "Type", kind, &["Read"], &["Write"])?,
            size: fields::signed(line, "Size", "bytes", size)?,
            offset: Some(fields::signed(line, "Offset", "bytes", offset)?),
        };
        let volume = self.volume.as_ref().map(|volume| volume.strip_prefix(host)?.strip_prefix('.'));
        let selected = volume.is_none_or(|suffix| suffix == Some(disk));
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
