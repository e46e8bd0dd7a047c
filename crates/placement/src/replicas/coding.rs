//! Erasure codes: the data and parity chunks of a stripe.

use std::fmt;
use std::str::FromStr;

use leeward_fabric::Bytes;
use leeward_fabric::input::excerpt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Layout;

/// An erasure code, written `data+parity`: a block is split into `data` chunks, and `parity` additional chunks can
/// replace lost ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Coding {
    data: u8,
    parity: u8,
}

impl Coding {
    /// Chunks of a stripe.
    pub fn chunks(self) -> u8 {
        self.data + self.parity
    }

    /// Chunks that are enough to rebuild the others.
    pub fn data(self) -> u8 {
        self.data
    }

    /// Size of each chunk of a block, in bytes; the last data chunk is padded.
    pub fn chunk(self, block: Bytes) -> Bytes {
        Bytes(block.0.div_ceil(u64::from(self.data)))
    }

    /// Layout of a stripe.
    pub fn layout(self) -> Layout {
        Layout::Stripe { parity: self.parity }
    }

    /// Chunks that a stripe lacks if `existing` hosts have one.
    pub fn missing(self, existing: usize) -> u8 {
        u8::try_from(existing).map_or(0, |existing| self.chunks().saturating_sub(existing))
    }
}

impl FromStr for Coding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `parse` accepts a sign.
        let number = |text: &str| text.trim().parse().ok().filter(|_| !text.contains('+'));
        match text.split_once('+').map(|(data, parity)| (number(data), number(parity))) {
            Some((Some(data @ 1..=100), Some(parity @ 1..=100))) => Ok(Coding { data, parity }),
            _ => Err(format!("`{}`: expected data and parity chunks, such as 6+3", excerpt(text))),
        }
    }
}

impl TryFrom<String> for Coding {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.data, self.parity)
    }
}

impl From<Coding> for String {
    fn from(coding: Coding) -> String {
        coding.to_string()
    }
}

impl JsonSchema for Coding {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Coding".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^([1-9][0-9]?|100)\+([1-9][0-9]?|100)$";
        json_schema!({ "type": "string", "pattern": pattern, "examples": ["6+3"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_data_and_parity_chunks_and_nothing_else_is_a_code() {
        let code: Coding = "6+3".parse().expect("a code");
        assert_eq!((code.chunks(), code.data(), code.to_string().as_str()), (9, 6, "6+3"));
        assert_eq!([0, 7, 9, 300].map(|existing| code.missing(existing)), [9, 2, 0, 0]);
        for invalid in ["", "6", "6+0", "0+3", "6+3+1", "101+1", "1+101", "6-3", "6+-3", "6++3", "six+three"]
        {
            let error = invalid.parse::<Coding>().expect_err(invalid);
            assert!(error.contains("such as 6+3"), "{error}");
        }
    }

    #[test]
    fn the_chunks_hold_the_block_and_waste_less_than_a_byte_each() {
        for (block, code, chunk) in [(600, "6+3", 100), (601, "6+3", 101), (1, "10+4", 1), (7, "1+2", 7)] {
            let code: Coding = code.parse().expect("a code");
            assert_eq!(code.chunk(Bytes(block)), Bytes(chunk), "{block} bytes in {code}");
        }
        let code: Coding = "3+2".parse().expect("a code");
        assert_eq!(code.chunk(Bytes(u64::MAX)), Bytes(u64::MAX / 3));
    }
}
