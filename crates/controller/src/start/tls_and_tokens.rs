//! Address, TLS and tokens of a service.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_fabric::input::{InputError, read_secret, read_text};
use rustls::ServerConfig;

use super::plain;
use leeward_access::{Access, Tokens, tls_config};
use leeward_settings::{Flags, Settings};

/// Address, TLS and tokens of a service.
pub struct TlsAndTokens {
    /// Listening address.
    pub address: SocketAddr,
    /// Listening address for health, metrics and administration, if it has its own.
    pub admin_address: Option<SocketAddr>,
    /// Tokens and rate limits.
    pub access: Arc<Access>,
    /// TLS configuration; `None` for HTTP.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
}

impl TlsAndTokens {
    /// Reads the files that the settings name; opens no socket yet.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field, or with the flag.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<TlsAndTokens, InputError> {
        let address = resolve(&settings.listen).map_err(|message| flags.wrong("listen", message))?;
        let tokens = settings.tokens.as_ref();
        let tokens = tokens.map(|file| Tokens::from_text(file, &read_text(file)?)).transpose()?;
        let admin_address = settings.admin_listen.as_deref().map(resolve).transpose();
        let admin_address = admin_address.map_err(|message| flags.wrong("admin_listen", message))?;
        let addresses = [
            ("listen", Some(address), Some(&settings.listen)),
            ("admin_listen", admin_address, settings.admin_listen.as_ref()),
        ];
        for (field, address, text) in addresses {
            if let (None, Some(address), Some(text)) = (&tokens, address, text)
                && !address.ip().is_loopback()
            {
                return Err(flags.wrong(field, open_to_all(text)));
            }
        }
        let tls = settings.tls.as_ref().map(tls_config).transpose()?;
        settings.probes.secret.as_deref().map(read_secret).transpose()?;
        Ok(TlsAndTokens {
            address,
            admin_address,
            access: Arc::new(Access::new(tokens, settings.limits.requests_per_s)),
            tls: tls.map(|tls| Arc::new(ArcSwap::new(tls))),
        })
    }

    /// URL scheme of the service.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// True if other machines can reach the service.
    fn is_on_network(&self) -> bool {
        [Some(self.address), self.admin_address]
            .into_iter()
            .flatten()
            .any(|address| !address.ip().is_loopback())
    }

    /// Logs warnings about missing tokens or TLS.
    pub fn warn(&self) {
        match (self.access.is_closed(), self.tls.is_some()) {
            (false, _) => tracing::warn!(
                "no tokens: any user of this machine can read and change everything; see tokens in the guide \
                 `Operate the service`"
            ),
            (true, false) if self.is_on_network() => {
                tracing::warn!(
                    "no TLS: tokens cross the network in plain text; see tls in the guide `Operate the service`"
                );
            }
            _ => {}
        }
    }
}

/// Resolves an address or name with a port; prefers IPv4.
fn resolve(listen: &str) -> Result<SocketAddr, String> {
    let port = listen.rsplit_once(':').filter(|(name, _)| !name.is_empty()).map(|(_, port)| port);
    if port.and_then(|port| port.parse::<u16>().ok()).is_none() {
        return Err(format!("`{listen}`: expected an address and a port, such as 127.0.0.1:7600"));
    }
    let addresses = listen.to_socket_addrs().map_err(|error| format!("`{listen}`: {}", plain(&error)))?;
    addresses
        .min_by_key(|address| !address.is_ipv4())
        .ok_or_else(|| format!("`{listen}`: the name has no address"))
}

/// Message for an address that other machines can reach without tokens, with the remedy.
fn open_to_all(listen: &str) -> String {
    format!(
        "`{listen}`: without tokens, every client that reaches it could place work and change the cluster; \
         create a token (`leeward token new --role admin --name NAME --tokens FILE`) and give the file with \
         --tokens, or listen on 127.0.0.1"
    )
}
