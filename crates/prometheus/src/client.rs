//! Client of Prometheus: one query at a time, with limits on time and on answer size.

use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use serde::Deserialize;

use super::access::Access;
use super::answer::Answer;
use super::beginning;

/// Largest answer, in bytes.
const LONGEST: u64 = 48 << 20;
/// Number of bytes read of an error answer.
const LONGEST_REFUSAL: u64 = 64 << 10;
/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(120);

/// A client for one server.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    access: Access,
    patience: Nanos,
}

/// A failed query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Reason.
    pub why: String,
    /// Wait time that the server requests with its `Retry-After` header.
    pub after: Option<Nanos>,
    /// True if the server did not answer; further queries of the round would also fail.
    pub away: bool,
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
struct Refusal {
    error: String,
}

impl Client {
    /// Creates a client for the server at `url`; sends nothing yet.
    ///
    /// # Errors
    /// [`InputError`] with the field of the credentials file.
    pub fn new(url: String, http: Option<&str>, patience: Nanos) -> Result<Client, InputError> {
        let mut access = Access::read(&url, http)?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Credentials must not follow a redirect.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(Duration::from_nanos(patience.0)))
            .max_idle_age(IDLE)
            .user_agent(concat!("leeward/", env!("CARGO_PKG_VERSION")));
        let config = match access.tls.take() {
            Some(tls) => config.tls_config(tls),
            None => config,
        };
        Ok(Client { agent: config.build().into(), url: format!("{url}/api/v1/query"), access, patience })
    }

    /// Queries the value of a range selector at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`Fault`] if the query fails, or if the answer is not a valid Prometheus answer.
    pub fn ask(&self, query: &str, at_ms: i64) -> Result<QueryReply, Fault> {
        let strange = |why: String| Fault { why, after: None, away: false };
        let away = |why: String| Fault { why, after: None, away: true };
        let mut request = self.agent.post(&self.url);
        for (name, value) in self.access.headers().map_err(away)? {
            request = request.header(name, value);
        }
        let time = format!("{}.{:03}", at_ms.div_euclid(1000), at_ms.rem_euclid(1000));
        let limit = format!("{}ms", self.patience.0 / 1_000_000);
        let form = [("query", query), ("time", time.as_str()), ("timeout", limit.as_str())];
        let mut response = request.send_form(form).map_err(|error| away(self.describe(&error)))?;
        let header = |name: &str| response.headers().get(name).and_then(|text| text.to_str().ok());
        let after = header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
        let after = after.map(|seconds| Nanos(u64::from(seconds) * Nanos::SECOND.0));
        let date_ms = header("date").and_then(|text| rfc2822::parse(text).ok());
        let date_ms = date_ms.map(|date| Timestamp::from(date).as_millisecond());
        let (status, longest) = match response.status().as_u16() {
            200 => (200, LONGEST),
            status => (status, LONGEST_REFUSAL),
        };
        let large = || strange(format!("more than {} MiB: narrow the selector", LONGEST >> 20));
        if status == 200 && response.body().content_length().is_some_and(|length| length > LONGEST) {
            return Err(large());
        }
        let mut text = Vec::new();
        let read = response.body_mut().as_reader().take(longest + 1).read_to_end(&mut text);
        if status != 200 {
            return Err(Fault {
                why: refusal(status, &text),
                after,
                away: matches!(status, 429 | 502..=504),
            });
        }
        read.map_err(|error| away(self.describe(&error.into())))?;
        if text.len() as u64 > LONGEST {
            return Err(large());
        }
        Ok(QueryReply { answer: Answer::read(&text).map_err(strange)?, date_ms })
    }

    /// Message for a transport error.
    fn describe(&self, error: &ureq::Error) -> String {
        let error = match error {
            ureq::Error::Timeout(_) => return format!("no answer in {}", self.patience),
            ureq::Error::Io(error) => error,
            error => return beginning(&error.to_string(), 200),
        };
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(why)) => {
                let hint = "tls_config.ca_file of `http` names who vouches for it";
                return format!("its certificate is not trusted ({why}); {hint}");
            }
            Some(error) => return beginning(&error.to_string(), 200),
            None => {}
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "the connection was closed".to_owned(),
            _ => beginning(&error.to_string(), 200),
        }
    }
}

/// Message for an error answer, with a hint for the operator.
fn refusal(status: u16, text: &[u8]) -> String {
    let said = match serde_json::from_slice(text) {
        Ok(Refusal { error }) => error,
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    };
    let hint = match status {
        401 | 403 => "; credentials missing or rejected: set `http` with basic_auth or authorization",
        300..=399 | 404 | 405 => "; expected the address of a Prometheus, with its path if it has one",
        _ => "",
    };
    match beginning(&said, 200) {
        said if said.is_empty() => format!("it answers {status}{hint}"),
        said => format!("it answers {status}: {said}{hint}"),
    }
}
