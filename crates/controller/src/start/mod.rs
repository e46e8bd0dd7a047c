//! Start of a service from its settings, shared by `leewardd` and `leeward serve`.

mod store_location;
mod tls_and_tokens;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leeward_access::exposure;
use leeward_fabric::input::{InputError, read_text};
use leeward_prometheus::{Plan, Telemetry};
use leeward_records::Clock;
use leeward_service::NewCluster;
use leeward_telemetry::TelemetryFile;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::store_location::StoreLocation;
use self::tls_and_tokens::TlsAndTokens;
use crate::configured::{ChosenPolicies, Configured};
use crate::log;
use crate::reload::Reload;
use crate::service::{RunError, Service};
use leeward_connections::{ConnectionLimit, raise_file_limit};
use leeward_settings::{Flags, Settings};

/// Validated input of a service, before its start.
pub struct Ready {
    flags: Flags,
    settings: Settings,
    cluster: NewCluster,
    configured: Configured,
    tls_and_tokens: TlsAndTokens,
    store: StoreLocation,
    telemetry: Option<Plan>,
    clock: Clock,
}

/// Reason why a service ended without a stop signal.
#[derive(Debug)]
pub enum StartError<E> {
    /// Invalid input.
    Input(InputError),
    /// The callback for the listening address failed.
    Callback(E),
    /// The process or the system failed, or the engine stopped.
    Failed(std::io::Error),
}

impl<E> From<InputError> for StartError<E> {
    fn from(error: InputError) -> Self {
        StartError::Input(error)
    }
}

impl Ready {
    /// Reads the settings and the files that they name, without side effects.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field, or with the flag.
    pub fn new(flags: Flags) -> Result<Ready, InputError> {
        let settings = flags.settings()?;
        Ready::read(flags, settings)
    }

    /// Reads the settings of a service that will run. Logging starts after they are read.
    ///
    /// # Errors
    /// Same as [`Ready::new`].
    pub fn to_run(flags: Flags) -> Result<Ready, InputError> {
        let settings = flags.settings()?;
        log::begin(settings.log);
        Ready::read(flags, settings)
    }

    fn read(flags: Flags, settings: Settings) -> Result<Ready, InputError> {
        let file = settings.cluster.as_deref();
        let file = file.ok_or_else(|| flags.wrong("cluster", "missing; expected a cluster file"))?;
        let cluster = NewCluster::read(file, &read_text(file)?)?;
        let policies = ChosenPolicies::new(&flags, &settings)?;
        let configured = policies.configured(&flags, &settings, settings.interval)?;
        let tls_and_tokens = TlsAndTokens::new(&flags, &settings)?;
        let store = StoreLocation::new(settings.store.as_deref(), &store_name(file, &cluster))
            .map_err(|message| flags.wrong("store", message))?;
        check_advertise(&flags, &settings, &tls_and_tokens, &store)?;
        let telemetry = settings.plan(&flags, settings.interval)?;
        let clock = Clock::system();
        Ok(Ready { flags, settings, cluster, configured, tls_and_tokens, store, telemetry, clock })
    }

    /// Sets the clock of the service, which is otherwise the machine's.
    pub fn clock(self, clock: Clock) -> Ready {
        Ready { clock, ..self }
    }

