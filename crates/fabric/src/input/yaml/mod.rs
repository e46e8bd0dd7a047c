//! Reads YAML files into values.
//!
//! A library parses the text, and this module builds the tree of values from the library's events. The typed readers of
//! YAML libraries do not fit. They represent the place of a value as several more values, and find the path to an error
//! only by reading the text again. The compiler would also compile each type several times.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde::de::DeserializeOwned;

use super::document::{Content, Field, MaybeShared, Node, Style};
use super::mismatch::Mismatch;
use super::spanned::Place;
use super::{InputError, excerpt, reader, schema};

/// Limit on the values in a file, without repetitions by aliases. 100,000 hosts with every field are two million
/// values.
const MOST_VALUES: usize = 5_000_000;
/// Limit on references (`*alias`) in a file to its anchors.
const MOST_ALIASES: usize = 200_000;
/// Limit on the values that all references together repeat. A few lines of nested references can expand to billions.
const MOST_REPEATED: usize = 4_000_000;
/// Limit on the depth of nested lists and fields, with the levels of aliases.
const MOST_NESTED: usize = 64;
/// Smallest number of fields of a map for which a set detects duplicates.
const MANY_FIELDS: usize = 12;

/// Reads a YAML text (JSON is YAML too) into a `T`; `file` names the text in errors.
///
/// # Errors
///
/// Fails if the text is empty, is not YAML, exceeds the limits, or does not describe a `T`.
pub fn read_yaml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() {
        return Err(InputError::new(file, "the file is empty"));
    }
    let node = Composer::new(text).document().map_err(|mismatch| mismatch.error(file))?;
    reader::read(file, &node)
}

/// Builds the tree of a text.
struct Composer<'t> {
    events: Parser<'t, StrInput<'t>>,
    /// Values of anchors; `None` inside the anchor's own value.
    anchors: HashMap<usize, Option<Anchored<'t>>>,
    values: usize,
    aliases: usize,
    repeated: usize,
    nested: usize,
    /// Deepest level so far in the value that is being read, with the levels of aliases.
    deepest: usize,
}

/// The value of an anchor.
struct Anchored<'t> {
    content: Rc<Content<'t>>,
    /// Number of values in it, itself included.
    values: usize,
    /// Number of levels of lists and fields in it.
    height: usize,
}

