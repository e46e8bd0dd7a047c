//! Requests from browsers. A page of another site can make a browser send requests to this service, and some of them
//! have an effect although the page cannot read the response. Browsers state the origin of a request, and other clients
//! send no such headers.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Version, header};

use super::table::{Content, Operation};
use leeward_problems::Problem;

/// Relation of the page that sends a request to the service: `same-origin`, `same-site`, `cross-site`, or `none` for the
/// user (Fetch Metadata, section 2.4).
const SITE: &str = "sec-fetch-site";
/// Mode of a request: `navigate` if the user follows a link or opens a page.
const MODE: &str = "sec-fetch-mode";
/// Use of the response: `document` in a tab of its own.
const DESTINATION: &str = "sec-fetch-dest";

/// Checks the `host` header, and that the request is not from a page of another site.
///
/// # Errors
/// [`Problem`] if the header is missing, repeated or invalid, or for a page of another site.
pub fn check(request: &Request, operation: Option<&Operation>) -> Result<(), Problem> {
    let headers = request.headers();
    let host = host(headers, request.version())?;
    if let Some(site) = text(headers, SITE) {
        let is_own = ["same-origin", "none"].contains(&site);
        return if is_own || is_link(request, operation) { Ok(()) } else { Err(Problem::other_site(site)) };
    }
    match text(headers, header::ORIGIN.as_str()) {
        Some(origin) if !host.is_some_and(|host| is_origin_of(origin, host)) => {
            Err(Problem::other_site(origin))
        }
        _ => Ok(()),
    }
}

/// Value of a header. Text that is no text is not a value that any check accepts.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Value of the `host` header. HTTP/1.1 requires exactly one (RFC 9112, section 3.2).
fn host(headers: &HeaderMap, version: Version) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(header::HOST).iter();
    match (values.next(), values.next()) {
        (None, _) if version == Version::HTTP_11 => Err(Problem::host("missing")),
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::host("repeated")),
        (Some(host), None) => {
            let host = host.to_str().map_err(|_| Problem::host("not text"))?;
            let is_valid = host.is_empty()
                || host.parse::<Authority>().is_ok_and(|authority| !authority.as_str().contains('@'));
            if is_valid { Ok(Some(host)) } else { Err(Problem::host("not a host with an optional port")) }
        }
    }
}

/// True if the user follows a link to a page. A stream in a tab would use up one of the streams.
fn is_link(request: &Request, operation: Option<&Operation>) -> bool {
    let headers = request.headers();
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let is_stream = operation.is_some_and(|operation| {
        operation.answers.iter().any(|(_, _, content)| matches!(content, Content::Stream(_)))
    });
    let in_tab = text(headers, DESTINATION).is_none_or(|destination| destination == "document");
    is_read && !is_stream && in_tab && text(headers, MODE) == Some("navigate")
}

/// True if an origin is the origin of a host. A proxy in front of the service may add or remove TLS.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let with_port = |scheme: &str, default_port: &str| {
        let name = origin.strip_prefix(scheme)?;
        let host = host.strip_suffix(default_port).unwrap_or(host);
        Some(name.eq_ignore_ascii_case(host) && !host.is_empty())
    };
    with_port("http://", ":80").or_else(|| with_port("https://", ":443")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_belongs_to_its_host_and_no_other() {
        for (origin, host) in [
            ("http://localhost:7600", "localhost:7600"),
            ("http://Leeward.example", "leeward.example"),
            ("http://leeward.example", "leeward.example:80"),
            ("https://leeward.example", "leeward.example:443"),
            ("https://[::1]:7600", "[::1]:7600"),
        ] {
            assert!(is_origin_of(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "localhost:7600"),
            ("", ""),
            ("http://", ""),
            ("http://evil.example", "localhost:7600"),
            ("http://localhost", "localhost:7600"),
            ("http://localhost:7600.evil.example", "localhost:7600"),
            ("file://localhost:7600", "localhost:7600"),
            ("https://leeward.example", "leeward.example:80"),
        ] {
            assert!(!is_origin_of(origin, host), "{origin} {host}");
        }
    }
}
