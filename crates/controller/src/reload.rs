//! Reload of settings while the service runs: policies, modes, estimates of loads, tokens, certificate, rate limits,
//! Prometheus polling, and log level.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use leeward_fabric::input::{InputError, read_text};
use leeward_ledger::SettingsError;
use leeward_prometheus::{Plan, Telemetry};
use leeward_service::{CallError, Handle, LeaderState, SetFileModes, Unavailable};
use rustls::ServerConfig;
use schemars::JsonSchema;
use serde::Serialize;

use crate::configured::{ChosenPolicies, Configured};
use crate::log;
use leeward_access::{Access, Tokens, tls_config};
use leeward_settings::{Flags, Settings};

/// Reloadable parts, and their sources.
pub struct Reload {
    /// Command-line flags, with the path of the settings file.
    flags: Flags,
    /// Settings at the start of the service.
    started: Settings,
    parts: Reloadable,
    /// Settings of the last reload.
    last: Mutex<Settings>,
    /// Handle of the coordinator, once there is one.
    handle: OnceLock<Handle>,
}

/// Parts of a service that a reload changes.
pub struct Reloadable {
    /// Tokens and rate limits.
    pub access: Arc<Access>,
    /// TLS configuration.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// Prometheus polling.
    pub telemetry: Arc<Telemetry>,
    /// Policies, estimates of loads and modes.
    pub configured: Arc<ArcSwap<Configured>>,
}

/// Result of a reload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Reloaded {
    /// Path of the settings file; null if the service started without one.
    pub config: Option<String>,
    /// Names of the settings that the reload applied.
    pub reloaded: Vec<&'static str>,
    /// Names of the applied settings whose values differ from those before.
    pub changed: Vec<&'static str>,
    /// Names of the settings that changed since the start and need a restart.
    pub restart: Vec<&'static str>,
}

impl Reload {
    /// A reload of the settings of a service that starts with `started`.
    pub fn new(flags: Flags, started: Settings, parts: Reloadable) -> Reload {
        let last = Mutex::new(started.clone());
        Reload { flags, started, parts, last, handle: OnceLock::new() }
    }

    /// Sets the handle of the coordinator.
    pub fn attach(&self, handle: Handle) {
        // A service opens its coordinator once.
        let _ = self.handle.set(handle);
    }

    /// Reloads the settings, gives the coordinator its part, and logs the result.
    ///
    /// # Errors
    /// [`ReloadError`] for invalid files, and if the service is about to end.
    pub async fn run(self: Arc<Reload>) -> Result<Reloaded, ReloadError> {
        let reload = self.clone();
        // Reading files may block.
        let read = move || {
            let reloaded = reload.reload();
            log_result(&reloaded);
            reloaded
        };
        let reloaded = tokio::task::spawn_blocking(read).await;
        let reloaded = reloaded.map_err(|_| ReloadError::Ended)?;
        let configured = if reloaded.is_ok() { self.configure().await } else { Ok(()) };
        if let Err(error) = configured {
            tracing::error!(?error, "reload: the coordinator did not take all settings; reload again");
            return Err(error);
        }
        reloaded.map_err(ReloadError::Input)
    }

    /// Gives the coordinator the policies, estimates of loads and modes.
    ///
    /// # Errors
    /// [`ReloadError`] if the service ends, or if the store does not take the modes.
    async fn configure(&self) -> Result<(), ReloadError> {
        let handle = self.handle.get().ok_or(ReloadError::Ended)?;
        let configured = self.parts.configured.load_full();
        loop {
            let fabric = handle.last_snapshot().fabric.clone();
            match handle.call(configured.configuration(), fabric.clone()).await {
                // The cluster changed meanwhile.
                Err(CallError::Unavailable(Unavailable::ClusterChanged)) => {
                    handle.snapshot().await.map_err(|_| ReloadError::Ended)?;
                }
                Err(CallError::Failed(error)) => return Err(ReloadError::Ledger(error)),
                Err(CallError::Unavailable(_)) => return Err(ReloadError::Ended),
                Ok(()) => break,
            }
        }
        let fabric = handle.last_snapshot().fabric.clone();
        let stored = handle.call(SetFileModes(configured.modes), fabric).await;
        match (stored, &*handle.leader_state().borrow()) {
            // Only the leader stores modes. A follower takes them from its file when it becomes the leader.
            (Ok(_), _) | (Err(_), LeaderState::Follower { .. }) => Ok(()),
            (Err(_), _) => Err(ReloadError::Modes),
        }
    }

