//! Dashboard: static files embedded at build time. The files need no token; their API requests do.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};

use super::problem::Problem;

/// Files of `web/dist`, sorted by name; empty if it was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

/// Content security policy: a page may load and request only resources of this service.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Page at `/` of a build without the dashboard.
const LEFT_OUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Leeward</title>\
<h1>Leeward</h1><p>The service runs. This program was built without its dashboard: with Node 20.19 or later, \
<code>make build</code> builds it and takes it in.</p>\
<p>What can be asked is described at <a href=\"/v1/openapi.json\">/v1/openapi.json</a>.</p></html>\n";

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
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
    let at = FILES.binary_search_by(|&(one, _)| one.cmp(name)).ok()?;
    FILES.get(at).copied()
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
        (StatusCode::OK, [(header::CACHE_CONTROL, "no-cache")], Html(LEFT_OUT)).into_response()
    } else {
        return Problem::no_path(path).into_response();
    };
    guard(response.headers_mut());
    response
}

fn guard(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
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
