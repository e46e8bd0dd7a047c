//! Values that are read by the text the user wrote. YAML takes `10` for an integer, `1e3` for a float, `yes` for a
//! boolean; what is expected here decides, and an error repeats what stands in the file.

use std::fmt;

use serde::de::{Error, Visitor};

/// In a visitor with `visit_str`: other scalars go there as text, and lists and fields are refused in a sentence.
/// A visitor that takes one of these asks for the rest by name.
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

/// A visitor for one scalar, which `parse` makes a value of.
pub(crate) struct Scalar<F> {
    /// What the value looks like, after "expected".
    pub expected: &'static str,
    /// From text to value.
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
