//! Every operation there is, once: what routes requests and what describes them are made from the same table.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;
use schemars::{Schema, SchemaGenerator};

use super::Edge;
use crate::access::Role;

/// Something that can be asked of the service.
pub struct Operation {
    /// How.
    pub method: Method,
    /// Where, with parameters in braces.
    pub path: &'static str,
    /// What who asks must be allowed to; `None` if anyone may.
    pub role: Option<Role>,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What its path, its query and its head take.
    pub parameters: &'static [Parameter],
    /// What its body is; `None` where it has none.
    pub body: Option<Describe>,
    /// What is answered when it is done: the status, in words, and the body.
    pub answers: &'static [(u16, &'static str, Content)],
    /// Who answers.
    pub handler: fn() -> MethodRouter<Arc<Edge>>,
}

/// Operations about one thing, which tools show together.
pub struct Subject {
    /// What they are called together.
    pub name: &'static str,
    /// What they are about, in a line.
    pub text: &'static str,
    /// They, in the order of the reference.
    pub operations: &'static [Operation],
}

/// What makes a schema.
pub type Describe = fn(&mut SchemaGenerator) -> Schema;

/// What a path, a query or a head takes.
pub enum Parameter {
    /// A value of the path, or of the head.
    One {
        /// `path` or `header`.
        place: &'static str,
        /// Its name.
        name: &'static str,
        /// What it means.
        text: &'static str,
        /// What it may be.
        value: Describe,
    },
    /// A query that is read as this type.
    Query(Describe),
}

/// What an answer has as its body.
#[derive(Clone, Copy)]
pub enum Content {
    /// JSON of this schema.
    Json(Describe),
    /// Server-sent events; each has the field of its name.
    Stream(Describe),
    /// Plain text of this media type.
    Text(&'static str),
    /// None.
    Nothing,
}

/// The schema of a type.
pub fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A value of a path.
pub const fn path(name: &'static str, text: &'static str, value: Describe) -> Parameter {
    Parameter::One { place: "path", name, text, value }
}

/// A value of a head.
pub const fn header(name: &'static str, text: &'static str, value: Describe) -> Parameter {
    Parameter::One { place: "header", name, text, value }
}

/// What a query is read as.
pub const fn query<T: schemars::JsonSchema>() -> Parameter {
    Parameter::Query(T::json_schema)
}

/// A router for operations.
pub fn router<'a>(operations: impl Iterator<Item = &'a Operation>) -> Router<Arc<Edge>> {
    operations.fold(Router::new(), |router, one| router.route(one.path, (one.handler)()))
}
