//! Request bodies, read completely.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use leeward_connections::BodyBytes;
use leeward_fabric::input::excerpt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::state::AppState;
use leeward_problems::Problem;

/// A body in JSON.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, Problem> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        let is_json = essence.eq_ignore_ascii_case("application/json");
        // A body whose announced length exceeds the limit is rejected at once. Chunked bodies are read up to the limit.
        if request.body().size_hint().lower() > app.largest as u64 {
            return Err(Problem::too_large(app.largest));
        }
        let body = tokio::time::timeout(app.patience, read_body(request, app.largest));
        let body = body.await.map_err(|_| Problem::slow(app.patience))??;
        // The media type is checked after the body is read, because a connection with an unread body must be closed.
        if !is_json {
            return Err(Problem::media_type());
        }
        read(&body).map(Body)
    }
}

/// Reads a request's body, within the size limit and the memory limit.
async fn read_body(request: Request, largest: usize) -> Result<Vec<u8>, Problem> {
    let body_bytes = request.extensions().get::<Arc<BodyBytes>>().cloned();
    let (mut body, mut bytes) = (request.into_body(), Vec::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| Problem::not_json(format!("the body is incomplete: {error}")))?;
        // Frames without data are trailers, which are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > largest {
            return Err(Problem::too_large(largest));
        }
        if body_bytes.as_ref().is_some_and(|body_bytes| !body_bytes.take(data.len())) {
            return Err(Problem::full());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Parses JSON.
///
/// # Errors
/// [`Problem`] with the field of the error.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Valid bodies are parsed without path tracking; only for errors, a second parse finds the field.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let field = (path != ".").then_some(path);
        problem(error.inner(), field)
    })?;
    json.end().map_err(|error| problem(&error, None))?;
    Ok(value)
}

/// Converts a parser error to a problem, in terms of JSON and not of Rust types.
fn problem(error: &serde_json::Error, field: Option<String>) -> Problem {
    let text = error.to_string();
    if error.classify() != Category::Data {
        return Problem::not_json(text);
    }
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(head, _)| head);
    let missing = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    if let Some(missing) = missing {
        let parent = field.map(|parent| parent + ".").unwrap_or_default();
        return Problem::field(format!("{parent}{missing}"), "missing");
    }
    let text = match text.rsplit_once("expected ") {
        Some((head, "f64")) => format!("{head}expected a number"),
        Some((head, "u32")) => format!("{head}expected a whole number from 0 to {}", u32::MAX),
        Some((head, "u64")) => format!("{head}expected a whole number from 0"),
        Some((head, "u8")) => format!("{head}expected a whole number from 0 to 255"),
        Some((head, expected)) if expected.starts_with("struct ") => format!("{head}expected fields"),
        _ => text.to_owned(),
    };
    match field {
        Some(field) => Problem::field(excerpt(&field), text),
        None => Problem::invalid(text),
    }
}
