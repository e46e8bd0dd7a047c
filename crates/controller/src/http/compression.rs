//! Compression of responses by gzip and zstd, as far as a client accepts them.

use std::io;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leeward_frames::Encoding;
use leeward_service::in_background;

use leeward_problems::Problem;

/// Smallest body that is compressed, in bytes. A smaller one fits one packet anyway.
const SMALLEST: usize = 1_024;
/// Largest body that is compressed at once, in bytes. A larger one takes more than a millisecond, so another thread
/// compresses it.
pub const AT_ONCE: usize = 1 << 16;
/// Media types of compressed responses.
const MEDIA_TYPES: [&str; 4] =
    ["application/json", "application/openmetrics-text", "application/problem+json", "text/"];

/// Best encoding that a client accepts.
pub fn accepted(headers: &HeaderMap) -> Encoding {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    Encoding::accepted(values.filter_map(|value| value.to_str().ok()))
}

/// Sets the headers of a response in an encoding.
pub fn set_headers(encoding: Encoding, headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(name) = encoding.name() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Compresses the body of a response to a read, if it is worth it and the client accepts it. Responses to placements
/// and reports are small and awaited, so they stay as they are.
pub async fn compress(request: Request, next: Next) -> Response {
    let (is_read, encoding) = (request.method() == Method::GET, accepted(request.headers()));
    let response = next.run(request).await;
    if !is_read || response.status() != StatusCode::OK || !is_text(response.headers()) {
        return response;
    }
    // A stream has no exact size, and compresses itself.
    let Some(size) = response.body().size_hint().exact() else { return response };
    let (mut parts, body) = response.into_parts();
    if encoding == Encoding::Identity || size < SMALLEST as u64 {
        set_headers(Encoding::Identity, &mut parts.headers);
        return Response::from_parts(parts, body);
    }
    let compressed = match axum::body::to_bytes(body, usize::MAX).await {
        Ok(body) if body.len() <= AT_ONCE => encoding.compress(body),
        Ok(body) => {
            let compressed = in_background(move || encoding.compress(body)).await;
            compressed.unwrap_or_else(|ended| Err(io::Error::other(ended)))
        }
        Err(error) => Err(io::Error::other(error)),
    };
    match compressed {
        Ok(body) => {
            set_headers(encoding, &mut parts.headers);
            Response::from_parts(parts, Body::from(body))
        }
        Err(error) => {
            tracing::error!(%error, "a response could not be compressed");
            Problem::broken().into_response()
        }
    }
}

/// True for a body of text that is not compressed yet.
fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_text =
        media_type.is_some_and(|media_type| MEDIA_TYPES.iter().any(|one| media_type.starts_with(one)));
    is_text && !headers.contains_key(header::CONTENT_ENCODING)
}
