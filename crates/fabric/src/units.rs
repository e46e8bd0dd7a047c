//! Units are types: arithmetic never mixes two quantities without an explicit conversion.
//!
//! Files and flags write a number with its unit (`10Gbps`, `256MiB`, `150ms`). A bare number is an error that names
//! the expected unit; only processors are plain counts, `4` or `500m`. Decimal prefixes are powers of 1000; binary
//! prefixes (`Ki`, `Mi`, `Gi`, `Ti`) are powers of 1024. A small `b` is a bit, a capital `B` a byte.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::input::{Scalar, excerpt};

/// An amount of data, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

/// A data rate, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bandwidth(pub u64);

/// A time or a duration on the engine's clock, in nanoseconds. The clock is monotonic; its driver (a simulator or a
/// service) chooses zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

/// Work per second in a resource's native unit: bit/s on a link, ns of service per second on a device (1e9 is a busy
/// device). The integer is signed: sums commute, and adding then removing a load leaves exactly zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Load(pub i64);

/// Processors, in thousandths of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cpus(pub u64);

/// Cost of a host per hour, in millionths of a unit of money.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cost(pub u64);

/// A text that is not a valid quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}`: {problem}; expected {expected}")]
pub struct UnitError {
    /// The rejected text, or its beginning.
    pub text: String,
    /// The problem with the text.
    pub problem: &'static str,
    /// An example of a valid text.
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

    /// The nanosecond nearest to `seconds`. Negative values and NaN become 0; values beyond the range become the
    /// latest time.
    pub fn from_secs_f64(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round() as u64)
    }

    /// The time from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This time plus `later`, saturating at the latest time.
    pub fn plus(self, later: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(later.0))
    }
}

/// Notation of a quantity: its units and their factors.
struct Notation {
    /// Names of units with their size in base units. The first is the base unit.
    units: &'static [(&'static str, u64)],
    /// Units used for printing, largest first.
    prints: &'static [&'static str],
    /// Unit printed after a zero value.
    zero: &'static str,
    /// True if a text may be a sum, such as `2h30m`.
    sums: bool,
    expected: &'static str,
}

const BYTES: Notation = Notation {
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("PB", 1_000_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("PiB", 1 << 50),
    ],
    prints: &["PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB"],
    zero: "B",
    sums: false,
    expected: "a size with its unit, such as 256MiB or 10GB",
};

const BANDWIDTH: Notation = Notation {
    units: &[
        ("bps", 1),
        ("kbps", 1_000),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("b/s", 1),
        ("kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tb/s", 1_000_000_000_000),
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("Bps", 8),
        ("kBps", 8_000),
        ("MBps", 8_000_000),
        ("GBps", 8_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("KiB/s", 8 << 10),
        ("MiB/s", 8 << 20),
        ("GiB/s", 8 << 30),
    ],
    prints: &["Tbps", "Gbps", "Mbps", "kbps"],
    zero: "bps",
    sums: false,
    expected: "a rate with its unit, such as 10Gbps (bits) or 50MB/s (bytes)",
};

const NANOS: Notation = Notation {
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
        ("w", 604_800_000_000_000),
        ("y", 31_536_000_000_000_000),
    ],
    prints: &["d", "h", "min", "s", "ms", "us"],
    zero: "s",
    sums: true,
    expected: "a time with its unit, such as 150ms, 10s or 2h30m",
};

const CPUS: Notation = Notation {
    units: &[("m", 1), ("", 1_000)],
    prints: &[""],
    zero: "",
    sums: false,
    expected: "a number of processors, such as 4, 0.5 or 500m",
};

const COST: Notation = Notation {
    units: &[("u", 1), ("", 1_000_000)],
    prints: &[""],
    zero: "",
    sums: false,
    expected: "a number, such as 0.25",
};

/// Largest accepted value: a larger one would overflow the signed sums of a ledger.
const LARGEST: u64 = i64::MAX as u64;

impl Notation {
    fn error(&self, text: &str, problem: &'static str) -> UnitError {
        UnitError { text: excerpt(text), problem, expected: self.expected }
    }