impl<'t> Composer<'t> {
    fn new(text: &'t str) -> Composer<'t> {
        let mut options = Options::default();
        // The limit of this module, with its own message, applies first.
        (options.flow_nesting_limit, options.block_nesting_limit) = (MOST_NESTED + 2, MOST_NESTED + 2);
        let events = Parser::new_from_str_with_options(text, options);
        Composer {
            events,
            anchors: HashMap::new(),
            values: 0,
            aliases: 0,
            repeated: 0,
            nested: 0,
            deepest: 0,
        }
    }

    /// Next event, and its place.
    fn next(&mut self) -> Result<(Event<'t>, Place), Mismatch> {
        match self.events.next_event() {
            Some(Ok((event, Span { start, .. }))) => Ok((event, place(&start))),
            Some(Err(error)) => Err(syntax(&error)),
            None => Err(Mismatch::new("the file ends where a value is expected")),
        }
    }

    /// The only document of the text.
    fn document(mut self) -> Result<Node<'t>, Mismatch> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentEnd, _) => {}
                (Event::DocumentStart(..), at) if root.is_some() => {
                    return Err(Mismatch::new("a second document begins here; expected one").at(at));
                }
                (Event::DocumentStart(..), _) => {
                    let (event, at) = self.next()?;
                    root = Some(self.node(event, at)?);
                }
                // A text of comments alone is empty.
                _ => {
                    let empty = || Node { place: Place::default(), content: MaybeShared::Own(Content::Null) };
                    return Ok(root.unwrap_or_else(empty));
                }
            }
        }
    }

    /// The value that begins with this event.
    fn node(&mut self, event: Event<'t>, place: Place) -> Result<Node<'t>, Mismatch> {
        self.values += 1;
        if self.values > MOST_VALUES {
            let message = format!("too large: more than {MOST_VALUES} values");
            return Err(Mismatch::new(message).at(place));
        }
        if let Event::Alias(anchor) = event {
            return self.alias(anchor, place);
        }
        let before = self.values + self.repeated;
        let deepest_before = std::mem::replace(&mut self.deepest, self.nested);
        let (anchor, content) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, scalar(text, style, tag.as_deref()).map_err(|mismatch| mismatch.at(place))?)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.collection(anchor, place, Composer::list)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.collection(anchor, place, Composer::fields)?),
            _ => return Err(Mismatch::new("the file ends where a value is expected").at(place)),
        };
        let height = self.deepest - self.nested;
        self.deepest = self.deepest.max(deepest_before);
        if anchor == 0 {
            return Ok(Node { place, content: MaybeShared::Own(content) });
        }
        let content = Rc::new(content);
        let values = 1 + self.values + self.repeated - before;
        self.anchors.insert(anchor, Some(Anchored { content: content.clone(), values, height }));
        Ok(Node { place, content: MaybeShared::Shared(content) })
    }

    /// Reads a list or fields, one level deeper.
    fn collection(
        &mut self,
        anchor: usize,
        place: Place,
        read: fn(&mut Self) -> Result<Content<'t>, Mismatch>,
    ) -> Result<Content<'t>, Mismatch> {
        if self.nested == MOST_NESTED {
            return Err(Mismatch::new("nested too deeply").at(place));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.nested += 1;
        self.deepest = self.deepest.max(self.nested);
        let content = read(self);
        self.nested -= 1;
        content
    }

    /// The value of an anchor.
    fn alias(&mut self, anchor: usize, place: Place) -> Result<Node<'t>, Mismatch> {
        self.aliases += 1;
        if self.aliases > MOST_ALIASES {
            return Err(Mismatch::new(format_args!("more than {MOST_ALIASES} aliases")).at(place));
        }
        let Some(Some(Anchored { content, values, height })) = self.anchors.get(&anchor) else {
            return Err(Mismatch::new("an alias inside its own anchor").at(place));
        };
        if self.nested + height > MOST_NESTED {
            return Err(Mismatch::new("nested too deeply").at(place));
        }
        self.deepest = self.deepest.max(self.nested + height);
        self.repeated += values;
        if self.repeated > MOST_REPEATED {
            let message = format!("too large: aliases repeat more than {MOST_REPEATED} values");
            return Err(Mismatch::new(message).at(place));
        }
        Ok(Node { place, content: MaybeShared::Shared(content.clone()) })
    }

    fn list(&mut self) -> Result<Content<'t>, Mismatch> {
        let mut items = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Content::List(items));
            }
            let item =
                self.node(event, at).map_err(|mismatch| mismatch.under(format!("[{}]", items.len())))?;
            items.push(item);
        }
    }

    fn fields(&mut self) -> Result<Content<'t>, Mismatch> {
        let (mut fields, mut names) = (Vec::<Field<'t>>::new(), HashSet::new());
        let mut merged = Vec::new();
        loop {
            let (event, at) = self.next()?;
            let is_merge = matches!(&event, Event::Scalar(name, ScalarStyle::Plain, ..) if name == "<<");
            if event == Event::MappingEnd {
                break;
            }
            let name = match &*self.node(event, at)?.content {
                Content::Scalar(name, _) => name.clone(),
                Content::Null => return Err(Mismatch::new("empty; expected a text").at(at)),
                Content::List(_) => return Err(Mismatch::new("a list: expected a text").at(at)),
                _ => return Err(Mismatch::new("fields: expected a text").at(at)),
            };
            let under = |mismatch: Mismatch| mismatch.under(excerpt(&name));
            let (event, value_at) = self.next().map_err(under)?;
            let value = self.node(event, value_at).map_err(under)?;
            if is_merge {
                merged.extend(merge(&value).map_err(under)?);
                continue;
            }
            // A few names are compared one by one; a set detects duplicates among many names.
            let is_duplicate = if fields.len() < MANY_FIELDS {
                fields.iter().any(|field| field.name == name)
            } else {
                if names.is_empty() {
                    names.extend(fields.iter().map(|field| field.name.clone()));
                }
                !names.insert(name.clone())
            };
            if is_duplicate {
                return Err(under(Mismatch::new("given twice").at(at)));
            }
            fields.push(Field { name, place: at, value });
        }
        if !merged.is_empty() {
            // `names` may lack the names of few fields.
            names.extend(fields.iter().map(|field| field.name.clone()));
            fields.extend(merged.into_iter().filter(|field| names.insert(field.name.clone())));
        }
        Ok(Content::Fields(fields))
    }
}

/// Fields that a `<<` merges. The map's own fields take precedence over merged fields, and earlier merged fields over
/// later ones.
fn merge<'t>(value: &Node<'t>) -> Result<Vec<Field<'t>>, Mismatch> {
    let items = match &*value.content {
        Content::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let mut merged = Vec::new();
    for item in items {
        match &*item.content {
            Content::Fields(fields) => merged.extend_from_slice(fields),
            // An empty value has no fields.
            Content::Null => {}
            _ => return Err(Mismatch::new("`<<` expects fields, or a list of fields").at(value.place)),
        }
    }
    Ok(merged)
}

/// Content of a scalar. A tag of the core schema decides how the scalar is read, and the tag `!` makes it a text. Other
/// tags have no effect.
fn scalar<'t>(text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Content<'t>, Mismatch> {
    let style = match tag.and_then(Tag::core_suffix) {
        Some("null") => return Ok(Content::Null),
        Some("str") => Style::Text,
        Some("int") if schema::integer(&text).is_some() => Style::Plain,
        Some("float") if schema::float(&text).is_some() => Style::Plain,
        Some("bool") if schema::boolean(&text).is_some() => Style::Plain,
        Some(kind) => {
            return Err(Mismatch::new(format_args!("`{}`: does not fit its tag `!!{kind}`", excerpt(&text))));
        }
        None if style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.parts() == ("", "!")) => {
            Style::Quoted
        }
        None if schema::is_null(&text) => return Ok(Content::Null),
        None => Style::Plain,
    };
    Ok(Content::Scalar(text, style))
}

fn place(marker: &Marker) -> Place {
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: short(marker.line()), column: short(marker.col() + 1) }
}

/// A syntax error of the parser.
fn syntax(error: &ScanError) -> Mismatch {
    let message = match error.kind() {
        ErrorKind::RecursionLimitExceeded => "nested too deeply".to_owned(),
        ErrorKind::UnknownAnchor => {
            "unknown alias; an alias repeats the value of an earlier anchor (`&name`)".to_owned()
        }
        _ => format!("not YAML: {}", error.info()),
    };
    Mismatch::new(message).at(place(error.marker()))
}
