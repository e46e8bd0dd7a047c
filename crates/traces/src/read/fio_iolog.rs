//! The dialect of fio's logs of input and output (`write_iolog`), versions 2 and 3.
//!
//! Version 2 has lines `file action [offset length]`, and `file wait microseconds` for the time between them. A log that fio
//! itself wrote in this version has no times at all, and is an error: all its requests would arrive at once. Version 3 (fio
//! 3.31 and later) begins each line with the time in microseconds.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Line, excerpt};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const MICROSECOND: u64 = 1000;

/// Version of a log by its first line.
fn version(line: &str) -> Option<&str> {
    line.trim().strip_prefix("fio version ")?.strip_suffix(" iolog")
}

pub(super) fn matches(line: &str) -> bool {
    version(line).is_some()
}

pub(super) struct Parser {
    pub volume: Option<String>,
    pub has_times: bool,
    /// Time of the next line of version 2; `None` before the first `wait`.
    pub now: Option<Nanos>,
    /// Number of requests so far.
    pub count: u64,
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "time", size: "length" }
    }

    fn fault(&self) -> Option<&'static str> {
        let without_times = !self.has_times && self.now.is_none() && self.count > 1;
        without_times.then_some(
            "no times: a log of version 2 as fio writes it; expected `wait` lines, or a log of fio 3.31 or later",
        )
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if let Some(version) = version(line.text) {
            self.has_times = match version {
                "2" => false,
                "3" => true,
                other => {
                    let message = format!("version {}: expected 2 or 3", excerpt(other));
                    return Err(line.error("version", message));
                }
            };
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let mut words = line.text.split_ascii_whitespace();
        let mut next = |field: &str| {
            words.next().ok_or_else(|| line.error(field, "missing; expected file, action, offset and length"))
        };
        let at = match self.has_times {
            true => fields::ticks(line, "time", next("time")?, MICROSECOND)?,
            false => self.now.unwrap_or(Nanos(0)),
        };
        let (file, action) = (next("file")?, next("action")?);
        match action {
            "read" | "write" => {}
            "add" | "open" | "close" => return Ok(ParsedLine::Rest(Rest::Event)),
            "sync" | "datasync" | "trim" => return Ok(ParsedLine::Rest(Rest::NoPayload)),
            "wait" if !self.has_times => {
                let pause = fields::ticks(line, "offset", next("offset")?, MICROSECOND)?;
                self.now = Some(self.now.unwrap_or(Nanos(0)).plus(pause));
                return Ok(ParsedLine::Rest(Rest::Event));
            }
            other => {
                let known = "read, write, sync, datasync, trim, add, open, close, or wait in version 2";
                let message = format!("`{}`: unknown action; expected {known}", excerpt(other));
                return Err(line.error("action", message));
            }
        }
        let request = Request {
            at,
            kind: fields::kind(line, "action", action, &["read"], &["write"])?,
            offset: Some(fields::signed(line, "offset", "bytes", next("offset")?)?),
            size: fields::signed(line, "length", "bytes", next("length")?)?,
        };
        if let Some(word) = words.next() {
            let message = format!("`{}`: the line should end before it", excerpt(word));
            return Err(line.error("end of line", message));
        }
        self.count += 1;
        let selected = self.volume.as_ref().is_none_or(|volume| volume == file);
        Ok(if selected { ParsedLine::Request(request) } else { ParsedLine::Rest(Rest::Volume) })
    }
}
