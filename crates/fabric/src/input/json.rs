//! Reads JSON values into the types of files, such as a cluster in the body of a request.
//!
//! A field that expects a text accepts a number or a boolean too, as the YAML reader does: a rack may be called 7.

use std::fmt;
use std::sync::LazyLock;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Map, Value, json};

use super::yaml::{in_words, joined, steps};
use super::{InputError, excerpt};

/// Reads a JSON value into a `T`; errors call the value `name`.
///
/// `T` and its parts must not have a field called `value`, as for [`read_yaml`](super::read_yaml).
///
/// # Errors
///
/// Fails if the value does not describe a `T`.
pub fn read_json<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, InputError> {
    // Tracking fields takes time, so only a rejected value is read again with tracking.
    T::deserialize(Json(value)).or_else(|_| {
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(Json(value), &mut track);
        T::deserialize(tracked).map_err(|Mismatch { field, message }| {
            let mut path = steps(&track.path());
            path.extend(field);
            let error = InputError::new(name, message);
            if path.is_empty() { error } else { error.in_field(joined(&path)) }
        })
    })
}

/// A JSON value as a source of other types.
#[derive(Clone, Copy)]
struct Json<'a>(&'a Value);

/// A value for a [`Spanned`](super::Spanned), at an unknown place. The YAML library gives such a map too; without it,
/// `Spanned` reads the first field of a value outside of the tracked path.
struct Placed<'a>(Json<'a>);

/// The unknown place.
static NOWHERE: LazyLock<Value> = LazyLock::new(|| json!({ "line": 0, "column": 0 }));

impl<'de> Deserializer<'de> for Placed<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let parts = [
            ("__serde_saphyr_private_spanned", Json(&Value::Null)),
            ("value", self.0),
            ("referenced", Json(&NOWHERE)),
            ("defined", Json(&NOWHERE)),
        ];
        visitor.visit_map(MapDeserializer::new(parts.into_iter()))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Mismatch of a value and a type.
#[derive(Debug)]
struct Mismatch {
    /// Field below the current one, if the mismatch is about one.
    field: Option<String>,
    message: String,
}

impl<'a> Json<'a> {
    /// Gives the number or the boolean to a visitor of texts, as its text.
    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Number(number) => visitor.visit_string(number.to_string()),
            Value::Bool(truth) => visitor.visit_string(truth.to_string()),
            Value::Null => Err(Mismatch::custom("empty; expected a text")),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Fields with their names.
    fn fields(fields: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        fields.iter().map(|(name, value)| (name.as_str(), Json(value)))
    }
}

impl<'de> Deserializer<'de> for Json<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Json))),
            Value::Object(fields) => visitor.visit_map(MapDeserializer::new(Json::fields(fields))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match name {
            "__yaml_spanned" => visitor.visit_newtype_struct(Placed(self)),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// A list is not accepted in place of the fields of a struct.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Array(_) => Err(Mismatch::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.text(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            Value::Object(fields) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(Json::fields(fields))))
            }
            _ => Err(Mismatch::custom("expected a single word")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for Json<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Mismatch {
        Mismatch { field: None, message: message.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Mismatch {
        let found = match found {
            Unexpected::Map => "fields".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Unit | Unexpected::Option => "empty".to_owned(),
            Unexpected::Str(text) => format!("`{}`", excerpt(text)),
            Unexpected::Bool(truth) => format!("`{truth}`"),
            Unexpected::Unsigned(number) => format!("`{number}`"),
            Unexpected::Signed(number) => format!("`{number}`"),
            Unexpected::Float(number) => format!("`{number}`"),
            other => other.to_string(),
        };
        let expected = expected.to_string();
        let expected = match expected.as_str() {
            "f64" | "f32" => "a number",
            "a sequence" => "a list",
            "a boolean" => "`true` or `false`",
            "a string" => "a text",
            "a map" => "fields",
            one if one.starts_with("struct ") => "fields",
            one => in_words(one),
        };
        Mismatch::custom(format_args!("{found}: expected {expected}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Mismatch {
        Mismatch::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Mismatch {
        Mismatch::custom(format_args!("`{}`: expected one of {}", excerpt(variant), expected.join(", ")))
    }

    // The path already ends in the unknown field.
    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Mismatch {
        if expected.is_empty() {
            return Mismatch::custom("unknown field; expected none");
        }
        Mismatch::custom(format_args!("unknown field; expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Mismatch {
        Mismatch { field: Some(field.to_owned()), message: "missing".to_owned() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mismatch {}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::input::{Spanned, read_yaml};

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Item {
        name: String,
        #[serde(default)]
        size: u32,
        kind: Option<Kind>,
        tags: Option<Vec<Spanned<String>>>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Near,
        Far,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct List {
        items: Vec<Spanned<Item>>,
    }

    #[test]
    fn values_are_read_as_their_text_is_read_as_yaml() {
        let values = [
            json!({ "items": [] }),
            json!({ "items": [{ "name": "a", "size": 3, "kind": "far", "tags": null }] }),
            json!({ "items": [{ "name": 7, "tags": ["x", 8, true] }, { "name": 1.0 }, { "name": false }] }),
        ];
        for value in values {
            let items = |list: List| list.items.into_iter().map(|item| item.value.name).collect::<Vec<_>>();
            let json = read_json("v", &value).map(items);
            assert_eq!(json, read_yaml("v", &value.to_string()).map(items), "{value}");
            assert!(json.is_ok(), "{json:?}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        let cases = [
            (json!({ "items": 3 }), "v: items: `3`: expected a list"),
            (json!({ "items": [{}] }), "v: items[0].name: missing"),
            (json!({ "items": [{ "name": "a" }, 3] }), "v: items[1]: `3`: expected fields"),
            (json!({ "items": [{ "name": null }] }), "v: items[0].name: empty; expected a text"),
            (
                json!({ "items": [{ "name": "a", "size": "x" }] }),
                "v: items[0].size: `x`: expected a whole number from 0 to 4294967295",
            ),
            (
                json!({ "items": [{ "name": "a", "size": -1 }] }),
                "v: items[0].size: `-1`: expected a whole number from 0 to 4294967295",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": "middle" }] }),
                "v: items[0].kind: `middle`: expected one of near, far",
            ),
            (json!({ "items": [{ "name": "a", "kind": 3 }] }), "v: items[0].kind: expected a single word"),
            (
                json!({ "items": [{ "name": "a", "colour": "red" }] }),
                "v: items[0].colour: unknown field; expected one of name, size, kind, tags",
            ),
            (
                json!({ "items": [{ "name": "a", "tags": ["b", []] }] }),
                "v: items[0].tags[1]: a list: expected a text",
            ),
            (json!([]), "v: a list: expected fields"),
        ];
        for (value, message) in cases {
            let error = read_json::<List>("v", &value).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }
}
