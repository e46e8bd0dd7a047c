//! Client of Prometheus: one query at a time, with limits on time and on answer size.

use std::io::{ErrorKind, Read as _};

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use serde::Deserialize;

use super::access::Access;
use super::answer::Answer;
use super::beginning;

/// Largest answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 48 << 20;
/// Largest part of an error answer that is read, in bytes.
const MAX_ERROR_BYTES: u64 = 64 << 10;

/// A client for one server.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    access: Access,
    timeout: Nanos,
}

/// A failed query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryError {
    /// Reason.
    pub reason: String,
    /// Wait time that the server requests with its `Retry-After` header.
    pub retry_after: Option<Nanos>,
    /// True if further queries of the round would also fail: the server is unavailable, or the credentials cannot be
    /// read.
    pub ends_round: bool,
}

/// An answer with the server's time.
pub struct QueryReply {
    /// The answer.
    pub answer: Answer,
    /// Server clock in milliseconds since 1970, with a precision of one second.
    pub date_ms: Option<i64>,
}

/// Error body of Prometheus.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

impl Client {
    /// Creates a client for the server at `url`; sends nothing yet.
    ///
    /// # Errors
    /// [`InputError`] with the field of the credentials file.
    pub fn new(url: String, http: Option<&str>, timeout: Nanos) -> Result<Client, InputError> {
        let access = Access::read(&url, http)?;
        let url = format!("{}/api/v1/query", access.url());
        Ok(Client { agent: access.agent(timeout), url, access, timeout })
    }

    /// Queries the value of a range selector at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`QueryError`] if the query fails, or if the answer is not a valid Prometheus answer.
    pub fn query(&self, query: &str, at_ms: i64) -> Result<QueryReply, QueryError> {
        let invalid = |reason: String| QueryError { reason, retry_after: None, ends_round: false };
        let unavailable = |reason: String| QueryError { reason, retry_after: None, ends_round: true };
        let headers = self.access.headers(at_ms).map_err(unavailable)?;
        let time = format!("{}.{:03}", at_ms.div_euclid(1000), at_ms.rem_euclid(1000));
        let timeout = format!("{}ms", self.timeout.0 / 1_000_000);
        let form = [("query", query), ("time", time.as_str()), ("timeout", timeout.as_str())];
        let post = headers
            .iter()
            .fold(self.agent.post(&self.url), |request, (name, value)| request.header(name, value));
        let mut response = post.send_form(form).map_err(|error| unavailable(self.describe(&error)))?;
        // Proxies that only permit to read may reject POST.
        if response.status() == 405 {
            let get = headers
                .iter()
                .fold(self.agent.get(&self.url), |request, (name, value)| request.header(name, value));
            response = get.query_pairs(form).call().map_err(|error| unavailable(self.describe(&error)))?;
        }
        let header = |name: &str| response.headers().get(name).and_then(|text| text.to_str().ok());
        let retry_after = header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
        let retry_after = retry_after.map(|seconds| Nanos(u64::from(seconds) * Nanos::SECOND.0));
        let date_ms = header("date").and_then(|text| rfc2822::parse(text).ok());
        let date_ms = date_ms.map(|date| Timestamp::from(date).as_millisecond());
        let (status, limit) = match response.status().as_u16() {
            200 => (200, MAX_ANSWER_BYTES),
            status => (status, MAX_ERROR_BYTES),
        };
        let too_large = || invalid(format!("more than {} MiB: narrow the selector", MAX_ANSWER_BYTES >> 20));
        if status == 200 && response.body().content_length().is_some_and(|length| length > MAX_ANSWER_BYTES) {
            return Err(too_large());
        }
        let mut text = Vec::new();
        let read = response.body_mut().as_reader().take(limit + 1).read_to_end(&mut text);
        if status == 401 {
            self.access.rejected();
        }
        if status != 200 {
            return Err(QueryError {
                reason: describe_status(status, &text),
                retry_after,
                ends_round: matches!(status, 429 | 502..=504),
            });
        }
        read.map_err(|error| unavailable(self.describe(&error.into())))?;
        if text.len() as u64 > MAX_ANSWER_BYTES {
            return Err(too_large());
        }
        Ok(QueryReply { answer: Answer::read(&text).map_err(invalid)?, date_ms })
    }

    /// Message for a transport error.
    fn describe(&self, error: &ureq::Error) -> String {
        let error = match error {
            ureq::Error::Timeout(_) => return format!("no answer in {}", self.timeout),
            ureq::Error::Io(error) => error,
            error => return beginning(&error.to_string(), 200),
        };
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(reason)) => {
                let hint = "set tls_config.ca_file in the file of `http` to the authority that signed it";
                return format!("its certificate is not trusted ({reason}); {hint}");
            }
            Some(error) => return beginning(&error.to_string(), 200),
            None => {}
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "the connection was closed".to_owned(),
            _ => beginning(&error.to_string(), 200),
        }
    }
}

/// Message for an error answer, with a hint for the operator.
fn describe_status(status: u16, text: &[u8]) -> String {
    let message = match serde_json::from_slice(text) {
        Ok(ErrorBody { error }) => error,
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    };
    let hint = match status {
        401 | 403 => "; credentials missing or rejected: set `http` with basic_auth or authorization",
        300..=399 | 404 | 405 => "; expected the address of a Prometheus, with its path if it has one",
        _ => "",
    };
    match beginning(&message, 200) {
        message if message.is_empty() => format!("it answers {status}{hint}"),
        message => format!("it answers {status}: {message}{hint}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_query_that_is_rejected_as_post_is_sent_as_get() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || {
            let mut requests = vec![];
            for stream in listener.incoming().take(2) {
                let mut stream = stream.expect("a connection");
                let mut request = String::new();
                // The last field of either request is the timeout; the body of a POST may arrive later.
                while !request.contains("timeout=") || !request.contains("\r\n\r\n") {
                    let mut text = [0; 4096];
                    let length = stream.read(&mut text).expect("a request");
                    request.push_str(&String::from_utf8_lossy(&text[..length]));
                }
                let (status, body) = if request.starts_with("GET") {
                    (200, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#)
                } else {
                    (405, "Method Not Allowed")
                };
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                )
                .expect("an answer");
                requests.push(request.lines().next().unwrap_or_default().to_owned());
            }
            requests
        });
        let client =
            Client::new(format!("http://{address}"), None, Nanos(5 * Nanos::SECOND.0)).expect("a client");
        let reply =
            client.query("up{a=\"b\"}[60000ms]", 1_500).map_err(|error| error.reason).expect("an answer");
        assert_eq!(reply.answer.series, []);
        let requests = server.join().expect("two requests");
        assert!(requests[0].starts_with("POST /api/v1/query "), "{requests:?}");
        assert!(requests[1].starts_with("GET /api/v1/query?query=up%7Ba%3D%22b%22%7D"), "{requests:?}");
    }
}
