//! Documents: YAML and JSON texts as trees of values with their places.

use std::borrow::Cow;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value;

use super::spanned::Place;

/// A value of a document.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Node<'t> {
    pub place: Place,
    pub content: MaybeShared<'t>,
}

/// Content of one value, or of an anchor and its aliases.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum MaybeShared<'t> {
    Own(Content<'t>),
    Shared(Rc<Content<'t>>),
}

impl<'t> Deref for MaybeShared<'t> {
    type Target = Content<'t>;

    fn deref(&self) -> &Content<'t> {
        match self {
            MaybeShared::Own(content) => content,
            MaybeShared::Shared(content) => content,
        }
    }
}

/// Content of a value. Numbers and booleans are texts, as the user wrote them, because the expected type decides how to
/// read them: a rack may be called 007.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Content<'t> {
    Null,
    Scalar(Cow<'t, str>, Style),
    List(Vec<Node<'t>>),
    Fields(Vec<Field<'t>>),
}

/// Notation of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// Without quotes; a number or a boolean if the text has that form.
    Plain,
    /// A YAML text in quotes, which a field that expects a number may read as one.
    Quoted,
    /// A text in JSON, or with the YAML tag `!!str`, which is never a number or a boolean.
    Text,
}

/// A field of a map.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Field<'t> {
    pub name: Cow<'t, str>,
    /// Place of the name.
    pub place: Place,
    pub value: Node<'t>,
}

impl<'t> From<&'t Value> for Node<'t> {
    fn from(value: &'t Value) -> Node<'t> {
        let place = Place::default();
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(truth) => Content::Scalar(if *truth { "true" } else { "false" }.into(), Style::Plain),
            Value::Number(number) => Content::Scalar(number.to_string().into(), Style::Plain),
            Value::String(text) => Content::Scalar(text.into(), Style::Text),
            Value::Array(items) => Content::List(items.iter().map(Node::from).collect()),
            Value::Object(fields) => {
                let field = |(name, value): (&'t String, &'t Value)| Field {
                    name: name.into(),
                    place,
                    value: value.into(),
                };
                Content::Fields(fields.iter().map(field).collect())
            }
        };
        Node { place, content: MaybeShared::Own(content) }
    }
}
