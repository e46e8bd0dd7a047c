//! The output of blkparse for a Linux block trace, in its default format:
//! `8,0 3 1 0.000000000 697 Q W 223490 + 8 [cp]`. The fields are device, processor, sequence number, seconds, process,
//! action, kind of operation, sector and number of sectors.
//!
//! A request has several events. By default the reader takes the event of queueing (`Q`). Its time is the time of the
//! workload's request, and does not depend on the traced device. The event `D` has the time at which the request was
//! issued to the device, after the scheduler merged, sorted and delayed the request. These later times describe the
//! traced system as much as the workload, and hide bursts of queued requests.
//!
//! Flushes and discards carry no payload and are skipped, and so are the sums that blkparse prints at the end of each
//! output. Outputs may follow each other in one file; an event ends the sums before it. A line that is neither an event
//! nor of the form of sums is an error. Sums also say how many events the tracer lost.

use leeward_fabric::input::{InputError, Line, excerpt};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::{Kind, Request};

/// Event of a block trace that counts as a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Event {
    /// The request was queued (`Q`).
    #[default]
    Queued,
    /// The request was issued to the device (`D`).
    Issued,
}

impl Event {
    /// Name of the event in blkparse.
    pub fn name(self) -> &'static str {
        match self {
            Event::Queued => "Q",
            Event::Issued => "D",
        }
    }

    /// The event with this name.
    pub fn from_name(name: &str) -> Option<Event> {
        [Event::Queued, Event::Issued].into_iter().find(|event| event.name() == name)
    }
}

/// Fields up to the kind of operation.
const COLUMNS: [&str; 7] = ["device", "processor", "sequence", "seconds", "process", "action", "operation"];

pub(super) fn matches(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(is_device) && words.count() + 1 >= COLUMNS.len()
}

pub(super) struct Parser {
    pub event: Event,
    pub volume: Option<String>,
    /// True between the first line of sums and the next event.
    pub in_sums: bool,
    /// Events that the sums so far say were lost.
    pub lost: u64,
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "seconds", size: "sectors" }
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        let text = line.text.trim_start();
        let is_event = text.split_ascii_whitespace().next().is_some_and(is_device);
        self.in_sums = !is_event && (self.in_sums || text.starts_with("CPU") || text.starts_with("Total"));
        // In sums, lines have a name and a colon, or name a process.
        let is_sum = self.in_sums && (text.contains(':') || text.ends_with(')'));
        if is_sum || text.starts_with("Input file") {
            self.lost += lost(text);
            return Ok(ParsedLine::Rest(Rest::Sums));
        }
        let mut words = text.split_ascii_whitespace();
        let mut next = |name: &str| {
            let missing = || line.error(name, format!("missing; expected {}", COLUMNS.join(" ")));
            words.next().ok_or_else(missing)
        };
        let device = next("device")?;
        if !is_device(device) {
            let message = format!("`{}`: expected a device, such as 8,0", excerpt(device));
            return Err(line.error("device", message));
        }
        next("processor")?;
        next("sequence")?;
        let at = next("seconds")?;
        next("process")?;
        let action = next("action")?;
        let selected = self.volume.as_ref().is_none_or(|volume| volume == device);
        if !selected {
            return Ok(ParsedLine::Rest(Rest::Volume));
        }
        if action != self.event.name() {
            return Ok(ParsedLine::Rest(Rest::Event));
        }
        let operation = next("operation")?;
        let Some(kind) = kind(line, operation)? else { return Ok(ParsedLine::Rest(Rest::NoPayload)) };
        let sector = words.next().unwrap_or("[");
        let plus = words.next();
        // A flush has the name of a process in this field; a command to the device has its bytes.
        if sector.starts_with('[') || plus.is_some_and(|word| word.starts_with('(')) {
            return Ok(ParsedLine::Rest(Rest::NoPayload));
        }
        let (Some("+"), Some(sectors)) = (plus, words.next()) else {
            return Err(line.error("sectors", "missing; expected `SECTOR + SECTORS`"));
        };
        let request = Request {
            at: fields::seconds(line, "seconds", at)?,
            kind,
            size: fields::sectors(line, "sectors", sectors)?,
            offset: Some(fields::sectors(line, "sector", sector)?),
        };
        Ok(if request.size == 0 { ParsedLine::Rest(Rest::NoPayload) } else { ParsedLine::Request(request) })
    }
}

/// Number of events that a line of sums says were lost: `Skips: 12 forward (34 -   0.1%)` has 34.
fn lost(text: &str) -> u64 {
    let rest = text.strip_prefix("Skips:").and_then(|rest| rest.split_once('('));
    rest.and_then(|(_, rest)| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn is_device(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// Read or write; `None` for operations without payload.
fn kind(line: &Line<'_>, operation: &str) -> Result<Option<Kind>, InputError> {
    // `D` is a discard, `E` an erase, `N` an operation without data, and `F` alone a flush. All other letters are flags
    // of a read or write.
    if operation.contains(['D', 'E', 'N']) {
        Ok(None)
    } else if operation.contains('R') {
        Ok(Some(Kind::Read))
    } else if operation.contains('W') {
        Ok(Some(Kind::Write))
    } else if operation.contains('F') {
        Ok(None)
    } else {
        let message =
            format!("`{}`: unknown type of request; expected R or W among its letters", excerpt(operation));
        Err(line.error("operation", message))
    }
}
