//! The controller: the service over HTTP.
//!
//! `http` is the API, and `connections` accepts clients. `start` builds a service from its settings, `configured` is the
//! part of them that `reload` may change, and `off_switch` turns the modes off. `polling` and `probes` collect telemetry
//! and measurements. `leeward-service` makes the decisions. This crate resolves names and converts times.

mod configured;
mod http;
mod log;
mod off_switch;
mod polling;
mod reload;
mod service;
mod start;
mod token_hosts;

pub use configured::Configured;
pub use leeward_access::{
    Access, Client, Denied, Hosts, NewToken, Principal, Rates, Role, Token, Tokens, tls_config,
};
pub use leeward_connections::ConnectionLimit;
pub use leeward_settings::{
    DefaultPolicies, Flags, Format, HistoryOptions, LedgerOptions, Level, LimitSettings, LogSettings,
    MoveOptions, PolicySettings, ProbeSettings, Settings, TelemetrySettings, TlsSettings,
};
pub use log::{is_json, log_end};
pub use reload::{Reload, ReloadError, Reloadable, Reloaded};
pub use service::{RunError, Service};
pub use start::{Ready, StartError};
