//! Client credentials that a server exchanges for tokens (RFC 6749, section 4.4).

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::connection::Connection;
use super::file::OAuth2File;
use super::parse_address;
use super::secret::Secret;
use crate::beginning;

/// Characters that a form encodes.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');
/// Time limit of a request for a token.
const TIMEOUT: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Time before the end of a token at which the next one is requested.
const SPARE_MS: i64 = 10_000;
/// Lifetime of a token whose server states none.
const LIFETIME_S: f64 = 60.0;
const MAX_BYTES: u64 = 1 << 20;

/// A server of tokens, and the current token.
pub(super) struct Tokens {
    agent: ureq::Agent,
    connection: Connection,
    client_id: String,
    client_secret: Secret,
    parameters: Vec<(String, String)>,
    current: Mutex<Option<Token>>,
}

/// A token, and the time until which it is valid, in milliseconds since 1970.
struct Token {
    text: String,
    until_ms: i64,
}

/// Answer of a server of tokens.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<Seconds>,
}

/// Seconds as JSON; some servers write a number as a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

impl TokenAnswer {
    /// Seconds until the token ends; `None` if the answer has a text that is no number.
    fn lifetime_s(&self) -> Option<f64> {
        let seconds = match &self.expires_in {
            None => LIFETIME_S,
            Some(Seconds::Number(seconds)) => *seconds,
            Some(Seconds::Text(text)) => text.parse().ok()?,
        };
        (!seconds.is_nan()).then_some(seconds)
    }
}

impl Tokens {
    /// Reads the field `oauth2` of a file.
    ///
    /// # Errors
    /// [`InputError`] with the field.
    pub fn read(file: &str, given: OAuth2File) -> Result<Tokens, InputError> {
        let OAuth2File { client_id, client_secret, client_secret_file, token_url, .. } = given;
        let invalid = |field: &str, message: String| InputError::new(file, message).in_field(field);
        // A secret in an address would be seen in errors.
        let url = parse_address(&token_url)
            .map_err(|_| invalid("oauth2.token_url", "expected an address: https://sso/token".to_owned()))?;
        let client_secret =
            Secret::of_field(file, "oauth2.client_secret", client_secret, client_secret_file)?;
        let tls = given.tls_config.unwrap_or_default();
        // A slash at the end of this path may matter to the server.
        let slash = if token_url.trim_end().ends_with('/') { "/" } else { "" };
        let url = format!("{url}{slash}");
        let connection = Connection::read(file, "oauth2.", &url, &tls, given.proxy_url.as_deref())?;
        let mut parameters = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
        if !given.scopes.is_empty() {
            parameters.push(("scope".to_owned(), given.scopes.join(" ")));
        }
        parameters.extend(given.endpoint_params);
        let agent = connection.agent(TIMEOUT);
        Ok(Tokens { agent, connection, client_id, client_secret, parameters, current: Mutex::new(None) })
    }

    /// A token that is valid at a time, in milliseconds since 1970; requests one if the current token is not.
    ///
    /// # Errors
    /// The reason why the server gives no token.
    pub fn token(&self, now_ms: i64) -> Result<String, String> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = current.as_ref().filter(|token| now_ms < token.until_ms) {
            return Ok(token.text.clone());
        }
        let failed = |reason: String| format!("no token from {}: {reason}", self.connection.url);
        let token = self.request(now_ms).map_err(failed)?;
        Ok(current.insert(token).text.clone())
    }

    /// Forgets the current token, which a server rejected.
    pub fn forget(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn request(&self, now_ms: i64) -> Result<Token, String> {
        let secret = self.client_secret.read()?;
        let pair = STANDARD.encode(format!("{}:{}", form_encoded(&self.client_id), form_encoded(&secret)));
        let request = self.agent.post(&self.connection.url).header("Accept", "application/json");
        let mut request = request.header("Authorization", format!("Basic {pair}"));
        if let Some(host) = self.connection.host() {
            request = request.header("Host", host);
        }
        let form = self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut response = request.send_form(form).map_err(|error| beginning(&error.to_string(), 200))?;
        let status = response.status().as_u16();
        let mut text = Vec::new();
        let read = response.body_mut().as_reader().take(MAX_BYTES).read_to_end(&mut text);
        read.map_err(|error| beginning(&error.to_string(), 200))?;
        if status != 200 {
            return Err(format!("it answers {status}: {}", beginning(&String::from_utf8_lossy(&text), 120)));
        }
        Token::read(&text, now_ms)
    }
}

impl Token {
    /// Reads the answer of a server of tokens to a request at a time.
    fn read(answer: &[u8], now_ms: i64) -> Result<Token, String> {
        // Such an answer may contain a token, which no error may show.
        let unknown =
            || "it answers 200 without `access_token`, or with an `expires_in` that is no number".to_owned();
        let answer: TokenAnswer = serde_json::from_slice(answer).map_err(|_| unknown())?;
        let lifetime_s = answer.lifetime_s().ok_or_else(unknown)?;
        let lifetime_ms = lifetime_s.clamp(0.0, 1e9) * 1000.0;
        let until_ms = now_ms.saturating_add(lifetime_ms as i64 - SPARE_MS);
        Ok(Token { text: answer.access_token, until_ms })
    }
}

/// Text as the name and the secret of a client in basic authorization (RFC 6749, section 2.3.1).
fn form_encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_token_is_a_number_or_its_text_and_no_error_shows_an_answer() {
        let until = |expires: &str| {
            let answer = format!("{{\"access_token\": \"hush\"{expires}}}");
            Token::read(answer.as_bytes(), 5).map(|token| token.until_ms)
        };
        assert_eq!(until(", \"expires_in\": 3599"), Ok(5 + 3_599_000 - SPARE_MS));
        assert_eq!(until(", \"expires_in\": \"3599\""), Ok(5 + 3_599_000 - SPARE_MS));
        assert_eq!(until(", \"expires_in\": null"), until(""));
        for odd in ["\"soon\"", "\"NaN\"", "[1]", "true"] {
            let message = until(&format!(", \"expires_in\": {odd}")).expect_err("no number");
            assert!(message.contains("no number") && !message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn a_client_is_encoded_as_in_a_form() {
        assert_eq!(form_encoded("a-b.c_d*"), "a-b.c_d*");
        assert_eq!(form_encoded("50%+ü:"), "50%25%2B%C3%BC%3A");
    }
}
