//! Values of the fields of a cluster file. Each value is validated while the file is read, because line and field are
//! known then.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::input::{Scalar, Spanned, excerpt, scalars_by_text};
use crate::units::Bandwidth;

/// A name of a host, rack, pod, device, fault domain or tag: letters, digits, `.`, `_` and `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name(pub String);

/// A count of at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count(pub u32);

/// Oversubscription: the sum of the rates below a link divided by the link's own rate; 10 is 10:1. Positive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio(pub f64);

/// A positive data rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub Bandwidth);

/// The two directions of a link: one rate for both, or `{up: ..., down: ...}` as seen from the host, rack or pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duplex {
    /// Away from the host, rack or pod, towards the core.
    pub up: Bandwidth,
    /// Towards the host, rack or pod.
    pub down: Bandwidth,
}

/// A count, or a list of the items.
pub enum Listing<T> {
    /// Number of items, which have default fields.
    Count(u32),
    /// The items, at least one.
    Each(Vec<Spanned<T>>),
}

// ---- reading ----------------------------------------------------------------------------------------------

impl Name {
    fn parse(text: &str) -> Result<Name, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        if !text.is_empty() && text.chars().all(allowed) {
            return Ok(Name(text.to_owned()));
        }
        Err(format!("`{}`: a name has letters, digits, `.`, `_` and `-` only", excerpt(text)))
    }
}

impl Count {
    const EXPECTED: &str = "a whole number of at least 1";

    fn parse(text: &str) -> Result<Count, String> {
        Count::parse_or_expect(Count::EXPECTED, text)
    }

    /// Parses a count. `expected` describes valid values in the error.
    fn parse_or_expect(expected: impl fmt::Display, text: &str) -> Result<Count, String> {
        match text.parse::<u128>() {
            Ok(0) | Err(_) => Err(format!("`{}`: expected {expected}", excerpt(text))),
            Ok(count) => match u32::try_from(count) {
                Ok(count) => Ok(Count(count)),
                Err(_) => Err(format!("`{count}`: too large")),
            },
        }
    }
}

impl Ratio {
    const EXPECTED: &str = "a positive number, such as 10 for 10:1";

    fn parse(text: &str) -> Result<Ratio, String> {
        match text.parse() {
            Ok(ratio) if f64::is_finite(ratio) && ratio > 0.0 => Ok(Ratio(ratio)),
            _ => Err(format!("`{}`: expected {}", excerpt(text), Ratio::EXPECTED)),
        }
    }
}

impl Rate {
    fn parse(text: &str) -> Result<Rate, String> {
        match text.parse() {
            Ok(Bandwidth(0)) => {
                Err(format!("`{}`: must be positive; outages belong in a scenario", excerpt(text)))
            }
            Ok(rate) => Ok(Rate(rate)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A name is read as a string, so that a rack called 007 or 1e3 keeps its name.
        deserializer.deserialize_str(Scalar { expected: "a name", parse: Name::parse })
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar { expected: Count::EXPECTED, parse: Count::parse })
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar { expected: Ratio::EXPECTED, parse: Ratio::parse })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar { expected: Bandwidth::EXPECTED, parse: Rate::parse })
    }
}

impl<'de> Deserialize<'de> for Duplex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DuplexVisitor)
    }
}

struct DuplexVisitor;

impl<'de> Visitor<'de> for DuplexVisitor {
    type Value = Duplex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or {{up: 10Gbps, down: 40Gbps}}", Bandwidth::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duplex, E> {
        let Rate(rate) = Rate::parse(text).map_err(E::custom)?;
        Ok(Duplex { up: rate, down: rate })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Duplex, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Directions {
            up: Rate,
            down: Rate,
        }
        let Directions { up, down } = Directions::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Duplex { up: up.0, down: down.0 })
    }

    scalars_by_text!('de scalars);
    scalars_by_text!('de list);
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listing<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListingVisitor(PhantomData))
    }
}

struct ListingVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListingVisitor<T> {
    type Value = Listing<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count of at least 1, or a list")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Listing<T>, E> {
        let count = Count::parse_or_expect(&self as &dyn de::Expected, text).map_err(E::custom)?;
        Ok(Listing::Count(count.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Listing<T>, A::Error> {
        let mut each = Vec::new();
        while let Some(item) = sequence.next_element()? {
            each.push(item);
        }
        if each.is_empty() {
            return Err(de::Error::custom("an empty list; expected at least one"));
        }
        Ok(Listing::Each(each))
    }

    scalars_by_text!('de scalars);
    scalars_by_text!('de fields);
}

// ---- JSON schemas for editors -----------------------------------------------------------------------------

macro_rules! schema {
    ($name:ident, $generator:ident, $schema:expr) => {
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

schema!(
    Name,
    _generator,
    json_schema!({
        "type": ["string", "number"],
        "description": "A name: letters, digits, `.`, `_` and `-`.",
        "pattern": "^[A-Za-z0-9._-]+$"
    })
);
schema!(Count, _generator, json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }));
schema!(
    Ratio,
    _generator,
    json_schema!({
        "type": "number",
        "description": "A positive number; 10 is 10:1.",
        "exclusiveMinimum": 0
    })
);
schema!(Duplex, generator, {
    let rate = generator.subschema_for::<Bandwidth>();
    json_schema!({
        "description": "One rate for both directions, or one for each, seen from the host, rack or pod.",
        "oneOf": [rate, {
            "type": "object",
            "properties": { "up": rate, "down": rate },
            "required": ["up", "down"],
            "additionalProperties": false
        }]
    })
});

impl<T: JsonSchema> JsonSchema for Listing<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("CountOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let count = generator.subschema_for::<Count>();
        let item = generator.subschema_for::<T>();
        json_schema!({
            "description": "A count, or a list.",
            "oneOf": [count, { "type": "array", "items": item, "minItems": 1 }]
        })
    }
}
