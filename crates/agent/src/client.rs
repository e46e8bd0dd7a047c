//! HTTP or HTTPS client with one persistent connection to a controller.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_text};
use serde::Deserialize;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector};

use crate::body::{Acceptance, Rejection, Report};
use crate::marked::Marked;
use crate::settings::{Settings, token};

/// Timeout of a report; by then the next report has newer data.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum idle time of the connection; the controller closes it after 90 s by default.
const IDLE: Duration = Duration::from_secs(80);
/// Maximum number of bytes read from a reply.
const LONGEST: u64 = 64 << 10;

/// Client of one controller.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    reports: String,
    token: Option<String>,
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
fn describe(error: &ureq::Error) -> String {
    let error = match error {
        ureq::Error::Timeout(_) => return format!("timeout after {} s", TIMEOUT.as_secs()),
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
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "the connection was closed".to_owned(),
        _ => excerpt(&error.to_string()),
    }
}

impl Client {
    /// Creates a client for the controller at a URL. It sends nothing yet.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid file.
    pub fn new(settings: &Settings, controller: &str) -> Result<Client, InputError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .max_idle_age(IDLE)
            .user_agent(concat!("leeward-agent/", env!("CARGO_PKG_VERSION")));
        let config = if controller.starts_with("https://") {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .unversioned_rustls_crypto_provider(provider)
                .root_certs(RootCerts::from(authorities(settings.ca.as_deref())?));
            config.tls_config(tls.build())
        } else if settings.ca.is_some() && !settings.controllers.iter().any(|url| url.starts_with("https://"))
        {
            return Err(InputError::new("--ca", "no controller URL is https, so no certificate is checked"));
        } else {
            config
        };
        let reports = format!("{controller}/v1/reports");
        let (url, token) = (controller.to_owned(), settings.token.clone());
        let agent = match settings.dscp {
            Some(dscp) => ureq::Agent::with_parts(
                config.build(),
                Marked(dscp).chain(RustlsConnector::default()),
                DefaultResolver::default(),
            ),
            None => config.build().into(),
        };
        Ok(Client { agent, url, reports, token })
    }

    /// URL of the controller.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a report. Reads the token file each time, so that a new token takes effect at once.
    ///
    /// # Errors
    /// Returns the reason for which the report was not accepted.
    pub fn send(&self, report: &Report) -> Result<Acceptance, Rejection> {
        let rejection = |why: String| Rejection { why, after: None };
        let body = serde_json::to_string(report).map_err(|error| rejection(error.to_string()))?;
        let mut request = self.agent.post(&self.reports).header("content-type", "application/json");
        if let Some(file) = &self.token {
            let token = token(file).map_err(|error| rejection(error.to_string()))?;
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.send(body).map_err(|error| rejection(describe(&error)))?;
        let after = response.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
        let after = after.map(|seconds: u32| Nanos(u64::from(seconds) * Nanos::SECOND.0));
        let status = response.status();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
        let text = text.map_err(|error| rejection(describe(&error)))?;
        if status.as_u16() != 200 {
            let detail = serde_json::from_str(&text).map(|problem: Problem| excerpt(&problem.detail));
            let why = format!("{status}: {}", detail.unwrap_or_else(|_| excerpt(text.trim())));
            return Err(Rejection { why, after });
        }
        let invalid = |_| rejection(format!("not a reply of a controller: {}", excerpt(text.trim())));
        serde_json::from_str(&text).map_err(invalid)
    }
}
