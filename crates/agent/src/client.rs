//! The way to the controller: one connection that is kept, HTTP or HTTPS.

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_text};
use serde::Deserialize;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::report::{Refused, Report, Taken};
use crate::settings::{Settings, secret};

/// How long the controller may take for a report; the next one says more than this one by then.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may stand idle; the controller closes it after 90 s by default.
const IDLE: Duration = Duration::from_secs(80);
/// Bytes of an answer that are read.
const LONGEST: u64 = 64 << 10;

/// Who reports are sent to.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
}

/// What of a problem document is told.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// Those who may vouch for the controller.
fn authorities(ca: Option<&str>) -> Result<Vec<Certificate<'static>>, InputError> {
    if let Some(file) = ca {
        let wrong = || InputError::new(file, "expected certificates in PEM (-----BEGIN CERTIFICATE-----)");
        let text = read_text(file)?;
        let items: Vec<_> = parse_pem(text.as_bytes()).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let found: Vec<_> = items
            .into_iter()
            .filter_map(|item| match item {
                PemItem::Certificate(one) => Some(one),
                _ => None,
            })
            .collect();
        return if found.is_empty() { Err(wrong()) } else { Ok(found) };
    }
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let message = "the system has no certificates of authorities; give the file of the controller's";
        return Err(InputError::new("--ca", message));
    }
    Ok(found.certs.iter().map(|one| Certificate::from_der(one).to_owned()).collect())
}

impl Client {
    /// A way to the controller; nothing is sent yet.
    ///
    /// # Errors
    /// An [`InputError`] with the file that is wrong.
    pub fn new(settings: &Settings) -> Result<Client, InputError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .max_idle_age(IDLE)
            .user_agent(concat!("leeward-agent/", env!("CARGO_PKG_VERSION")));
        let config = if settings.controller.starts_with("https://") {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .unversioned_rustls_crypto_provider(provider)
                .root_certs(RootCerts::from(authorities(settings.ca.as_deref())?));
            config.tls_config(tls.build())
        } else if settings.ca.is_some() {
            return Err(InputError::new(
                "--ca",
                "the controller's URL is not https, so nothing is vouched for",
            ));
        } else {
            config
        };
        let url = format!("{}/v1/reports", settings.controller);
        Ok(Client { agent: config.build().into(), url, token: settings.token.clone() })
    }

    /// Sends a report. The token is read each time, so that another one counts at once.
    ///
    /// # Errors
    /// Why it was not taken in.
    pub fn send(&self, report: &Report) -> Result<Taken, Refused> {
        let refused = |why: String| Refused { why, after: None };
        let body = serde_json::to_string(report).map_err(|error| refused(error.to_string()))?;
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(file) = &self.token {
            let token = secret(file).map_err(|error| refused(error.to_string()))?;
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.send(body).map_err(|error| refused(excerpt(&error.to_string())))?;
        let after = response.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
        let after = after.map(|seconds: u32| Nanos(u64::from(seconds) * Nanos::SECOND.0));
        let status = response.status();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
        let text = text.map_err(|error| refused(excerpt(&error.to_string())))?;
        if status.as_u16() != 200 {
            let detail = serde_json::from_str(&text).map(|problem: Problem| excerpt(&problem.detail));
            let why = format!("{status}: {}", detail.unwrap_or_else(|_| excerpt(text.trim())));
            return Err(Refused { why, after });
        }
        let strange = |_| refused(format!("no answer of a controller: {}", excerpt(text.trim())));
        serde_json::from_str(&text).map_err(strange)
    }
}
