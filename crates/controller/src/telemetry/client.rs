//! The way to Prometheus: one question at a time, with an end to the wait and to what is read.

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

/// Bytes of the longest answer.
const LONGEST: u64 = 48 << 20;
/// Bytes of what is read of a refusal.
const LONGEST_REFUSAL: u64 = 64 << 10;
/// How long a connection may stand idle.
const IDLE: Duration = Duration::from_secs(120);

/// Who is asked.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    access: Access,
    patience: Nanos,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// In words.
    pub why: String,
    /// How long the server asks to wait.
    pub after: Option<Nanos>,
    /// Whether nobody answered at all, so that another question would fare no better.
    pub away: bool,
}

/// An answer, and what time it is where it comes from.
pub struct Told {
    /// What was asked for.
    pub answer: Answer,
    /// The server's clock, in milliseconds since 1970, to a second.
    pub date_ms: Option<i64>,
}

/// What is read of a refusal.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Client {
    /// A way to the server at `url`; nothing is sent yet.
    ///
    /// # Errors
    /// An [`InputError`] with the field of the file that says who asks.
    pub fn new(url: String, http: Option<&str>, patience: Nanos) -> Result<Client, InputError> {
        let mut access = Access::read(&url, http)?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A password must not go where an answer points.
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

    /// Asks for what a range selector holds at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Why it was not answered, or not as Prometheus would.
    pub fn ask(&self, query: &str, at_ms: i64) -> Result<Told, Fault> {
        let strange = |why: String| Fault { why, after: None, away: false };
        let away = |why: String| Fault { why, after: None, away: true };
        let mut request = self.agent.post(&self.url);
        for (name, value) in self.access.headers().map_err(away)? {
            request = request.header(name, value);
        }
        let time = format!("{}.{:03}", at_ms.div_euclid(1000), at_ms.rem_euclid(1000));
        let limit = format!("{}ms", self.patience.0 / 1_000_000);
        let form = [("query", query), ("time", time.as_str()), ("timeout", limit.as_str())];
        let mut response = request.send_form(form).map_err(|error| away(self.told(&error)))?;
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
        read.map_err(|error| away(self.told(&error.into())))?;
        if text.len() as u64 > LONGEST {
            return Err(large());
        }
        Ok(Told { answer: Answer::read(&text).map_err(strange)?, date_ms })
    }

    /// What went wrong on the way.
    fn told(&self, error: &ureq::Error) -> String {
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

/// What is said to a refusal, and what to do.
fn refusal(status: u16, text: &[u8]) -> String {
    let said = match serde_json::from_slice(text) {
        Ok(Refusal { error }) => error,
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    };
    let hint = match status {
        401 | 403 => "; say who asks: `http`, with basic_auth or authorization",
        300..=399 | 404 | 405 => "; expected the address of a Prometheus, with its path if it has one",
        _ => "",
    };
    match beginning(&said, 200) {
        said if said.is_empty() => format!("it answers {status}{hint}"),
        said => format!("it answers {status}: {said}{hint}"),
    }
}
