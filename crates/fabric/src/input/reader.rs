//! Reads values of any type from documents. All formats share this reader: they accept the same values and describe
//! errors in the same words. Each type is compiled once for all formats. The typed readers of the formats' libraries
//! took four times as long to compile.

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

use super::document::{Content, Field, Node, Style};
use super::mismatch::{Mismatch, in_words};
use super::schema::{self, Plain};
use super::spanned::SPANNED;
use super::{InputError, excerpt};

/// Reads a `T` from a document; errors call the document `name`.
pub(super) fn read<T: DeserializeOwned>(name: &str, node: &Node<'_>) -> Result<T, InputError> {
    T::deserialize(Reader(node)).map_err(|mismatch| mismatch.error(name))
}

/// A deserializer of one node.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a Node<'a>);

impl<'a> Reader<'a> {
    /// Text of a scalar that may be a number or a boolean.
    fn plain(self) -> Option<&'a str> {
        match &*self.0.content {
            Content::Scalar(text, Style::Plain) => Some(text),
            Content::Scalar(text, Style::Quoted) => Some(text.trim_matches([' ', '\t', '\r', '\n'])),
            _ => None,
        }
    }

    /// A mismatch with the expected kind of value.
    fn mismatch(self, expected: &str) -> Mismatch {
        let found = match &*self.0.content {
            Content::Null => "empty; ".into(),
            Content::Scalar(text, _) => format!("`{}`: ", excerpt(text)),
            Content::List(_) => "a list: ".into(),
            Content::Fields(_) => "fields: ".into(),
        };
        Mismatch::new(format_args!("{found}expected {}", in_words(expected))).at(self.0.place)
    }

    /// Adds the place of the node to a mismatch.
    fn located<T>(self, read: Result<T, Mismatch>) -> Result<T, Mismatch> {
        read.map_err(|mismatch| mismatch.at(self.0.place))
    }

    fn integer<'de, V: Visitor<'de>>(self, kind: &str, visitor: V) -> Result<V::Value, Mismatch> {
        let number = self.plain().and_then(schema::integer).ok_or_else(|| self.mismatch(kind))?;
        self.located(match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(number)) => visitor.visit_i64(number),
            _ => Err(self.mismatch(kind)),
        })
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &*self.0.content {
            Content::Scalar(text, _) => self.located(visitor.visit_str(text)),
            _ => Err(self.mismatch("a string")),
        }
    }
}

