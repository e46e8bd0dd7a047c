//! Connections to a server: time limits, a proxy, and the name that the server's certificate must have.

use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use ureq::http::uri::Authority;
use ureq::http::{HeaderValue, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::file::TlsFile;
use super::tls::read_tls;

/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(120);

/// How a client connects to a server.
pub(super) struct Connection {
    /// Address of requests. Its host is the name of the server's certificate, if that differs from the server's address.
    pub url: String,
    /// The server's address, if the certificate has another name.
    address: Option<Uri>,
    /// TLS configuration for `https://`.
    tls: Option<TlsConfig>,
    proxy: Option<ureq::Proxy>,
}

/// Resolves every name as the host of one address.
#[derive(Debug)]
struct OneHost {
    address: Uri,
    resolver: DefaultResolver,
}

impl Resolver for OneHost {
    fn resolve(
        &self,
        _: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.resolver.resolve(&self.address, config, timeout)
    }
}

impl Connection {
    /// Reads the fields `tls_config` and `proxy_url` of a file for the server at `url`. `field` is the field that
    /// contains them, with a dot; empty at the top of the file.
    ///
    /// # Errors
    /// [`InputError`] with the field.
    pub fn read(
        file: &str,
        field: &str,
        url: &str,
        tls: &TlsFile,
        proxy_url: Option<&str>,
    ) -> Result<Connection, InputError> {
        let invalid = |part: &str, message: &str| {
            Err(InputError::new(file, message).in_field(format!("{field}{part}")))
        };
        let is_https = url.starts_with("https://");
        let mut connection = Connection { url: url.to_owned(), address: None, tls: None, proxy: None };
        if let Some(url) = proxy_url {
            let is_http = url.starts_with("http://") || url.starts_with("https://");
            match ureq::Proxy::new(url) {
                Ok(proxy) if is_http => connection.proxy = Some(proxy),
                _ => return invalid("proxy_url", "expected the address of a proxy: http://proxy:3128"),
            }
        }
        if !is_https {
            return Ok(connection);
        }
        connection.tls = Some(read_tls(file, &format!("{field}tls_config"), tls)?);
        if let Some(name) = &tls.server_name {
            if connection.proxy.is_some() {
                return invalid("tls_config.server_name", "not possible together with proxy_url");
            }
            let address: Option<Uri> = url.parse().ok();
            let Some((renamed, address)) = address.and_then(|uri| Some((named(&uri, name)?, uri))) else {
                return invalid("tls_config.server_name", "expected the name of a host");
            };
            renamed.to_string().trim_end_matches('/').clone_into(&mut connection.url);
            connection.address = Some(address);
        }
        Ok(connection)
    }

    /// The header `Host`, if it differs from the host of `url`: the server sees its own name.
    pub fn host(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.address.as_ref()?.authority()?.as_str()).ok()
    }

    /// A client with a time limit for each request.
    pub fn agent(&self, timeout: Nanos) -> ureq::Agent {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Credentials must not follow a redirect.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(self.proxy.clone())
            .timeout_global(Some(Duration::from_nanos(timeout.0)))
            .max_idle_age(IDLE)
            .user_agent(concat!("leeward/", env!("CARGO_PKG_VERSION")));
        let config = match &self.tls {
            Some(tls) => config.tls_config(tls.clone()),
            None => config,
        };
        match self.address.clone() {
            Some(address) => {
                let resolver = OneHost { address, resolver: DefaultResolver::default() };
                ureq::Agent::with_parts(config.build(), DefaultConnector::default(), resolver)
            }
            None => config.build().into(),
        }
    }
}

/// The address with another host.
fn named(address: &Uri, name: &str) -> Option<Uri> {
    let port = address.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut parts = address.clone().into_parts();
    parts.authority = Some(format!("{name}{port}").parse::<Authority>().ok()?);
    Uri::from_parts(parts).ok()
}