    fn factor(&self, unit: &str) -> Option<u64> {
        self.units.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor)
    }

    /// A number with its unit, or for times a sum of them as in PromQL: `2h30m`.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let (mut sum, mut rest) = (0, text.trim());
        loop {
            let unit = rest.find(is_unit_letter).unwrap_or(rest.len());
            let more =
                rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |length| unit + length);
            let end = if self.sums { more } else { rest.len() };
            sum += self.term(text, &rest[..unit], &rest[unit..end])?;
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
        }
        u64::try_from(sum).ok().filter(|&value| value <= LARGEST).ok_or_else(|| self.error(text, "too large"))
    }

    /// A number of `text` with its unit, in the smallest unit.
    fn term(&self, text: &str, number: &str, unit: &str) -> Result<u128, UnitError> {
        let number = number.trim().replace('_', "");
        let rough: f64 = number.parse().map_err(|_| self.error(text, "not a number"))?;
        let problem = if unit.is_empty() { "the unit is missing" } else { "unknown unit" };
        let factor = self.factor(unit).ok_or_else(|| self.error(text, problem))?;
        if rough < 0.0 {
            return Err(self.error(text, "must not be negative"));
        }
        // A number with an exponent, or with too many digits for exact arithmetic, has the precision of a double.
        let value = exact(&number, factor).unwrap_or_else(|| (rough * factor as f64).round() as u128);
        Ok(value.min(u128::from(u64::MAX)))
    }

    /// Prints an exact text: in the largest unit in which the value needs at most three decimals; or, if that gives a
    /// thousand units or more, in the largest decimal unit, with all decimals (`1.605794888s`, not `1605794.888us`).
    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = || self.prints.iter().filter_map(|unit| Some((*unit, self.factor(unit)?)));
        let short = units()
            .find(|&(_, factor)| value >= factor && (u128::from(value) * 1000).is_multiple_of(factor.into()));
        let decimal = units().find(|&(_, factor)| value >= factor && is_power_of_ten(factor));
        let unit = match (short, decimal) {
            (Some((_, factor)), Some((_, larger))) if value / factor >= 1000 && larger > factor => decimal,
            (None, decimal) => decimal,
            (short, _) => short,
        };
        let Some((unit, factor)) = unit else {
            // Zero prints in the usual unit, `0s` rather than `0ns`.
            let unit = if value == 0 { self.zero } else { self.units[0].0 };
            return write!(f, "{value}{unit}");
        };
        let (whole, mut rest) = (value / factor, u128::from(value % factor));
        let mut decimals = String::new();
        while rest > 0 {
            rest *= 10;
            decimals.push(char::from(b'0' + (rest / u128::from(factor)) as u8));
            rest %= u128::from(factor);
        }
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{whole}{point}{decimals}{unit}")
    }
}

fn is_power_of_ten(number: u64) -> bool {
    10_u64.pow(number.ilog10()) == number
}

/// True if a letter begins a unit. An `e` may belong to the number: `1e3kB`.
fn is_unit_letter(letter: char) -> bool {
    letter.is_ascii_alphabetic() && letter != 'e' && letter != 'E'
}

/// A decimal number times `factor`, rounded half up. `None` if the number is not plain digits or has too many.
fn exact(number: &str, factor: u64) -> Option<u128> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10u128.checked_pow(decimals.len().try_into().ok()?)?;
    let digits: u128 = format!("{whole}{decimals}").parse().ok()?;
    Some((digits.checked_mul(factor.into())?.checked_add(scale / 2)?) / scale)
}

macro_rules! quantity {
    ($name:ident, $notation:expr, $type:tt, $unit:literal) => {
        impl $name {
            /// Description of a valid text, for "expected ...".
            pub const EXPECTED: &str = $notation.expected;
        }

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
                deserializer.deserialize_any(Scalar { expected: $notation.expected, parse: Self::from_str })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": $type,
                    "minimum": 0,
                    "description": $notation.expected,
                    "pattern": concat!(r"^ *([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)? *", $unit, " *$"),
                })
            }
        }
    };
}

