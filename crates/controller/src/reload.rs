//! Reload of settings while the service runs: tokens, certificate, rate limits, Prometheus polling, and log
//! level.

use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_fabric::input::{InputError, read_text};
use leeward_prometheus::Telemetry;
use rustls::ServerConfig;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::{Access, Tokens, tls_config};
use crate::log;
use crate::settings::{Flags, Settings};

/// Reloadable parts, and their sources.
pub struct Reload {
    /// Command-line flags, with the path of the settings file.
    pub flags: Flags,
    /// Settings at the start of the service.
    pub started: Settings,
    /// Tokens and rate limits.
    pub access: Arc<Access>,
    /// TLS configuration.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// Prometheus polling.
    pub telemetry: Arc<Telemetry>,
}

/// Result of a reload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Reloaded {
    /// Path of the settings file; null if the service started without one.
    pub config: Option<String>,
    /// Names of the settings that the reload applied.
    pub reloaded: Vec<&'static str>,
    /// Names of the settings that changed since the start and need a restart.
    pub restart: Vec<&'static str>,
}

impl Reload {
    /// Reads all files again, then applies the settings that can change. An error leaves everything unchanged.
    ///
    /// # Errors
    /// Returns an [`InputError`] with file, line and field.
    pub fn reload(&self) -> Result<Reloaded, InputError> {
        let settings = self.flags.settings()?;
        let tokens = settings.tokens.as_ref().filter(|_| self.access.is_closed());
        let tokens = tokens.map(|file| Tokens::from_text(file, &read_text(file)?)).transpose()?;
        let certificate = match (&settings.tls, &self.tls) {
            (Some(settings), Some(tls)) => Some((tls, tls_config(settings)?)),
            _ => None,
        };
        let plan = settings.plan(&self.flags, self.started.interval)?;
        let mut reloaded = vec!["limits.requests_per_s", "log.level"];
        if let Some(tokens) = tokens {
            self.access.set_tokens(tokens);
            reloaded.push("tokens");
        }
        if let Some((tls, certificate)) = certificate {
            tls.store(certificate);
            reloaded.push("tls");
        }
        if plan.is_some() || self.started.telemetry.prometheus.is_some() {
            reloaded.push("telemetry");
        }
        self.telemetry.set(plan);
        // The log level changes before the rate limit. A client that observes the new limit can rely on the new level.
        log::set_level(settings.log.level);
        self.access.set_rate(settings.limits.requests_per_s);
        Ok(Reloaded { config: self.flags.config.clone(), reloaded, restart: self.started.fixed(&settings) })
    }

    /// Reloads the settings and logs the result.
    ///
    /// # Errors
    /// Returns an [`InputError`] with file, line and field.
    pub fn reload_and_log(&self) -> Result<Reloaded, InputError> {
        let reloaded = self.reload();
        match &reloaded {
            Ok(Reloaded { config, reloaded, restart }) if restart.is_empty() => {
                tracing::info!(config, reloaded = reloaded.join(" "), "settings reloaded");
            }
            Ok(Reloaded { config, reloaded, restart }) => tracing::warn!(
                config,
                reloaded = reloaded.join(" "),
                restart = restart.join(" "),
                "settings reloaded; some changes need a restart"
            ),
            Err(error) => tracing::error!(%error, "reload failed; settings unchanged"),
        }
        reloaded
    }
}