    /// Store of decisions: a file, or the URL of a database without its password; `None` for memory.
    pub fn store(&self) -> Option<&Path> {
        self.store.path()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs the service until the process is stopped. `listening` receives the URL and the store.
    ///
    /// # Errors
    /// [`StartError`] with the reason.
    pub fn run<E>(
        self,
        listening: impl FnOnce(&str, Option<&Path>) -> Result<(), E>,
    ) -> Result<(), StartError<E>> {
        let Ready { flags, settings, cluster, configured, tls_and_tokens, telemetry, clock, .. } = self;
        let location = self.store;
        let store = location.open(&settings).map_err(|message| flags.wrong("store", message))?;
        let admin_listener =
            tls_and_tokens.admin_address.map(TcpListener::bind).transpose().map_err(|error| {
                let listen = settings.admin_listen.as_deref().unwrap_or_default();
                flags.wrong("admin_listen", not_listening(listen, &error, "--admin-listen"))
            })?;
        let mut service = Service::with(cluster, configured, settings.seed, store);
        service.clock = clock;
        service.off_file = settings.off_file.as_ref().map(PathBuf::from);
        let telemetry_file = location.telemetry_file(settings.telemetry_file.as_deref());
        service.telemetry_file = telemetry_file.map(TelemetryFile::new);
        let limits = &settings.limits;
        service.patience = Duration::from_nanos(limits.patience.0);
        let setting = limits.connections.map(|connections| connections as usize);
        service.connections = ConnectionLimit { setting, files: raise_file_limit() };
        service.streams = limits.streams as usize;
        service.body = usize::try_from(limits.body.0).unwrap_or(usize::MAX);
        service.probes = settings.probes.clone();
        let file = location.path().filter(|_| matches!(location, StoreLocation::File(_)));
        service.secrets = exposure::secrets(&settings, file);
        let exposed = exposure::warnings(&service.secrets);
        service.telemetry = Arc::new(Telemetry::new(telemetry));
        (service.access, service.tls) = (tls_and_tokens.access.clone(), tls_and_tokens.tls.clone());
        service.reload = Some(Arc::new(Reload::new(flags.clone(), settings.clone(), service.reloadable())));
        service.demo = flags.demo;
        service.advertise.clone_from(&settings.advertise);
        let admin = admin_listener.as_ref().and_then(|listener| listener.local_addr().ok());
        service.admin_listener = admin_listener;
        let served = service.run(tls_and_tokens.address, |address| {
            let url = format!("{}://{address}", tls_and_tokens.scheme());
            listening(&url, location.path())?;
            let store = location.path().unwrap_or(Path::new("memory")).display();
            let admin_url = admin.map(|address| format!("{}://{address}", tls_and_tokens.scheme()));
            tracing::info!(version = env!("CARGO_PKG_VERSION"), url, admin_url, %store, "started");
            tls_and_tokens.warn();
            exposed.iter().for_each(|warning| tracing::warn!("{warning}"));
            Ok(())
        });
        served.map_err(|error| match error {
            RunError::Listen(error) => {
                flags.wrong("listen", not_listening(&settings.listen, &error, "--listen")).into()
            }
            RunError::Callback(error) => StartError::Callback(error),
            RunError::Failed(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                let shown = location.path().unwrap_or(Path::new("memory")).display();
                let remedy = if matches!(location, StoreLocation::File(_)) {
                    "; restore the file from a copy"
                } else {
                    ""
                };
                flags.wrong("store", format!("{shown}: {error}{remedy}")).into()
            }
            RunError::Failed(error) => StartError::Failed(error),
        })
    }
}

/// Detects a name in a cluster file.
#[derive(Deserialize)]
struct Named {
    name: Option<IgnoredAny>,
}

/// Name of the default store: the cluster's name, or the stem of its file for an unnamed cluster. Unnamed clusters in
/// files of different names therefore have different stores.
fn store_name(file: &str, cluster: &NewCluster) -> String {
    let named = serde_json::from_str(&cluster.text).is_ok_and(|Named { name }| name.is_some());
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let name = if named { cluster.cluster.fabric.name() } else { &*stem };
    // A name must not contain a path.
    name.replace('/', "-")
}

/// Checks that other services can reach this service.
fn check_advertise(
    flags: &Flags,
    settings: &Settings,
    tls_and_tokens: &TlsAndTokens,
    store: &StoreLocation,
) -> Result<(), InputError> {
    let shares = matches!(store, StoreLocation::Database(_));
    match settings.advertise.as_deref() {
        Some(url) if !is_http(url) => {
            let message = format!("`{url}`: expected a URL, such as http://leeward-1.example:7600");
            Err(flags.wrong("advertise", message))
        }
        None if tls_and_tokens.address.ip().is_unspecified() && shares => {
            let message = "missing; expected the URL at which other services reach this one, because it listens on \
                           all addresses and shares its store";
            Err(flags.wrong("advertise", message))
        }
        _ => Ok(()),
    }
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

/// Message for an address on which the service cannot listen.
fn not_listening(listen: &str, error: &std::io::Error, flag: &str) -> String {
    let taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let remedy = if taken { format!("; give another port with {flag}") } else { String::new() };
    format!("`{listen}`: {}{remedy}", plain(error))
}

/// Message of a system error, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