quantity!(Bytes, BYTES, "string", "([kKMGTP]|[KMGTP]i)?B");
quantity!(Bandwidth, BANDWIDTH, "string", "([kMGT]?(bps|b/s|bit/s)|Kbps|[kMG]?Bps|([kMG]|Ki|Mi|Gi)?B/s)");
quantity!(Nanos, NANOS, "string", r"(ns|us|ms|s|m|min|h|d|w|y)([0-9]+(ns|us|ms|s|m|min|h|d|w|y))*");
// A number of processors may also be a JSON number, without a unit.
quantity!(Cpus, CPUS, ["string", "number"], "m?");
quantity!(Cost, COST, ["string", "number"], "u?");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_printed_quantity_has_fewer_than_a_thousand_of_its_unit(value in 1..1_000_000_000_000_u64) {
            let whole = |text: String| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse::<u64>().ok());
            prop_assert!(whole(Nanos(value).to_string()) < Some(1000), "{}", Nanos(value));
            prop_assert!(whole(Bytes(value).to_string()) < Some(1000), "{}", Bytes(value));
            prop_assert!(whole(Bandwidth(value).to_string()) < Some(1000), "{}", Bandwidth(value));
        }

        #[test]
        fn a_printed_quantity_parses_to_itself(value in 0..=LARGEST, shift in 0u32..63) {
            let value = value >> shift;
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            prop_assert_eq!(Bandwidth(value).to_string().parse(), Ok(Bandwidth(value)));
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
            prop_assert_eq!(Cpus(value).to_string().parse(), Ok(Cpus(value)));
            prop_assert_eq!(Cost(value).to_string().parse(), Ok(Cost(value)));
        }

        #[test]
        fn a_sum_of_times_is_the_sum_of_its_parts(parts in prop::collection::vec((0u64..1000, 0..NANOS.units.len()), 1..5)) {
            let text: String = parts.iter().map(|&(number, unit)| format!("{number}{}", NANOS.units[unit].0)).collect();
            let sum: u64 = parts.iter().map(|&(number, unit)| number.saturating_mul(NANOS.units[unit].1)).fold(0, u64::saturating_add);
            prop_assert_eq!(text.parse::<Nanos>().ok(), (sum <= LARGEST).then_some(Nanos(sum)));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Bandwidth>());
            let _ = (text.parse::<Nanos>(), text.parse::<Cpus>());
        }
    }

    #[test]
    fn quantities_read_and_print_as_people_write_them() {
        let mut table = String::new();
        for text in [
            "256MiB",
            "10GB",
            "1.5GiB",
            "0B",
            "1e3kB",
            "1.0005kB",
            "9007199254740993B",
            "1_000 MB",
            "10Gbps",
            "50MB/s",
            "2.5 Gbit/s",
            "150ms",
            "1h",
            "5m",
            "2h30m",
            "1w",
            "1y",
            "1h30m15s500ms",
            "2h30",
            "1h-5m",
        ] {
            let bytes = text.parse::<Bytes>().map(|v| format!("{v} = {} B", v.0));
            let rate = text.parse::<Bandwidth>().map(|v| format!("{v} = {} bit/s", v.0));
            let time = text.parse::<Nanos>().map(|v| format!("{v} = {} ns", v.0));
            let read = bytes.or(rate).or(time).unwrap_or_else(|e| e.to_string());
            table += &format!("{text:>12} -> {read}\n");
        }
        for text in ["4", "0.5", "250m", "1.0004", "0", "0.25m"] {
            let cpus = text.parse::<Cpus>().map(|v| format!("{v} = {} thousandths", v.0));
            table += &format!("{text:>12} -> {}\n", cpus.unwrap_or_else(|e| e.to_string()));
        }
        table += &format!("{:>12} -> {}\n", "4 GHz", "4 GHz".parse::<Cpus>().unwrap_err());
        for text in ["10", "-5MiB", "10 parsecs", "NaNMiB", "", "1e300MiB", "infMB", "5mb"] {
            table += &format!("{text:>12} -> {}\n", text.parse::<Bytes>().unwrap_err());
        }
        insta::assert_snapshot!(table);
    }
}
