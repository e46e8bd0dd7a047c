//! Access to a Prometheus server: its address, and a file with credentials in the format of promtool's
//! `--http.config.file`. No secret appears in an error or a log.

mod connection;
mod file;
mod secret;
mod tls;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_text, read_yaml};
use ureq::http::header::{AUTHORIZATION, HOST};
use ureq::http::{HeaderName, HeaderValue, Uri};

use self::connection::Connection;
use self::file::{AccessFile, AuthorizationFile, BasicAuthFile, HeaderFile};
use self::secret::Secret;
use self::tokens::Tokens;

/// Connection settings of a server.
pub struct Access {
    /// Headers sent with each query.
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: Option<Credentials>,
    connection: Connection,
}

/// Credentials.
enum Credentials {
    /// User name and password.
    Basic(String, Secret),
    /// Authentication scheme, and credentials.
    Fixed(String, Secret),
    /// Tokens that another server gives.
    Tokens(Box<Tokens>),
}

/// Validates the address of a server.
///
/// # Errors
/// A message about the expected form. The message does not repeat the address, because it may contain a password.
pub fn parse_address(url: &str) -> Result<String, String> {
    let expected = "expected the address of a Prometheus, such as http://prom:9090";
    let url = url.trim();
    let uri: Uri = url.parse().map_err(|_| expected.to_owned())?;
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
        let AccessFile { basic_auth, authorization, oauth2, http_headers, tls_config, proxy_url } = contents;
        let invalid = |field: &str, message: &str| InputError::new(name, message).in_field(field);
        let credentials = match (basic_auth, authorization, oauth2) {
            (None, None, None) => None,
            (Some(BasicAuthFile { username, password, password_file }), None, None) => {
                let secret = Secret::of_field(name, "basic_auth.password", password, password_file)?;
                Some(Credentials::Basic(username, secret))
            }
            (None, Some(AuthorizationFile { r#type, credentials, credentials_file }), None) => {
                let secret =
                    Secret::of_field(name, "authorization.credentials", credentials, credentials_file)?;
                Some(Credentials::Fixed(r#type.unwrap_or_else(|| "Bearer".to_owned()), secret))
            }
            (None, None, Some(given)) => Some(Credentials::Tokens(Box::new(Tokens::read(name, given)?))),
            (_, authorization, _) => {
                let field = if authorization.is_some() { "authorization" } else { "oauth2" };
                return Err(invalid(field, "expected only one of basic_auth, authorization and oauth2"));
            }
        };
        let header = |(header, value): (String, HeaderFile)| {
            let (HeaderFile::One(value) | HeaderFile::Listed([value])) = value;
            let parsed = header.parse().ok().zip(HeaderValue::try_from(value).ok());
            let field = format!("http_headers.{}", excerpt(&header));
            parsed.ok_or_else(|| invalid(&field, "a character that is invalid in a header"))
        };
        let connection =
            Connection::read(name, "", url, &tls_config.unwrap_or_default(), proxy_url.as_deref())?;
        let mut headers: Vec<_> = http_headers.into_iter().map(header).collect::<Result<_, _>>()?;
        if !headers.iter().any(|(header, _)| header == HOST) {
            headers.extend(connection.host().map(|host| (HOST, host)));
        }
        let access = Access { headers, credentials, connection };
        if !matches!(access.credentials, Some(Credentials::Tokens(_))) {
            access.headers(0).map_err(|error| InputError::new(name, error))?;
        }
        Ok(access)
    }

    /// A client with a time limit for each request.
    pub fn agent(&self, timeout: Nanos) -> ureq::Agent {
        self.connection.agent(timeout)
    }

    /// Address of requests, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.connection.url
    }

    /// Headers of a query at a time in milliseconds since 1970. Secrets in files are read for each query, so a new
    /// secret takes effect at once.
    ///
    /// # Errors
    /// The reason why a secret cannot be read or sent, or why there is no token.
    pub fn headers(&self, now_ms: i64) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = self.headers.clone();
        let header = match &self.credentials {
            None => return Ok(headers),
            Some(Credentials::Basic(name, secret)) => {
                format!("Basic {}", STANDARD.encode(format!("{name}:{}", secret.read()?)))
            }
            Some(Credentials::Fixed(scheme, secret)) => format!("{scheme} {}", secret.read()?),
            Some(Credentials::Tokens(tokens)) => format!("Bearer {}", tokens.token(now_ms)?),
        };
        let value = HeaderValue::try_from(header);
        let mut value =
            value.map_err(|_| "the credentials contain a character that is invalid in a header")?;
        value.set_sensitive(true);
        headers.push((AUTHORIZATION, value));
        Ok(headers)
    }

    /// Handles a rejection of the credentials by the server: the next query uses another token.
    pub fn rejected(&self) {
        if let Some(Credentials::Tokens(tokens)) = &self.credentials {
            tokens.forget();
        }
    }
}

const EXPECTED: &str = "expected basic_auth (username, password or password_file), authorization (type, credentials or \
    credentials_file), oauth2 (client_id, client_secret or client_secret_file, token_url, scopes, endpoint_params, \
    tls_config, proxy_url), http_headers, tls_config (ca_file, cert_file, key_file, server_name, insecure_skip_verify) \
    and proxy_url";
