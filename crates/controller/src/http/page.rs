//! Dashboard: static files embedded at build time. The files need no token; their API requests do.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};

use leeward_problems::Problem;

/// Files of `web/dist`, sorted by name; empty if it was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

/// Content security policy: a page may load and request only resources of this service.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Page at `/` of a build without the dashboard.
const NO_DASHBOARD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Leeward</title>\
<h1>Leeward</h1><p>The service is running. This program was built without the dashboard: to include it, run \
<code>make build</code> with Node.js 20.19 or later.</p>\
<p>The API is described at <a href=\"/v1/openapi.json\">/v1/openapi.json</a>.</p></html>\n";

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" => "application/json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// File at a path. Asset names contain a hash of their contents, so assets never change.
fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    let name = path.strip_prefix('/')?;
    let name = if name.is_empty() { "index.html" } else { name };
    let index = FILES.binary_search_by(|&(file, _)| file.cmp(name)).ok()?;
    FILES.get(index).copied()
}

/// Response at a path without an operation.
pub async fn page(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let mut response = if method != Method::GET && method != Method::HEAD {
        return Problem::no_path(path).into_response();
    } else if let Some((name, bytes)) = file(path) {
        let forever = "public, max-age=31536000, immutable";
        let cached = if name.starts_with("assets/") { forever } else { "no-cache" };
        let head = [(header::CONTENT_TYPE, media_type(name)), (header::CACHE_CONTROL, cached)];
        (head, Bytes::from_static(bytes)).into_response()
    } else if path == "/" {
        (StatusCode::OK, [(header::CACHE_CONTROL, "no-cache")], Html(NO_DASHBOARD)).into_response()
    } else {
        return Problem::no_path(path).into_response();
    };
    add_security_headers(response.headers_mut());
    response
}

/// Adds security headers.
fn add_security_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_files_are_sorted_and_each_has_a_media_type() {
        assert!(FILES.is_sorted_by_key(|&(name, _)| name));
        for (name, _) in FILES {
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
        }
        assert!(FILES.is_empty() || file("/").is_some_and(|(name, _)| name == "index.html"));
        assert!(file("").is_none() && file("/../Cargo.toml").is_none());
    }
}
