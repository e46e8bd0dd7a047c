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
    /// What its path and its query take.
    pub parameters: &'static [Parameter],
    /// What its body is; `None` where it has none.
    pub body: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// What is answered when it is done: the status, in words, and the body.
    pub answers: &'static [(u16, &'static str, Content)],
    /// Who answers.
    pub handler: fn() -> MethodRouter<Arc<Edge>>,
}

/// A parameter of a path, a query or a head.
pub struct Parameter {
    /// `path`, `query` or `header`.
    pub place: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub text: &'static str,
    /// Its JSON type: `string`, `integer` or `boolean`.
    pub kind: &'static str,
}

/// What an answer has as its body.
#[derive(Clone, Copy)]
pub enum Content {
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Server-sent events; each has the field of its name.
    Stream(fn(&mut SchemaGenerator) -> Schema),
    /// Plain text of this media type.
    Text(&'static str),
    /// None.
    Nothing,
}

/// The schema of a type.
pub fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A parameter of a path.
pub const fn path(name: &'static str, text: &'static str) -> Parameter {
    Parameter { place: "path", name, text, kind: "string" }
}

/// A parameter of a query.
pub const fn query(name: &'static str, kind: &'static str, text: &'static str) -> Parameter {
    Parameter { place: "query", name, text, kind }
}

/// A router for operations.
pub fn router(operations: &[Operation]) -> Router<Arc<Edge>> {
    operations.iter().fold(Router::new(), |router, one| router.route(one.path, (one.handler)()))
}
