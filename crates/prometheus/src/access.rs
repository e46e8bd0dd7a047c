//! Access to a Prometheus server: its address, and a file with credentials in the format of promtool's
//! `--http.config.file`. No secret appears in an error or a log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leeward_fabric::input::{InputError, excerpt, read_text, read_yaml};
use rustls::crypto::ring::default_provider;
use serde::Deserialize;
use ureq::http::{HeaderName, HeaderValue};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// Contents of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AccessFile {
    basic_auth: Option<BasicAuthFile>,
    authorization: Option<AuthorizationFile>,
    http_headers: BTreeMap<String, HeaderFile>,
    tls_config: Option<TlsFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BasicAuthFile {
    username: String,
    password: Option<String>,
    password_file: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorizationFile {
    r#type: Option<String>,
    credentials: Option<String>,
    credentials_file: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HeaderFile {
    One(String),
    Listed([String; 1]),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TlsFile {
    ca_file: Option<String>,
    cert_file: Option<String>,
    key_file: Option<String>,
    insecure_skip_verify: bool,
}

/// Connection settings of a server.
pub struct Access {
    /// Headers sent with each query.
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: Option<Credentials>,
    /// TLS configuration for `https://`.
    pub tls: Option<TlsConfig>,
}

/// Credentials.
enum Credentials {
    /// User name and password.
    Basic(String, Secret),
    /// Authentication scheme, and credentials.
    Token(String, Secret),
}

/// A secret, or the file that contains it.
enum Secret {
    Text(String),
    File(PathBuf),
}

/// Validates the address of a server.
///
/// # Errors
/// A message about the expected form. The message does not repeat the address, because it may contain a password.
pub fn parse_address(url: &str) -> Result<String, String> {
    let expected = "expected the address of a Prometheus, such as http://prom:9090";
    let url = url.trim();
    let uri: ureq::http::Uri = url.parse().map_err(|_| expected.to_owned())?;
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    if !matches!(uri.scheme_str(), Some("http" | "https")) || !has_host {
        return Err(expected.to_owned());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(
            "a password in an address is visible to others; put it in the file of `http`, under basic_auth"
                .to_owned(),
        );
    }
    if uri.query().is_some() || url.contains('#') {
        return Err(format!("{expected}, without `?` and `#`"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

impl Access {
    /// Connection settings for a server at `url`: from a file, or without credentials.
    ///
    /// # Errors
    /// [`InputError`] with the field of the file.
    pub fn read(url: &str, file: Option<&str>) -> Result<Access, InputError> {
        let name = file.unwrap_or("http");
        let contents = match file {
            // A secret may be in the wrong field, so errors do not repeat texts of the file.
            Some(file) => read_yaml(file, &read_text(file)?)
                .map_err(|error| InputError { message: EXPECTED.to_owned(), ..error })?,
            None => AccessFile::default(),
        };
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let AccessFile { basic_auth, authorization, http_headers, tls_config } = contents;
        let invalid = |field: &str, message: &str| InputError::new(name, message).in_field(field);
        let credentials = match (basic_auth, authorization) {
            (Some(_), Some(_)) => {
                return Err(invalid("authorization", "expected only one of basic_auth and authorization"));
            }
            (Some(BasicAuthFile { username, password, password_file }), None) => {
                let secret = Secret::new(folder, password, password_file);
                let secret = secret.ok_or_else(|| invalid("basic_auth.password", EITHER_FIELD))?;
                secret.check(name, "basic_auth.password_file")?;
                Some(Credentials::Basic(username, secret))
            }
            (None, Some(AuthorizationFile { r#type, credentials, credentials_file })) => {
                let secret = Secret::new(folder, credentials, credentials_file);
                let secret = secret.ok_or_else(|| invalid("authorization.credentials", EITHER_FIELD))?;
                secret.check(name, "authorization.credentials_file")?;
                Some(Credentials::Token(r#type.unwrap_or_else(|| "Bearer".to_owned()), secret))
            }
            (None, None) => None,
        };
        let header = |(header, value): (String, HeaderFile)| {
            let (HeaderFile::One(value) | HeaderFile::Listed([value])) = value;
            let parsed = header.parse().ok().zip(HeaderValue::try_from(value).ok());
            let field = format!("http_headers.{}", excerpt(&header));
            parsed.ok_or_else(|| invalid(&field, "a character that is invalid in a header"))
        };
        let is_https = url.starts_with("https://");
        let tls = is_https.then(|| read_tls(name, folder, tls_config.unwrap_or_default())).transpose()?;
        let access = Access {
            headers: http_headers.into_iter().map(header).collect::<Result<_, _>>()?,
            credentials,
            tls,
        };
        access.headers().map_err(|error| InputError::new(name, error))?;
        Ok(access)
    }

    /// Headers of a query. Secrets in files are read for each query, so a new secret takes effect at once.
    ///
    /// # Errors
    /// The reason why a secret cannot be read or sent.
    pub fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = self.headers.clone();
        let header = match &self.credentials {
            None => return Ok(headers),
            Some(Credentials::Basic(name, secret)) => {
                format!("Basic {}", STANDARD.encode(format!("{name}:{}", secret.read()?)))
            }
            Some(Credentials::Token(scheme, secret)) => format!("{scheme} {}", secret.read()?),
        };
        let value = HeaderValue::try_from(header);
        let mut value =
            value.map_err(|_| "the credentials contain a character that is invalid in a header")?;
        value.set_sensitive(true);
        headers.push((ureq::http::header::AUTHORIZATION, value));
        Ok(headers)
    }
}

const EITHER_FIELD: &str = "expected either this field or the one that ends in `_file`";
const EXPECTED: &str = "expected basic_auth (username, password or password_file), authorization (type, credentials or \
    credentials_file), http_headers and tls_config (ca_file, cert_file, key_file, insecure_skip_verify)";

impl Secret {
    fn new(folder: &Path, text: Option<String>, file: Option<String>) -> Option<Secret> {
        match (text, file) {
            (Some(text), None) => Some(Secret::Text(text)),
            (None, Some(file)) => Some(Secret::File(folder.join(file))),
            _ => None,
        }
    }

    fn check(&self, file: &str, field: &str) -> Result<(), InputError> {
        self.read().map(drop).map_err(|error| InputError::new(file, error).in_field(field))
    }

    fn read(&self) -> Result<String, String> {
        match self {
            Secret::Text(text) => Ok(text.clone()),
            Secret::File(file) => {
                let text = read_text(&file.display().to_string()).map_err(|error| error.to_string())?;
                Ok(text.trim().to_owned())
            }
        }
    }
}

/// TLS configuration of the client. Without `ca_file` it trusts the authorities of the system.
fn read_tls(name: &str, folder: &Path, file: TlsFile) -> Result<TlsConfig, InputError> {
    let TlsFile { ca_file, cert_file, key_file, insecure_skip_verify } = file;
    let read = |field: &str, file: &str| {
        let items = read_text(&folder.join(file).display().to_string()).and_then(|text| {
            let items: Result<Vec<_>, _> = parse_pem(text.as_bytes()).collect();
            items.map_err(|_| InputError::new(file, "expected PEM (-----BEGIN ...)"))
        });
        items.map_err(|error| InputError::new(name, error).in_field(format!("tls_config.{field}")))
    };
    let certificates = |field: &str, file: &str| {
        let items = read(field, file)?.into_iter().filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<Certificate<'static>> = items.collect();
        let message = format!("{file}: expected a certificate in PEM (-----BEGIN CERTIFICATE-----)");
        let invalid = || InputError::new(name, message).in_field(format!("tls_config.{field}"));
        if certificates.is_empty() { Err(invalid()) } else { Ok(certificates) }
    };
    let roots = match &ca_file {
        Some(file) => certificates("ca_file", file)?,
        None => {
            let native = rustls_native_certs::load_native_certs();
            native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
        }
    };
    if roots.is_empty() && !insecure_skip_verify {
        let message =
            "missing, and the system trusts no certificate authority; expected a file with CA certificates";
        return Err(InputError::new(name, message).in_field("tls_config.ca_file"));
    }
    let client_cert = match (&cert_file, &key_file) {
        (None, None) => None,
        (Some(cert), key) => {
            let (field, file) = key.as_ref().map_or(("cert_file", cert), |key| ("key_file", key));
            let keys = read(field, file)?.into_iter().find_map(|item| match item {
                PemItem::PrivateKey(key) => Some(key),
                _ => None,
            });
            let message = format!("{file}: expected a private key in PEM (-----BEGIN PRIVATE KEY-----)");
            let invalid = || InputError::new(name, message).in_field(format!("tls_config.{field}"));
            let key: PrivateKey<'static> = keys.ok_or_else(invalid)?;
            Some(ClientCert::new_with_certs(&certificates("cert_file", cert)?, key))
        }
        (None, Some(_)) => {
            let message = "missing; expected the certificate of the key";
            return Err(InputError::new(name, message).in_field("tls_config.cert_file"));
        }
    };
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
        .root_certs(RootCerts::from(roots))
        .client_cert(client_cert)
        .disable_verification(insecure_skip_verify);
    Ok(config.build())
}
