//! Values parsed from the text the user wrote. YAML reads `10` as an integer, `1e3` as a float, `yes` as a boolean.
//! Here the expected type decides, and an error repeats the user's text.

use std::fmt;

use serde::de::{Error, Visitor};

/// Completes a visitor that has `visit_str`. Other scalars are passed to `visit_str` as text; lists and maps are
/// rejected with a plain message. A visitor with its own `visit_seq` or `visit_map` expands only the parts that it
/// lacks: `scalars`, `list` or `fields`.
macro_rules! scalars_by_text {
    ($life:lifetime) => {
        $crate::input::scalars_by_text!($life scalars);
        $crate::input::scalars_by_text!($life list);
        $crate::input::scalars_by_text!($life fields);
    };
    ($life:lifetime scalars) => {
        fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
            self.visit_str(if value { "true" } else { "false" })
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Err(E::custom(format_args!("empty; expected {}", &self as &dyn serde::de::Expected)))
        }
    };
    ($life:lifetime list) => {
        fn visit_seq<A: serde::de::SeqAccess<$life>>(self, _: A) -> Result<Self::Value, A::Error> {
            let expected = &self as &dyn serde::de::Expected;
            Err(<A::Error as serde::de::Error>::custom(format_args!("found a list; expected {expected}")))
        }
    };
    ($life:lifetime fields) => {
        fn visit_map<A: serde::de::MapAccess<$life>>(self, _: A) -> Result<Self::Value, A::Error> {
            let expected = &self as &dyn serde::de::Expected;
            Err(<A::Error as serde::de::Error>::custom(format_args!("found fields; expected {expected}")))
        }
    };
}
pub(crate) use scalars_by_text;

/// A visitor for one scalar, converted by `parse`.
pub(crate) struct Scalar<F> {
    /// Description of a valid value, for "expected ...".
    pub expected: &'static str,
    /// Converts the text to a value.
    pub parse: F,
}

impl<'de, T, P, F> Visitor<'de> for Scalar<F>
where
    P: fmt::Display,
    F: FnOnce(&str) -> Result<T, P>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    scalars_by_text!('de);
}
