//! The dialect of the traces that were released with SNC-Meister and WorkloadCompactor:
//! `564037000,0x00001000,DiskWrite`.
//!
//! Fields are nanoseconds, bytes in hexadecimal, and `DiskRead`, `DiskWrite`, `Get` or `Put`. For disks, an offset in
//! bytes may follow, decimal or with `0x`. The released reader treats any word except `DiskRead` as a write; here it
//! must be one of the four words.

use leeward_fabric::input::{InputError, Line, cells, excerpt};

use super::{Fields, Parse, ParsedLine, fields};
use crate::Request;

const COLUMNS: [&str; 4] = ["nanoseconds", "size", "type", "offset"];
const READS: [&str; 2] = ["DiskRead", "Get"];
const WRITES: [&str; 2] = ["DiskWrite", "Put"];

pub(super) fn matches(line: &str) -> bool {
    let word = cells(line).nth(2).unwrap_or("");
    READS.iter().chain(&WRITES).any(|known| known.eq_ignore_ascii_case(word))
}

pub(super) struct Parser;

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "nanoseconds", size: "size" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        let [at, size, kind, offset] = fields::row(line, COLUMNS, 3, false)?;
        Ok(ParsedLine::Request(Request {
            at: fields::ticks(line, "nanoseconds", at, 1)?,
            kind: fields::kind(line, "type", kind, &READS, &WRITES)?,
            size: hexadecimal(line, "size", size.strip_prefix("0x").unwrap_or(size), size)?,
            offset: match offset.strip_prefix("0x") {
                _ if offset.is_empty() => None,
                Some(digits) => Some(hexadecimal(line, "offset", digits, offset)?),
                None => Some(fields::signed(line, "offset", "bytes", offset)?),
            },
        }))
    }
}

fn hexadecimal(line: &Line<'_>, field: &str, digits: &str, text: &str) -> Result<u64, InputError> {
    u64::from_str_radix(digits, 16).map_err(|_| {
        let message = format!("`{}`: expected bytes in hexadecimal, such as 0x1000", excerpt(text));
        line.error(field, message)
    })
}