    /// Reads all files again, and says what a reload would do.
    ///
    /// # Errors
    /// [`ReloadError`] for invalid files.
    pub async fn dry_run(self: Arc<Reload>) -> Result<Reloaded, ReloadError> {
        let read = tokio::task::spawn_blocking(move || Ok(self.read()?.reloaded(&self)));
        read.await.map_err(|_| ReloadError::Ended)?.map_err(ReloadError::Input)
    }

    /// Reads all files again, then applies the settings that can change, except those of the coordinator. An error
    /// leaves everything unchanged.
    ///
    /// # Errors
    /// Returns an [`InputError`] with file, line and field.
    fn reload(&self) -> Result<Reloaded, InputError> {
        let new = self.read()?;
        let reloaded = new.reloaded(self);
        let NewSettings { settings, configured, tokens, certificate, plan } = new;
        self.parts.configured.store(Arc::new(configured));
        if let Some(tokens) = tokens {
            self.parts.access.set_tokens(tokens);
        }
        if let (Some(tls), Some(certificate)) = (&self.parts.tls, certificate) {
            tls.store(certificate);
        }
        self.parts.telemetry.set(plan);
        // The log level changes before the rate limit. A client that observes the new limit can rely on the new level.
        log::set_level(settings.log.level);
        self.parts.access.set_rate(settings.limits.requests_per_s);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        Ok(reloaded)
    }

    /// Reads all files again.
    fn read(&self) -> Result<NewSettings, InputError> {
        let settings = self.flags.settings()?;
        let policies = ChosenPolicies::new(&self.flags, &settings)?;
        let configured = policies.configured(&self.flags, &settings, self.started.interval)?;
        let tokens = settings.tokens.as_ref().filter(|_| self.parts.access.is_closed());
        let tokens = tokens.map(|file| Tokens::from_text(file, &read_text(file)?)).transpose()?;
        let certificate = match (&settings.tls, &self.parts.tls) {
            (Some(settings), Some(_)) => Some(tls_config(settings)?),
            _ => None,
        };
        let plan = settings.plan(&self.flags, self.started.interval)?;
        Ok(NewSettings { settings, configured, tokens, certificate, plan })
    }
}

/// Settings of a reload, read and checked.
struct NewSettings {
    settings: Settings,
    configured: Configured,
    tokens: Option<Tokens>,
    certificate: Option<Arc<ServerConfig>>,
    plan: Option<Plan>,
}

impl NewSettings {
    /// Description of the reload.
    fn reloaded(&self, reload: &Reload) -> Reloaded {
        let NewSettings { settings, tokens, certificate, plan, .. } = self;
        let mut reloaded =
            vec!["policies", "modes", "ledger", "history", "moves", "limits.requests_per_s", "log.level"];
        let parts = [
            ("tokens", tokens.is_some()),
            ("tls", certificate.is_some()),
            ("telemetry", plan.is_some() || reload.started.telemetry.prometheus.is_some()),
        ];
        reloaded.extend(parts.into_iter().filter_map(|(name, applies)| applies.then_some(name)));
        let last = reload.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (changed, restart) = (last.changed(settings), reload.started.fixed(settings));
        Reloaded { config: reload.flags.config.clone(), reloaded, changed, restart }
    }
}

/// Reason for which a reload failed.
#[derive(Debug)]
pub enum ReloadError {
    /// Invalid files; nothing changed.
    Input(InputError),
    /// The ledger rejects its settings; its policies and settings did not change.
    Ledger(SettingsError),
    /// The store did not take the modes, or another service became the leader meanwhile. All other settings changed.
    Modes,
    /// The service ends.
    Ended,
}

/// Logs the result of a reload.
fn log_result(reloaded: &Result<Reloaded, InputError>) {
    match reloaded {
        Ok(Reloaded { config, changed, restart, .. }) if restart.is_empty() => {
            tracing::info!(config, changed = changed.join(" "), "settings reloaded");
        }
        Ok(Reloaded { config, changed, restart, .. }) => tracing::warn!(
            config,
            changed = changed.join(" "),
            restart = restart.join(" "),
            "settings reloaded; some changes need a restart"
        ),
        Err(error) => tracing::error!(%error, "reload failed; settings unchanged"),
    }
}
