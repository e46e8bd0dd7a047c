//! TLS configuration of a client.

use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, read_text};
use rustls::crypto::ring::default_provider;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};

use super::file::TlsFile;

/// TLS configuration by the field `field` of the file `name`. Without `ca_file` the client trusts the authorities of the
/// system.
///
/// # Errors
/// [`InputError`] with the field.
pub(super) fn read_tls(name: &str, field: &str, file: &TlsFile) -> Result<TlsConfig, InputError> {
    let TlsFile { ca_file, cert_file, key_file, server_name: _, insecure_skip_verify } = file;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let invalid =
        |part: &str, message: String| InputError::new(name, message).in_field(format!("{field}.{part}"));
    let read = |part: &str, file: &str| {
        let items = read_text(&folder.join(file).display().to_string()).and_then(|text| {
            let items: Result<Vec<_>, _> = parse_pem(text.as_bytes()).collect();
            items.map_err(|_| InputError::new(file, "expected PEM (-----BEGIN ...)"))
        });
        items.map_err(|error| invalid(part, error.to_string()))
    };
    let certificates = |part: &str, file: &str| {
        let items = read(part, file)?.into_iter().filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<Certificate<'static>> = items.collect();
        let message = format!("{file}: expected a certificate in PEM (-----BEGIN CERTIFICATE-----)");
        if certificates.is_empty() { Err(invalid(part, message)) } else { Ok(certificates) }
    };
    let roots = match ca_file {
        Some(file) => certificates("ca_file", file)?,
        None => {
            let native = rustls_native_certs::load_native_certs();
            native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
        }
    };
    if roots.is_empty() && !*insecure_skip_verify {
        let message =
            "missing, and the system trusts no certificate authority; expected a file with CA certificates";
        return Err(invalid("ca_file", message.to_owned()));
    }
    let client_cert = match (cert_file, key_file) {
        (None, None) => None,
        (Some(cert), key) => {
            let (part, file) = key.as_ref().map_or(("cert_file", cert), |key| ("key_file", key));
            let keys = read(part, file)?.into_iter().find_map(|item| match item {
                PemItem::PrivateKey(key) => Some(key),
                _ => None,
            });
            let message = format!("{file}: expected a private key in PEM (-----BEGIN PRIVATE KEY-----)");
            let key: PrivateKey<'static> = keys.ok_or_else(|| invalid(part, message))?;
            Some(ClientCert::new_with_certs(&certificates("cert_file", cert)?, key))
        }
        (None, Some(_)) => {
            let message = "missing; expected the certificate of the key";
            return Err(invalid("cert_file", message.to_owned()));
        }
    };
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
        .root_certs(RootCerts::from(roots))
        .client_cert(client_cert)
        .disable_verification(*insecure_skip_verify);
    Ok(config.build())
}
