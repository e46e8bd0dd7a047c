//! Requests as text, for the routes of a service without sockets.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request, header};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

/// Time limit for a reply. Longer replies, such as streams and long polls, are not awaited.
const PATIENCE: Duration = Duration::from_secs(1);

/// Parses a request: method and URI on a line, a line for each header, an empty line, and the body. By default,
/// the body is JSON and the host is this machine. `None` if the text is no request.
pub fn parse(text: &[u8]) -> Option<Request<Body>> {
    let end = text.windows(2).position(|two| two == b"\n\n");
    let (head, body) = end.map_or((text, &[][..]), |end| (&text[..end], &text[end + 2..]));
    let mut lines = head.split(|&byte| byte == b'\n');
    let (method, uri) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(uri);
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    let mut request = request.body(Body::from(body.to_vec())).ok()?;
    let value = |text: &'static str| move || HeaderValue::from_static(text);
    request.headers_mut().entry(header::CONTENT_TYPE).or_insert_with(value("application/json"));
    request.headers_mut().entry(header::HOST).or_insert_with(value("localhost"));
    Some(request)
}

/// Sends a request to the routes. Returns the status, and the text of the body if it is a problem document; `None` if the
/// reply takes long.
pub async fn send(routes: &Router, request: Request<Body>) -> Option<(u16, String)> {
    let reply = TowerToHyperService::new(routes.clone()).call(request);
    let reply: Result<_, Infallible> = tokio::time::timeout(PATIENCE, reply).await.ok()?;
    let reply = reply.unwrap_or_else(|never| match never {});
    let status = reply.status().as_u16();
    if status < 400 {
        return Some((status, String::new()));
    }
    let body = to_bytes(reply.into_body(), 1 << 20).await.expect("a short body");
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}
