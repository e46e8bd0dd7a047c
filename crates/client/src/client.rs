//! HTTP or HTTPS client with one persistent connection to a controller.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_text};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector};
use ureq::{Body, RequestBuilder};

use crate::access::{Access, token};
use crate::marked::Marked;

/// Maximum idle time of the connection; the controller closes it after 90 s by default.
const IDLE: Duration = Duration::from_secs(80);
/// Maximum number of bytes read from a reply. The promises of 10,000 workloads take some of it.
const LONGEST: u64 = 16 << 20;

/// Client of one controller.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
}

/// Request that a controller did not accept, or that did not reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Reason as text.
    pub why: String,
    /// Retry delay that the controller requested, if any.
    pub after: Option<Nanos>,
    /// Status of the response; `None` without a response of a controller.
    pub status: Option<u16>,
}

impl Rejection {
    /// Rejection without a response.
    pub fn new(why: impl Into<String>) -> Rejection {
        Rejection { why: why.into(), after: None, status: None }
    }
}

/// Fields of a problem document that are shown.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// Certificate authorities to trust for the controller.
fn authorities(ca: Option<&str>) -> Result<Vec<Certificate<'static>>, InputError> {
    if let Some(file) = ca {
        let invalid = || InputError::new(file, "expected certificates in PEM (-----BEGIN CERTIFICATE-----)");
        let text = read_text(file)?;
        let items: Vec<_> = parse_pem(text.as_bytes()).collect::<Result<_, _>>().map_err(|_| invalid())?;
        let certificates: Vec<_> = items
            .into_iter()
            .filter_map(|item| match item {
                PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            })
            .collect();
        return if certificates.is_empty() { Err(invalid()) } else { Ok(certificates) };
    }
    let system = rustls_native_certs::load_native_certs();
    if system.certs.is_empty() {
        let message = "the system has no certificate authorities; give a file with the controller's";
        return Err(InputError::new("--ca", message));
    }
    Ok(system.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect())
}

/// Description of a transport error.
fn describe(error: &ureq::Error, timeout: Duration) -> String {
    let error = match error {
        ureq::Error::Timeout(_) => return format!("timeout after {} s", timeout.as_secs_f64()),
        ureq::Error::Io(error) => error,
        error => return excerpt(&error.to_string()),
    };
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            return format!("certificate not trusted ({why}); --ca names a file with its authority");
        }
        Some(error) => return excerpt(&error.to_string()),
        None => {}
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "the connection was closed".to_owned()
        }
        _ => excerpt(&error.to_string()),
    }
}

impl Client {
    /// Time within which a controller responds.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Creates a client for the controller at a URL, one of those of `access`. `program` is the name of the program with its
    /// version, such as `leeward-agent/1.0`. It sends nothing yet.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid file.
    pub fn new(access: &Access, controller: &str, program: &str) -> Result<Client, InputError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(Client::TIMEOUT))
            .max_idle_age(IDLE)
            .user_agent(program.to_owned());
        let config = if controller.starts_with("https://") {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .unversioned_rustls_crypto_provider(provider)
                .root_certs(RootCerts::from(authorities(access.ca.as_deref())?));
            config.tls_config(tls.build())
        } else if access.ca.is_some() && !access.is_encrypted() {
            return Err(InputError::new("--ca", "no controller URL is https, so no certificate is checked"));
        } else {
            config
        };
        let agent = match access.dscp {
            Some(dscp) => ureq::Agent::with_parts(
                config.build(),
                Marked(dscp).chain(RustlsConnector::default()),
                DefaultResolver::default(),
            ),
            None => config.build().into(),
        };
        Ok(Client { agent, url: controller.to_owned(), token: access.token.clone() })
    }

    /// URL of the controller.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a POST request with a body of JSON, and reads the response.
    ///
    /// # Errors
    /// Returns the reason for which the request was not accepted.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: String) -> Result<T, Rejection> {
        let request = self.authorized(self.agent.post(self.address(path)))?;
        read(request.header("content-type", "application/json").send(body), Client::TIMEOUT)
    }

    /// Sends a PUT request with a body of JSON, and reads the response, which must come in this time.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: String,
        timeout: Duration,
    ) -> Result<T, Rejection> {
        let request = self.authorized(self.agent.put(self.address(path)))?;
        let request = request.config().timeout_global(Some(timeout)).build();
        read(request.header("content-type", "application/json").send(body), timeout)
    }

    /// Sends a GET request, and reads the response, which must come in this time.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn get<T: DeserializeOwned>(&self, path: &str, timeout: Duration) -> Result<T, Rejection> {
        let request = self.authorized(self.agent.get(self.address(path)))?;
        read(request.config().timeout_global(Some(timeout)).build().call(), timeout)
    }

    /// Sends a DELETE request, and reads the response, which must come in this time.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str, timeout: Duration) -> Result<T, Rejection> {
        let request = self.authorized(self.agent.delete(self.address(path)))?;
        read(request.config().timeout_global(Some(timeout)).build().call(), timeout)
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Adds the token. Its file is read each time, so that a new token takes effect at once.
    fn authorized<B>(&self, request: RequestBuilder<B>) -> Result<RequestBuilder<B>, Rejection> {
        let Some(file) = &self.token else { return Ok(request) };
        let token = token(file).map_err(|error| Rejection::new(error.to_string()))?;
        Ok(request.header("authorization", format!("Bearer {token}")))
    }
}

/// Reads a response, which should have status 200 and a body of JSON.
fn read<T: DeserializeOwned>(
    sent: Result<Response<Body>, ureq::Error>,
    timeout: Duration,
) -> Result<T, Rejection> {
    let mut response = sent.map_err(|error| Rejection::new(describe(&error, timeout)))?;
    let after = response.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
    let after = after.map(|seconds: u32| Nanos(u64::from(seconds) * Nanos::SECOND.0));
    let status = response.status();
    let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
    let text = text.map_err(|error| Rejection::new(describe(&error, timeout)))?;
    if status.as_u16() != 200 {
        let detail = serde_json::from_str(&text).map(|problem: Problem| excerpt(&problem.detail));
        let why = format!("{status}: {}", detail.unwrap_or_else(|_| excerpt(text.trim())));
        return Err(Rejection { why, after, status: Some(status.as_u16()) });
    }
    let invalid = |_| Rejection::new(format!("not a reply of a controller: {}", excerpt(text.trim())));
    serde_json::from_str(&text).map_err(invalid)
}
