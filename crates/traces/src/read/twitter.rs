//! The dialect of Twitter's cache traces (Yang et al., OSDI 2020).
//!
//! `timestamp,anonymized key,key size,value size,client id,operation,TTL`: seconds, bytes, and the name of the operation.
//! The payload is the value. Operations that carry no value, such as `delete`, are counted.

use leeward_fabric::input::{InputError, Line, cells, excerpt};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 7] =
    ["timestamp", "anonymized key", "key size", "value size", "client id", "operation", "TTL"];
const READS: [&str; 2] = ["get", "gets"];
const WRITES: [&str; 6] = ["set", "add", "replace", "cas", "append", "prepend"];
const WITHOUT_PAYLOAD: [&str; 3] = ["delete", "incr", "decr"];

fn is_operation(word: &str) -> bool {
    READS.iter().chain(&WRITES).chain(&WITHOUT_PAYLOAD).any(|known| known.eq_ignore_ascii_case(word))
}

pub(super) fn matches(line: &str) -> bool {
    let typed = is_operation(cells(line).nth(5).unwrap_or(""));
    fields::is_heading(line, &COLUMNS) || typed && cells(line).count() == COLUMNS.len()
}

pub(super) struct Parser;

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "timestamp", size: "value size" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if fields::is_heading(line.text, &COLUMNS) {
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let [at, _, _, size, _, operation, _] = fields::row(line, COLUMNS, COLUMNS.len(), false)?;
        if !is_operation(operation) {
            let all: Vec<&str> = READS.iter().chain(&WRITES).chain(&WITHOUT_PAYLOAD).copied().collect();
            let message =
                format!("`{}`: unknown operation; expected one of {}", excerpt(operation), all.join(", "));
            return Err(line.error("operation", message));
        }
        if WITHOUT_PAYLOAD.iter().any(|word| word.eq_ignore_ascii_case(operation)) {
            return Ok(ParsedLine::Rest(Rest::NoPayload));
        }
        Ok(ParsedLine::Request(Request {
            at: fields::seconds(line, "timestamp", at)?,
            kind: fields::kind(line, "operation", operation, &READS, &WRITES)?,
            size: fields::signed(line, "value size", "bytes", size)?,
            offset: None,
        }))
    }
}
