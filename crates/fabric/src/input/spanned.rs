//! Values with their place in a file.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A place in a YAML text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Line, from 1; 0 if the place is unknown.
    pub line: u32,
    /// Column, from 1; 0 if the place is unknown.
    pub column: u32,
}

/// A value and its place in the file that it was read from. The place is unknown in formats other than YAML.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Place of the value. The place of an alias is its own, not that of the anchor.
    pub place: Place,
}

/// Name of a newtype for which the [deserializer of documents](super::document) gives a list: line, column and value.
pub(super) const SPANNED: &str = "leeward::Spanned";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SPANNED, SpannedVisitor(PhantomData))
    }
}

struct SpannedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SpannedVisitor<T> {
    type Value = Spanned<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    /// A value with its place.
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Spanned<T>, A::Error> {
        let missing = || A::Error::custom("a place without a value");
        let line = parts.next_element()?.ok_or_else(missing)?;
        let column = parts.next_element()?.ok_or_else(missing)?;
        let value = parts.next_element()?.ok_or_else(missing)?;
        Ok(Spanned { value, place: Place { line, column } })
    }

    /// A value of a format without places.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Spanned<T>, D::Error> {
        Ok(Spanned { value: T::deserialize(deserializer)?, place: Place::default() })
    }
}
