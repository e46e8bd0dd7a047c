//! The dialect of fio's logs of latencies, one line for each request (`write_lat_log`, without `log_avg_msec`).
//!
//! `time, latency, direction, bytes[, offset][, priority]`: milliseconds since the start of the run, nanoseconds of
//! latency (fio 3; fio 2 wrote microseconds), and 0 for a read, 1 for a write or 2 for a trim. A line is written when its
//! request ends, so the request began a latency earlier.
//!
//! The offset is there with `log_offset`, the priority since fio 3.20. So a fifth column without a sixth is either: 0, 1 or a
//! hexadecimal number is a priority, and any other number an offset.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Line, cells};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 6] = ["time", "latency", "direction", "bytes", "offset", "priority"];
/// Columns of every version of fio.
const LEAST: usize = 4;
const MILLISECOND: u64 = 1_000_000;

pub(super) fn matches(line: &str) -> bool {
    let number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    line.contains(", ")
        && matches!(cells(line).nth(2), Some("0" | "1" | "2"))
        && (LEAST..=COLUMNS.len() + 1).contains(&cells(line).count())
        && cells(line).take(LEAST).all(number)
        && cells(line).skip(LEAST).all(|cell| number(cell) || is_priority(cell))
}

/// True if a cell without a further cell behind it is a priority and no offset.
fn is_priority(cell: &str) -> bool {
    matches!(cell, "0" | "1") || cell.starts_with("0x")
}

pub(super) struct Parser;

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "time", size: "bytes" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        let [at, latency, direction, size, fifth, sixth] = fields::row(line, COLUMNS, LEAST, true)?;
        let ended = fields::ticks(line, "time", at, MILLISECOND)?;
        let latency = fields::signed(line, "latency", "nanoseconds", latency)?;
        let size = fields::signed(line, "bytes", "bytes", size)?;
        if direction == "2" {
            return Ok(ParsedLine::Rest(Rest::NoPayload));
        }
        let is_offset = !fifth.is_empty() && (!sixth.is_empty() || !is_priority(fifth));
        let offset = is_offset.then(|| fields::signed(line, "offset", "bytes", fifth)).transpose()?;
        Ok(ParsedLine::Request(Request {
            at: Nanos(ended.0.saturating_sub(latency)),
            kind: fields::kind(line, "direction", direction, &["0"], &["1"])?,
            size,
            offset,
        }))
    }
}
