//! Units are types: a number never meets another of a different unit without a conversion that reads aloud.
//!
//! Files and flags write a number with its unit (`10Gbps`, `256MiB`, `150ms`); a bare number is an error that
//! says which unit was expected. Decimal prefixes are powers of 1000, binary prefixes (`Ki`, `Mi`, `Gi`, `Ti`)
//! powers of 1024. A small `b` is a bit, a capital `B` a byte.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of data, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

/// A data rate, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bandwidth(pub u64);

/// A time or a duration on the engine's clock, in nanoseconds. Monotonic, zero where the plant says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

/// Work per second in a resource's native unit: bit/s on a link, ns of service per second on a device
/// (1e9 is a busy device). A signed integer, so sums commute and adding then removing is exactly nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Load(pub i64);

/// A text that is not the quantity it should be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}`: {problem}; expected {expected}")]
pub struct UnitError {
    /// What was read.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
    /// What a right one looks like.
    pub expected: &'static str,
}

impl Bandwidth {
    /// Bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// Nanoseconds that one byte takes at this rate. Infinite at rate zero.
    pub fn ns_per_byte(self) -> f64 {
        8e9 / self.0 as f64
    }

    /// This rate as work on a link.
    pub fn as_load(self) -> Load {
        Load(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

impl Nanos {
    /// One second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    /// Seconds, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The nanosecond nearest to `seconds`; negative and NaN become 0, what is too large the latest time.
    pub fn from_secs_f64(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round() as u64)
    }

    /// The time from `earlier` to this, zero if that lies ahead.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This time and `later` more, not past the end of time.
    pub fn plus(self, later: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(later.0))
    }
}

/// What a quantity's texts look like, smallest unit last so that the first match is the longest name.
struct Notation {
    units: &'static [(&'static str, f64)],
    base: &'static str,
    /// Exact multiples used to print, largest first.
    prints: &'static [(&'static str, u64)],
    expected: &'static str,
}

const BYTES: Notation = Notation {
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("PB", 1e15),
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
        ("GiB", 1073741824.0),
        ("TiB", 1099511627776.0),
        ("PiB", 1125899906842624.0),
    ],
    base: "B",
    prints: &[
        ("PB", 1_000_000_000_000_000),
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
    ],
    expected: "a size with its unit, such as 256MiB or 10GB",
};

const BANDWIDTH: Notation = Notation {
    units: &[
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("Tbps", 1e12),
        ("b/s", 1.0),
        ("kb/s", 1e3),
        ("Mb/s", 1e6),
        ("Gb/s", 1e9),
        ("Tb/s", 1e12),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("Tbit/s", 1e12),
        ("Bps", 8.0),
        ("kBps", 8e3),
        ("MBps", 8e6),
        ("GBps", 8e9),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
        ("KiB/s", 8192.0),
        ("MiB/s", 8388608.0),
        ("GiB/s", 8589934592.0),
    ],
    base: "bps",
    prints: &[("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000)],
    expected: "a rate with its unit, such as 10Gbps (bits) or 50MB/s (bytes)",
};

const NANOS: Notation = Notation {
    units: &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9), ("d", 86400e9)],
    base: "ns",
    prints: &[
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ],
    expected: "a time with its unit, such as 150ms, 10s or 1h",
};

impl Notation {
    fn error(&self, text: &str, problem: &'static str) -> UnitError {
        UnitError { text: text.to_owned(), problem, expected: self.expected }
    }

    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].trim(), &trimmed[split..]);
        let number: f64 = number.replace('_', "").parse().map_err(|_| self.error(text, "not a number"))?;
        if unit.is_empty() {
            return Err(self.error(text, "the unit is missing"));
        }
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(self.error(text, "unknown unit"));
        };
        let value = number * factor;
        if value.is_nan() || value < 0.0 {
            return Err(self.error(text, "must not be negative"));
        }
        // 2^63: everything above would not fit the signed sums of the ledger.
        if value >= 9.223_372_036_854_775e18 {
            return Err(self.error(text, "too large"));
        }
        Ok(value.round() as u64)
    }

    /// The shortest exact text: a larger unit where the value has at most three decimals in it.
    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(name, multiple) in self.prints {
            if value >= multiple {
                if value.is_multiple_of(multiple) {
                    return write!(f, "{}{name}", value / multiple);
                }
                let thousandths = (value as u128 * 1000) % multiple as u128;
                if thousandths == 0 {
                    return write!(f, "{}{name}", value as f64 / multiple as f64);
                }
            }
        }
        write!(f, "{value}{}", self.base)
    }
}

macro_rules! quantity {
    ($name:ident, $notation:expr, $schema:literal) => {
        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                $notation.parse(text).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $notation.print(self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor(&$notation)).map($name)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $notation.expected, "pattern": $schema })
            }
        }
    };
}

quantity!(Bytes, BYTES, r"^\s*[0-9][0-9_.eE+]*\s*([kKMGTP]i?)?B\s*$");
quantity!(Bandwidth, BANDWIDTH, r"^\s*[0-9][0-9_.eE+]*\s*([kKMGT]i?)?(bps|Bps|b/s|B/s|bit/s)\s*$");
quantity!(Nanos, NANOS, r"^\s*[0-9][0-9_.eE+]*\s*(ns|us|ms|s|min|h|d)\s*$");

struct QuantityVisitor(&'static Notation);

impl Visitor<'_> for QuantityVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        self.0.parse(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same(value in 0u64..1 << 53) {
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            prop_assert_eq!(Bandwidth(value).to_string().parse(), Ok(Bandwidth(value)));
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Bandwidth>(), text.parse::<Nanos>());
        }
    }

    #[test]
    fn quantities_read_and_print_as_people_write_them() {
        let mut table = String::new();
        for text in
            ["256MiB", "10GB", "1.5GiB", "0B", "1e3kB", "10Gbps", "50MB/s", "2.5 Gbit/s", "150ms", "1h"]
        {
            let bytes = text.parse::<Bytes>().map(|v| format!("{v} = {} B", v.0));
            let rate = text.parse::<Bandwidth>().map(|v| format!("{v} = {} bit/s", v.0));
            let time = text.parse::<Nanos>().map(|v| format!("{v} = {} ns", v.0));
            let read = bytes.or(rate).or(time).unwrap_or_else(|e| e.to_string());
            table += &format!("{text:>12} -> {read}\n");
        }
        for text in ["10", "-5MiB", "10 parsecs", "NaNMiB", "", "1e300MiB", "infMB", "5mb"] {
            table += &format!("{text:>12} -> {}\n", text.parse::<Bytes>().unwrap_err());
        }
        insta::assert_snapshot!(table);
    }
}
