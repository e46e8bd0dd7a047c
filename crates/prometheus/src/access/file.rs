//! Fields of the file, in the format of promtool's `--http.config.file`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Contents of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AccessFile {
    pub basic_auth: Option<BasicAuthFile>,
    pub authorization: Option<AuthorizationFile>,
    pub oauth2: Option<OAuth2File>,
    pub http_headers: BTreeMap<String, HeaderFile>,
    pub tls_config: Option<TlsFile>,
    pub proxy_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BasicAuthFile {
    pub username: String,
    pub password: Option<String>,
    pub password_file: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthorizationFile {
    pub r#type: Option<String>,
    pub credentials: Option<String>,
    pub credentials_file: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuth2File {
    pub client_id: String,
    pub client_secret: Option<String>,
    pub client_secret_file: Option<String>,
    pub token_url: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    #[serde(default)]
    pub endpoint_params: BTreeMap<String, String>,
    pub tls_config: Option<TlsFile>,
    pub proxy_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum HeaderFile {
    One(String),
    Listed([String; 1]),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsFile {
    pub ca_file: Option<String>,
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
    pub server_name: Option<String>,
    pub insecure_skip_verify: bool,
}
