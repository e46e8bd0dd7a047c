//! The controller: the service over HTTP.
//!
//! `http` is the API, `connections` accepts clients, and `access` checks tokens, roles and rates.
//! `settings` and `start` build a service from files and flags. `polling` and `probes` collect telemetry and
//! measurements. `leeward-service` makes the decisions. This crate resolves names and converts times.

mod access;
mod configured;
mod connections;
mod exposure;
mod http;
mod log;
mod off_switch;
mod polling;
mod probes;
mod reload;
mod service;
mod settings;
mod start;
mod token_hosts;

pub use access::{
    Access, Client, Denied, Hosts, NewToken, Principal, Rates, Role, Token, Tokens, tls_config,
};
pub use configured::Configured;
pub use log::{is_json, log_end};
pub use reload::{Reload, ReloadError, Reloadable, Reloaded};
pub use service::{RunError, Service};
pub use settings::{
    DefaultPolicies, Flags, Format, LedgerOptions, Level, LimitSettings, LogSettings, PolicySettings,
    ProbeSettings, Settings, TelemetrySettings, TlsSettings,
};
pub use start::{Ready, StartError};
