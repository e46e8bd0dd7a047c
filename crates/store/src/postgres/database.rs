//! Address and connection settings of a PostgreSQL server. The shown form has no password.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::input::read_text;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;

/// Timeout of a connection to one server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Keep-alive: idle time of a connection before the first probe, and the number of probes.
const KEEP_ALIVE: (Duration, u32) = (Duration::from_secs(1), 2);
/// Message for an invalid URL.
const EXPECTED: &str = "expected postgres://USER@HOST:PORT/DATABASE, or with the folder of a socket \
    postgres:///DATABASE?host=/run/postgresql&user=USER; write characters of the password other than letters \
    and digits as %XX, or give the password in PGPASSWORD";

/// A PostgreSQL database. The text form has no password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    tls: MakeRustlsConnect,
    shown: String,
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Database {
    /// True for the URL of a PostgreSQL database.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Parses a URL. The password comes from the URL, or else from `password`.
    ///
    /// Servers on other machines need TLS. The certificate authorities are those in the file `sslrootcert`, or those of
    /// the system. `sslmode=disable` turns TLS off.
    ///
    /// # Errors
    /// A message that does not repeat the URL, which may contain a password.
    pub fn read(url: &str, password: Option<&str>) -> Result<Database, String> {
        let (url, authorities) = split_authorities(url);
        let mut config: Config = url.parse().map_err(|_| EXPECTED.to_owned())?;
        let user = config.get_user().filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| format!("no user; {EXPECTED}"))?.to_owned();
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        let is_remote = is_remote(&config);
        let mode = match config.get_ssl_mode() {
            SslMode::Prefer if is_remote || authorities.is_some() => SslMode::Require,
            SslMode::Prefer => SslMode::Disable,
            mode => mode,
        };
        if mode == SslMode::Require && config.get_hosts().is_empty() {
            return Err(
                "`hostaddr` without `host`: TLS verifies the server's name; give the name in `host`, or turn \
                 TLS off with sslmode=disable"
                    .to_owned(),
            );
        }
        let roots = match mode {
            SslMode::Disable => RootCertStore::empty(),
            _ => root_certificates(authorities.as_deref())?,
        };
        config.ssl_mode(mode);
        if config.get_application_name().is_none() {
            config.application_name("leeward");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let (idle, probes) = KEEP_ALIVE;
        config.keepalives_idle(idle).keepalives_interval(idle).keepalives_retries(probes);
        config.tcp_user_timeout(idle * (probes + 1));
        let shown = shown(&user, &config);
        Ok(Database { config, tls: tls_connector(roots)?, shown })
    }

    /// URL without the password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// A connection, and the task that drives it.
    pub(super) async fn connect(&self) -> Result<(Client, JoinHandle<()>), StoreError> {
        // The client tries the servers of a URL in order. A server may accept a connection but not respond.
        let servers = self.config.get_hosts().len().max(self.config.get_hostaddrs().len()).max(1);
        let patience = CONNECT_TIMEOUT * u32::try_from(servers).unwrap_or(u32::MAX);
        let connected = tokio::time::timeout(patience, self.config.connect(self.tls.clone())).await;
        let (client, connection) = connected.map_err(|_| StoreError::Silent(patience))??;
        let driver = tokio::spawn(async move {
            // Users of the client get the error.
            let _ = connection.await;
        });
        Ok((client, driver))
    }
}

/// True if any server may be on another machine. Addresses take precedence over names.
fn is_remote(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().any(|address| !address.is_loopback());
    }
    config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => name != "localhost" && !name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        Host::Unix(_) => false,
    })
}

/// A URL without its `sslrootcert`, and the decoded value of this parameter.
fn split_authorities(url: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (authorities, rest): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|field| field.starts_with("sslrootcert="));
    let file =
        authorities.last().and_then(|field| field.split_once('=')).map(|(_, file)| percent_decode(file));
    let joint = if rest.is_empty() { "" } else { "?" };
    (format!("{base}{joint}{}", rest.join("&")), file)
}

/// Decodes percent-encoded URL text, such as `%2F`.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn shown(user: &str, config: &Config) -> String {
    let port =
        |at: usize| config.get_ports().get(at).or(config.get_ports().first()).map_or(5432, |&port| port);
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        Host::Unix(folder) => format!("{}:{}", folder.display(), port(at)),
    });
    let mut hosts: Vec<String> = hosts.collect();
    if hosts.is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        hosts.extend(addresses.map(|(at, &address)| SocketAddr::new(address, port(at)).to_string()));
    }
    format!("postgres://{user}@{}/{}", hosts.join(","), config.get_dbname().unwrap_or(user))
}

