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
    basic_auth: Option<BasicFile>,
    authorization: Option<AuthorizationFile>,
    http_headers: BTreeMap<String, HeaderFile>,
    tls_config: Option<TlsFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BasicFile {
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
    who: Option<Who>,
    /// TLS configuration for `https://`.
    pub tls: Option<TlsConfig>,
}

/// Credentials.
enum Who {
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
pub fn address(url: &str) -> Result<String, String> {
    let expected = "expected the address of a Prometheus, such as http://prom:9090";
    let url = url.trim();
    let read: ureq::http::Uri = url.parse().map_err(|_| expected.to_owned())?;
    let has_host = read.host().is_some_and(|host| !host.is_empty());
    if !matches!(read.scheme_str(), Some("http" | "https")) || !has_host {
        return Err(expected.to_owned());
    }
    if read.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(
            "a password in an address is seen by everyone; put it into a file: `http`, with basic_auth"
                .to_owned(),
        );
    }
    if read.query().is_some() || url.contains('#') {
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
        let given = match file {
            // A secret may be in the wrong field, so errors do not repeat texts of the file.
            Some(file) => read_yaml(file, &read_text(file)?)
                .map_err(|error| InputError { message: SHAPE.to_owned(), ..error })?,
            None => AccessFile::default(),
        };
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let AccessFile { basic_auth, authorization, http_headers, tls_config } = given;
        let invalid = |field: &str, message: &str| InputError::new(name, message).in_field(field);
        let who = match (basic_auth, authorization) {
            (Some(_), Some(_)) => {
                return Err(invalid("authorization", "there is basic_auth as well; expected one of them"));
            }
            (Some(BasicFile { username, password, password_file }), None) => {
                let secret = Secret::of(folder, password, password_file);
                let secret = secret.ok_or_else(|| invalid("basic_auth.password", EITHER))?;
                secret.checked(name, "basic_auth.password_file")?;
                Some(Who::Basic(username, secret))
            }
            (None, Some(AuthorizationFile { r#type, credentials, credentials_file })) => {
                let secret = Secret::of(folder, credentials, credentials_file);
                let secret = secret.ok_or_else(|| invalid("authorization.credentials", EITHER))?;
                secret.checked(name, "authorization.credentials_file")?;
                Some(Who::Token(r#type.unwrap_or_else(|| "Bearer".to_owned()), secret))
            }
            (None, None) => None,
        };
        let header = |(header, value): (String, HeaderFile)| {
            let (HeaderFile::One(value) | HeaderFile::Listed([value])) = value;
            let read = header.parse().ok().zip(HeaderValue::try_from(value).ok());
            let field = format!("http_headers.{}", excerpt(&header));
            read.ok_or_else(|| invalid(&field, "a letter that a header may not have"))
        };
        let is_safe = url.starts_with("https://");
        let tls = is_safe.then(|| spoken(name, folder, tls_config.unwrap_or_default())).transpose()?;
        let access =
            Access { headers: http_headers.into_iter().map(header).collect::<Result<_, _>>()?, who, tls };
        access.headers().map_err(|why| InputError::new(name, why))?;
        Ok(access)
    }

    /// Headers of a query. Secrets in files are read for each query, so a new secret takes effect at once.
    ///
    /// # Errors
    /// The reason why a secret cannot be read or sent.
    pub fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = self.headers.clone();
        let said = match &self.who {
            None => return Ok(headers),
            Some(Who::Basic(name, secret)) => {
                format!("Basic {}", STANDARD.encode(format!("{name}:{}", secret.read()?)))
            }
            Some(Who::Token(kind, secret)) => format!("{kind} {}", secret.read()?),
        };
        let value = HeaderValue::try_from(said);
        let mut value = value.map_err(|_| "the credentials have a letter that a header may not have")?;
        value.set_sensitive(true);
        headers.push((ureq::http::header::AUTHORIZATION, value));
        Ok(headers)
    }
}

const EITHER: &str = "expected it, or a file of it";
const SHAPE: &str = "expected basic_auth (username, password or password_file), authorization (type, credentials or \
    credentials_file), http_headers and tls_config (ca_file, cert_file, key_file, insecure_skip_verify)";

impl Secret {
    fn of(folder: &Path, text: Option<String>, file: Option<String>) -> Option<Secret> {
        match (text, file) {
            (Some(text), None) => Some(Secret::Text(text)),
            (None, Some(file)) => Some(Secret::File(folder.join(file))),
            _ => None,
        }
    }

    fn checked(&self, file: &str, field: &str) -> Result<(), InputError> {
        self.read().map(drop).map_err(|why| InputError::new(file, why).in_field(field))
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
fn spoken(name: &str, folder: &Path, given: TlsFile) -> Result<TlsConfig, InputError> {
    let TlsFile { ca_file, cert_file, key_file, insecure_skip_verify } = given;
    let read = |field: &str, file: &str| {
        let items = read_text(&folder.join(file).display().to_string()).and_then(|text| {
            let items: Result<Vec<_>, _> = parse_pem(text.as_bytes()).collect();
            items.map_err(|_| InputError::new(file, "expected PEM (-----BEGIN ...)"))
        });
        items.map_err(|error| InputError::new(name, error).in_field(format!("tls_config.{field}")))
    };
    let certificates = |field: &str, file: &str| {
        let items = read(field, file)?.into_iter().filter_map(|item| match item {
            PemItem::Certificate(one) => Some(one),
            _ => None,
        });
        let found: Vec<Certificate<'static>> = items.collect();
        let message = format!("{file}: expected a certificate in PEM (-----BEGIN CERTIFICATE-----)");
        let invalid = || InputError::new(name, message).in_field(format!("tls_config.{field}"));
        if found.is_empty() { Err(invalid()) } else { Ok(found) }
    };
    let roots = match &ca_file {
        Some(file) => certificates("ca_file", file)?,
        None => {
            let found = rustls_native_certs::load_native_certs();
            found.certs.iter().map(|one| Certificate::from_der(one).to_owned()).collect()
        }
    };
    if roots.is_empty() && !insecure_skip_verify {
        let message = "missing, and this machine trusts no authority of certificates; name a file of them";
        return Err(InputError::new(name, message).in_field("tls_config.ca_file"));
    }
    let own = match (&cert_file, &key_file) {
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
        .client_cert(own)
        .disable_verification(insecure_skip_verify);
    Ok(config.build())
}
