//! Settings that change while the service runs: tokens, certificate, rates, what is asked of Prometheus, and how much is
//! logged.

use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_fabric::input::{InputError, read_text};
use rustls::ServerConfig;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::{Access, Tokens, certified};
use crate::log;
use crate::settings::{Flags, Settings};
use crate::telemetry::{Plan, Telemetry};

/// What can be made anew, and from what.
pub struct Reload {
    /// What the command line says, with the file of settings.
    pub flags: Flags,
    /// The settings that the service was started with.
    pub started: Settings,
    /// Who may ask.
    pub access: Arc<Access>,
    /// What TLS is spoken with.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// What is asked of Prometheus.
    pub telemetry: Arc<Telemetry>,
}

/// What was read again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Reloaded {
    /// The file of settings that was read; null if the service was started without one.
    pub config: Option<String>,
    /// Settings that count as they are now.
    pub reloaded: Vec<&'static str>,
    /// Settings that differ from those that the service was started with, and count after a restart.
    pub restart: Vec<&'static str>,
}

impl Reload {
    /// Reads everything again, and then makes what can be changed count; if anything is wrong, nothing changes.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and field.
    pub fn again(&self) -> Result<Reloaded, InputError> {
        let settings = self.flags.settings()?;
        let tokens = settings.tokens.as_ref().filter(|_| self.access.is_closed());
        let tokens = tokens.map(|file| Tokens::from_text(file, &read_text(file)?)).transpose()?;
        let certificate = match (&settings.tls, &self.tls) {
            (Some(settings), Some(kept)) => Some((kept, certified(settings)?)),
            _ => None,
        };
        let plan = Plan::of(&self.flags, &settings, self.started.interval)?;
        let mut reloaded = vec!["limits.requests_per_s", "log.level"];
        if let Some(tokens) = tokens {
            self.access.set_tokens(tokens);
            reloaded.push("tokens");
        }
        if let Some((kept, certificate)) = certificate {
            kept.store(certificate);
            reloaded.push("tls");
        }
        if plan.is_some() || self.started.telemetry.prometheus.is_some() {
            reloaded.push("telemetry");
        }
        self.telemetry.set(plan);
        // The level first: whoever sees that another limit counts sees what is logged by then.
        log::set_level(settings.log.level);
        self.access.set_rate(settings.limits.requests_per_s);
        Ok(Reloaded { config: self.flags.config.clone(), reloaded, restart: self.started.fixed(&settings) })
    }

    /// The same, and writes down what came of it.
    pub fn logged(&self) -> Result<Reloaded, InputError> {
        let reloaded = self.again();
        match &reloaded {
            Ok(Reloaded { config, reloaded, restart }) if restart.is_empty() => {
                tracing::info!(config, reloaded = reloaded.join(" "), "settings were read again");
            }
            Ok(Reloaded { config, reloaded, restart }) => tracing::warn!(
                config,
                reloaded = reloaded.join(" "),
                restart = restart.join(" "),
                "settings were read again; some of them take a restart"
            ),
            Err(error) => tracing::error!(%error, "settings stay as they are"),
        }
        reloaded
    }
}