/// Root certificates of a file, or of the system.
fn root_certificates(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            return Err("this machine has no trusted root certificates; name a file of them with \
                        sslrootcert=FILE, or turn TLS off with sslmode=disable"
                .to_owned());
        }
        return Ok(roots);
    };
    let expected =
        || format!("sslrootcert: {file}: expected certificates in PEM (-----BEGIN CERTIFICATE-----)");
    let text = read_text(file).map_err(|error| format!("sslrootcert: {error}"))?;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.map_err(|_| expected())?).map_err(|_| expected())?;
    }
    if roots.is_empty() { Err(expected()) } else { Ok(roots) }
}

fn tls_connector(roots: RootCertStore) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_displayed_database_url_has_no_password() {
        let cases = [
            (
                "postgres://lee:secret@db.example:5433/leeward?sslmode=disable",
                "postgres://lee@db.example:5433/leeward",
            ),
            ("postgresql://lee:secret@127.0.0.1/leeward", "postgres://lee@127.0.0.1:5432/leeward"),
            (
                "postgres:///leeward?host=/run/pg&user=lee&password=secret",
                "postgres://lee@/run/pg:5432/leeward",
            ),
            ("postgres://lee@%2Frun%2Fpg/leeward", "postgres://lee@/run/pg:5432/leeward"),
            ("postgres://lee@a,b/leeward?sslmode=disable", "postgres://lee@a:5432,b:5432/leeward"),
            ("postgres://lee:sec?ret@localhost/leeward", "postgres://lee@localhost:5432/leeward"),
            ("postgres://lee@localhost", "postgres://lee@localhost:5432/lee"),
            ("postgres://lee@/leeward?hostaddr=::1", "postgres://lee@[::1]:5432/leeward"),
        ];
        for (url, shown) in cases {
            let database = Database::read(url, Some("secret")).expect("a valid URL");
            assert_eq!(database.to_string(), shown);
            assert!(!format!("{database:?} {:?}", database.config).contains("secret"), "{database:?}");
        }
    }

    #[test]
    fn remote_servers_are_reached_over_tls() {
        let authority = rcgen::generate_simple_self_signed(vec!["db".to_owned()]).expect("a certificate");
        let (folder, file) = (tempfile::tempdir().expect("a folder"), "authority.pem");
        std::fs::write(folder.path().join(file), authority.cert.pem()).expect("a file");
        let trusted = format!("sslrootcert={}", folder.path().join(file).display());
        for (server, mode) in [
            ("host=db", SslMode::Require),
            ("host=localhost", SslMode::Disable),
            ("host=127.0.0.1", SslMode::Disable),
            ("host=%2Frun%2Fpg", SslMode::Disable),
            ("hostaddr=127.0.0.1", SslMode::Disable),
            ("host=localhost&hostaddr=192.0.2.1", SslMode::Require),
            ("host=db&hostaddr=127.0.0.1", SslMode::Disable),
            ("host=localhost,db", SslMode::Require),
        ] {
            let trusted = if mode == SslMode::Require { &*trusted } else { "" };
            let url = format!("postgres://lee@/leeward?{server}&{trusted}");
            let database = Database::read(url.trim_end_matches('&'), None).expect("a valid URL");
            assert_eq!(database.config.get_ssl_mode(), mode, "{server}");
        }
    }

    #[test]
    fn errors_in_a_database_url_do_not_contain_the_url() {
        for url in [
            "postgres://lee:secret@db.example:many/leeward",
            "postgres://lee:secret@db.example/leeward?secret=secret",
            "postgres://:secret@db.example/leeward",
            "postgres://lee:secret@db.example/leeward?sslmode=secret",
        ] {
            let error = Database::read(url, None).expect_err("an error");
            assert!(error.contains("expected postgres://") && !error.contains("secret"), "{url}: {error}");
        }
        // Certificates need a host name. Without one, nothing is sent to another machine in plain text.
        let far = Database::read("postgres://lee@/leeward?hostaddr=192.0.2.1", None);
        assert!(far.is_err_and(|error| error.contains("`hostaddr` without `host`")));
        let error = Database::read("postgres://lee:secret@db/leeward?sslrootcert=%2Fnowhere", None);
        let error = error.expect_err("there is no such file");
        assert!(error.contains("sslrootcert: /nowhere") && !error.contains("secret"), "{error}");
    }
}
