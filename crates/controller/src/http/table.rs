//! Table of all operations; the router and the OpenAPI document are generated from it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request};
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use schemars::{Schema, SchemaGenerator};

use super::state::AppState;
use leeward_access::Role;
use leeward_problems::Problem;

/// An operation of the API.
pub struct Operation {
    /// HTTP method.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Role the caller needs; `None` for a public operation.
    pub role: Option<Role>,
    /// Summary in one line.
    pub summary: &'static str,
    /// Parameters of the path, the query and the header.
    pub parameters: &'static [Parameter],
    /// Schema of the body; `None` without a body.
    pub body: Option<Describe>,
    /// Responses on success: status, description and body.
    pub answers: &'static [(u16, &'static str, Content)],
    /// Handler.
    pub handler: fn() -> MethodRouter<Arc<AppState>>,
}

/// Operations about one subject, which tools show together.
pub struct Subject {
    /// Tag of the operations.
    pub name: &'static str,
    /// Description in one line.
    pub text: &'static str,
    /// Operations, in the order of the reference.
    pub operations: &'static [Operation],
}

/// Generator of a schema.
pub type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Parameter of a path, a query or a header.
pub enum Parameter {
    /// A value of the path or the header.
    One {
        /// Location: `path` or `header`.
        place: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Description.
        text: &'static str,
        /// Schema of its value.
        value: Describe,
    },
    /// A query, parsed as this type.
    Query(Describe),
}

/// Body of a response.
#[derive(Clone, Copy)]
pub enum Content {
    /// JSON of this schema.
    Json(Describe),
    /// Server-sent events; the event's name is the field of this schema.
    Stream(Describe),
    /// Plain text of these media types, the default first.
    Text(&'static [&'static str]),
    /// No body.
    Nothing,
}

/// Schema of a type.
pub fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Path parameter.
pub const fn path(name: &'static str, text: &'static str, value: Describe) -> Parameter {
    Parameter::One { place: "path", name, text, value }
}

/// Header parameter.
pub const fn header(name: &'static str, text: &'static str, value: Describe) -> Parameter {
    Parameter::One { place: "header", name, text, value }
}

/// Query of a type.
pub const fn query<T: schemars::JsonSchema>() -> Parameter {
    Parameter::Query(T::json_schema)
}

/// Router of operations. Operations without a query reject every parameter, because a client that sends `dry_run`
/// must not commit.
pub fn router<'a>(operations: impl Iterator<Item = &'a Operation>) -> Router<Arc<AppState>> {
    operations.fold(Router::new(), |router, one| {
        let handler = (one.handler)();
        let has_query = one.parameters.iter().any(|parameter| matches!(parameter, Parameter::Query(_)));
        router.route(one.path, if has_query { handler } else { handler.route_layer(from_fn(no_query)) })
    })
}

/// Rejects a request with query parameters.
async fn no_query(request: Request, next: Next) -> Response {
    match first_parameter(request.uri()) {
        Some(name) => Problem::no_parameters(&name).into_response(),
        None => next.run(request).await,
    }
}

/// Name of the first query parameter.
fn first_parameter(uri: &Uri) -> Option<String> {
    let query = uri.query().filter(|query| !query.is_empty())?;
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).ok();
    let first = pairs.and_then(|Query(pairs)| pairs.into_iter().next());
    Some(first.map_or_else(|| query.to_owned(), |(name, _)| name))
}
