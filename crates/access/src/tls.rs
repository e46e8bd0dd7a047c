//! Certificate and key for HTTPS.

use std::sync::Arc;

use leeward_fabric::input::{InputError, read_text};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use leeward_settings::TlsSettings;

/// Reads the TLS configuration. Protocols and ciphers are the defaults of rustls: TLS 1.3 and 1.2.
///
/// # Errors
/// [`InputError`] with the file. Errors never repeat the contents of the key file.
pub fn tls_config(settings: &TlsSettings) -> Result<Arc<ServerConfig>, InputError> {
    let TlsSettings { cert, key } = settings;
    let expected = "expected a certificate in PEM (-----BEGIN CERTIFICATE-----)";
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(read_text(cert)?.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| InputError::new(cert.as_str(), expected))?;
    if chain.is_empty() {
        return Err(InputError::new(cert.as_str(), expected));
    }
    let private = PrivateKeyDer::from_pem_slice(read_text(key)?.as_bytes()).map_err(|_| {
        InputError::new(key.as_str(), "expected a private key in PEM (-----BEGIN PRIVATE KEY-----)")
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| InputError::new(cert.as_str(), error))?;
    let config = builder.with_no_client_auth().with_single_cert(chain, private);
    let mut config = config.map_err(|error| {
        InputError::new(key.as_str(), format!("the key does not match the certificate {cert}: {error}"))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