macro_rules! integers {
    ($($method:ident $kind:literal)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            self.integer($kind, visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.located(match &*self.0.content {
            Content::Null => visitor.visit_unit(),
            Content::Scalar(text, Style::Plain) => match Plain::of(text) {
                Plain::Bool(truth) => visitor.visit_bool(truth),
                Plain::Unsigned(number) => visitor.visit_u64(number),
                Plain::Signed(number) => visitor.visit_i64(number),
                Plain::Float(number) => visitor.visit_f64(number),
                Plain::Text(text) => visitor.visit_str(text),
            },
            Content::Scalar(text, _) => visitor.visit_str(text),
            Content::List(items) => visit_list(items, visitor),
            Content::Fields(fields) => visit_fields(fields, visitor),
        })
    }

    integers! {
        deserialize_i8 "i8" deserialize_i16 "i16" deserialize_i32 "i32" deserialize_i64 "i64"
        deserialize_u8 "u8" deserialize_u16 "u16" deserialize_u32 "u32" deserialize_u64 "u64"
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let number = self.plain().and_then(schema::float);
        // A decimal number beyond the range of the type is an error, but `.inf` is valid.
        let is_digit = |text: &str| text.contains(|digit: char| digit.is_ascii_digit());
        let number = number.filter(|number| number.is_finite() || !self.plain().is_some_and(is_digit));
        self.located(visitor.visit_f64(number.ok_or_else(|| self.mismatch("f64"))?))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let truth = self.plain().and_then(schema::boolean);
        self.located(visitor.visit_bool(truth.ok_or_else(|| self.mismatch("a boolean"))?))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.text(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &*self.0.content {
            Content::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        if name == SPANNED { visitor.visit_seq(Parts(self, 0)) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.located(match &*self.0.content {
            Content::Null => visit_list(&[], visitor),
            Content::List(items) => visit_list(items, visitor),
            _ => Err(self.mismatch("a sequence")),
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.located(match &*self.0.content {
            Content::Null => visit_fields(&[], visitor),
            Content::Fields(fields) => visit_fields(fields, visitor),
            _ => Err(self.mismatch("a map")),
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.located(match &*self.0.content {
            Content::Scalar(word, _) => {
                let word: StrDeserializer<'_, Mismatch> = word.as_ref().into_deserializer();
                visitor.visit_enum(word)
            }
            Content::Fields(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(&mut Fields { fields, next: 0 }))
            }
            Content::Fields(fields) => {
                Err(Mismatch::new(format_args!("{} fields: expected one", fields.len())))
            }
            _ => Err(Mismatch::new("expected a single word")),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { char bytes byte_buf unit unit_struct tuple_struct identifier }
}

/// Passes a list to a visitor, which must read all items.
fn visit_list<'de, V: Visitor<'de>>(items: &[Node<'_>], visitor: V) -> Result<V::Value, Mismatch> {
    let mut list = Items { items, next: 0 };
    let value = visitor.visit_seq(&mut list)?;
    list.end().map(|()| value)
}

/// Passes fields to a visitor, which must read all of them.
fn visit_fields<'de, V: Visitor<'de>>(fields: &[Field<'_>], visitor: V) -> Result<V::Value, Mismatch> {
    let mut map = Fields { fields, next: 0 };
    let value = visitor.visit_map(&mut map)?;
    map.end().map(|()| value)
}

/// Items of a list.
struct Items<'a> {
    items: &'a [Node<'a>],
    next: usize,
}

impl Items<'_> {
    /// Fails if items are left: the expected type is a list of fixed length.
    fn end(&self) -> Result<(), Mismatch> {
        let (length, read) = (self.items.len(), self.next);
        if read < length {
            return Err(Mismatch::new(format_args!("a list of {length}: expected a list of {read}")));
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        let index = self.next;
        let Some(item) = self.items.get(index) else { return Ok(None) };
        self.next += 1;
        let read = seed.deserialize(Reader(item));
        read.map(Some).map_err(|mismatch| mismatch.at(item.place).under(format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// Fields of a map.
struct Fields<'a> {
    fields: &'a [Field<'a>],
    next: usize,
}

impl Fields<'_> {
    /// Fails if fields are left.
    fn end(&self) -> Result<(), Mismatch> {
        let (number, read) = (self.fields.len(), self.next);
        if read < number {
            return Err(Mismatch::new(format_args!("{number} fields: expected {read}")));
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Fields<'_> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        let Some(field) = self.fields.get(self.next) else { return Ok(None) };
        let name: StrDeserializer<'_, Mismatch> = field.name.as_ref().into_deserializer();
        let read = seed.deserialize(name);
        read.map(Some).map_err(|mismatch| mismatch.at(field.place).under(excerpt(&field.name)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let Some(field) = self.fields.get(self.next) else {
            return Err(Mismatch::new("a field without a value"));
        };
        self.next += 1;
        let read = seed.deserialize(Reader(&field.value));
        read.map_err(|mismatch| mismatch.at(field.value.place).under(excerpt(&field.name)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len() - self.next)
    }
}

/// The parts of a [`Spanned`](super::Spanned): line, column and value. The number counts the parts already read.
struct Parts<'a>(Reader<'a>, u8);

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        let Parts(reader, read) = self;
        *read += 1;
        match read {
            1 => seed.deserialize(reader.0.place.line.into_deserializer()).map(Some),
            2 => seed.deserialize(reader.0.place.column.into_deserializer()).map(Some),
            _ => seed.deserialize(*reader).map(Some),
        }
    }
}
