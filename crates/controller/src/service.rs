//! The service's life cycle, from its settings to a graceful shutdown.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use leeward_engine::Policies;
use leeward_fabric::{Cluster, Nanos};
use leeward_frames::Snapshots;
use leeward_hooks::carry_out;
use leeward_ledger::{LedgerSettings, SettingsError};
use leeward_prometheus::{Telemetry, poll};
use leeward_records::{Clock, Modes};
use leeward_service::{AdmissionPolicies, Coordinator, Handle, Limits, NewCluster, OpenError, PolicyLabels};
use leeward_store::Store;
use leeward_telemetry::TelemetryFile;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use crate::configured::Configured;
use crate::http::{About, AppState, Board, admin_routes, description, reserve_routes, routes};
use crate::off_switch::OffSwitch;
use crate::polling::PolledReports;
use crate::reload::{Reload, Reloadable};
use crate::token_hosts::watch_tokens;
use leeward_access::Access;
use leeward_connections::{ADMIN, ADMIN_CONNECTIONS, Acceptor, Bodies, ConnectionLimit, MAIN};
use leeward_observability::{Events, Metrics, ObservedStore, Reporters, ServiceNotifier, watch, watch_clock};
use leeward_settings::{HistoryOptions, MoveOptions, ProbeSettings};
use leeward_surveys::Probes;
use leeward_telemetry::TelemetryKeeper;

/// Time limit for requests in progress to finish during a shutdown.
const LAST_REQUESTS: Duration = Duration::from_secs(30);
/// Time limit of the last write of counts, which delays the end of the service.
const LAST_PERIODS: Duration = Duration::from_secs(5);

/// Number of scheduler ticks after which a worker polls the global queue. This queue holds tasks that other threads
/// wake, above all the store's thread. With a small number, a client whose change is already durable does not wait for
/// all reports that arrived meanwhile. At 10,000 reports per second, the 99th percentile of placements was 6 ms with
/// tokio's default, and is 4 to 5 ms with this value.
const GLOBAL_QUEUE_INTERVAL: u32 = 8;

/// Configuration of a service.
pub struct Service {
    /// Limits on retained data.
    pub limits: Limits,
    /// Clock of the service.
    pub clock: Clock,
    /// Time limit for the head of a request, counted from the last response on its connection. The same limit applies
    /// separately to the body. Default 90 s. The first head of a connection has only 10 s.
    pub patience: Duration,
    /// Largest request body, in bytes. Default 16 MiB, a report of 100,000 hosts in one piece.
    pub body: usize,
    /// Limit on the total size of request bodies in memory, from their arrival to their response, in bytes. Default 256
    /// MiB, sixteen bodies of the largest size. A single body of the largest size always fits.
    pub bodies: usize,
    /// Limit on open event streams. Default 64.
    pub streams: usize,
    /// Access control: tokens and request rates. The default admits every client without a limit.
    pub access: Arc<Access>,
    /// TLS configuration; plain HTTP without it. A change applies to new connections.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// Settings that a reload may change.
    pub configured: Arc<ArcSwap<Configured>>,
    /// File whose existence turns every mode off; `None` for no such file.
    pub off_file: Option<PathBuf>,
    /// File that keeps telemetry over a restart; none by default.
    pub telemetry_file: Option<TelemetryFile>,
    /// Reload of settings; `None` if there is nothing to reload.
    pub reload: Option<Arc<Reload>>,
    /// Polling of Prometheus; off by default.
    pub telemetry: Arc<Telemetry>,
    /// URL of this service for its peers and their clients. The default is its listen address.
    pub advertise: Option<String>,
    /// True if the service shows a demo, which a client uploads.
    pub demo: bool,
    /// Settings of measurements by agents.
    pub probes: ProbeSettings,
    /// Files with secrets; the status warns if other users can read them.
    pub secrets: Vec<PathBuf>,
    /// Limit on open connections. At the limit, a new connection replaces a connection that has not authenticated. If
    /// all connections have authenticated, the new connection can request health, metrics and administration only.
    /// The default follows the cluster, without a limit on open files.
    pub connections: ConnectionLimit,
    /// Listener for health, metrics and administration, with connections of its own; none by default.
    pub admin_listener: Option<std::net::TcpListener>,
    /// Messages to systemd.
    notifier: Option<Arc<ServiceNotifier>>,
    cluster: NewCluster,
    seed: u64,
    interval: Nanos,
    store: Box<dyn Store>,
}

/// Reason why a service failed to start or ended unexpectedly.
#[derive(Debug)]
pub enum RunError<E> {
    /// The service cannot listen on the address.
    Listen(io::Error),
    /// The `listening` callback rejected the address.
    Callback(E),
    /// The process or the system failed, the engine stopped, or the stored data is invalid (kind `InvalidData`).
    Failed(io::Error),
}

impl Service {
    /// Creates a service for a cluster without state, on the machine's clock. `policies` may run more than once.
    /// `labels` are the names of the policies as users write them, settings included.
    ///
    /// # Errors
    /// A [`SettingsError`] for invalid ledger settings.
    pub fn new(
        cluster: NewCluster,
        policies: impl Fn() -> Policies + Send + Sync + 'static,
        labels: PolicyLabels,
        settings: LedgerSettings,
        seed: u64,
        store: Box<dyn Store>,
    ) -> Result<Service, SettingsError> {
        settings.check()?;
        let configured = Configured {
            policies: Box::new(policies),
            labels,
            admission: AdmissionPolicies::default(),
            ledger: settings,
            modes: Modes::default(),
            history: Some(HistoryOptions::default()),
            moves: MoveOptions::default(),
            hook: None,
        };
        Ok(Service::with(cluster, configured, seed, store))
    }

    /// Creates a service for a cluster without state, on the machine's clock, with checked settings.
    pub fn with(cluster: NewCluster, configured: Configured, seed: u64, store: Box<dyn Store>) -> Service {
        let interval = configured.ledger.interval;
        let limits = Limits { move_timeout: configured.moves.timeout, ..Limits::default() };
        let (clock, patience) = (Clock::system(), Duration::from_secs(90));
        Service {
            limits,
            clock,
            patience,
            connections: ConnectionLimit::default(),
            admin_listener: None,
            notifier: None,
            body: 16 << 20,
            bodies: 256 << 20,
            streams: 64,
            access: Arc::new(Access::new(None, None)),
            tls: None,
            configured: Arc::new(ArcSwap::from_pointee(configured)),
            off_file: None,
            telemetry_file: None,
            reload: None,
            telemetry: Arc::new(Telemetry::new(None)),
            advertise: None,
            demo: false,
            probes: ProbeSettings::default(),
            secrets: Vec::new(),
            cluster,
            seed,
            interval,
            store,
        }
    }

    /// Parts that a reload changes.
    pub fn reloadable(&self) -> Reloadable {
        Reloadable {
            access: self.access.clone(),
            tls: self.tls.clone(),
            telemetry: self.telemetry.clone(),
            configured: self.configured.clone(),
        }
    }

    /// Listens on `address` and serves until SIGINT or SIGTERM. `listening` gets the bound address, with the
    /// actual port if `address` has port 0. An error of `listening` aborts the start.
    ///
    /// # Errors
    /// A [`RunError`] if the start fails or the service ends unexpectedly.
    pub fn run<E>(
        mut self,
        address: SocketAddr,
        listening: impl FnOnce(SocketAddr) -> Result<(), E>,
    ) -> Result<(), RunError<E>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .global_queue_interval(GLOBAL_QUEUE_INTERVAL)
            .build();
        runtime.map_err(RunError::Failed)?.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Failed)?;
            let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Failed)?;
            let hangups = signal(SignalKind::hangup()).map_err(RunError::Failed)?;
            self.notifier = ServiceNotifier::from_env().map(Arc::new);
            let notifier = self.notifier.clone();
            let reloading = tokio::spawn(reload_on(hangups, self.reload.clone(), notifier));
            let listener = TcpListener::bind(address).await.map_err(RunError::Listen)?;
            listening(listener.local_addr().map_err(RunError::Listen)?).map_err(RunError::Callback)?;
            let stop = async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            let served = self.serve(listener, stop).await;
            reloading.abort();
            tracing::info!("stopped");
            served.map_err(RunError::Failed)
        })
    }

    /// Serves until `stop` completes, then finishes the requests in progress.
    ///
    /// # Errors
    /// An I/O error if the stored data is invalid (kind `InvalidData`), the listener has no local address, or
    /// the engine stops.
    pub async fn serve(mut self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        let (connections, patience, tls) = (self.connections, self.patience, self.tls.clone());
        let admin = self.admin_listener.take().map(admin_listener).transpose()?;
        let notifier = self.notifier.take();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        let OpenService { app, actor } = self.open_store(&url).await?;
        let mut actor = tokio::spawn(actor);
        let open = GracefulShutdown::new();
        let (handle, events, metrics) = (app.handle.clone(), app.events.clone(), app.metrics.clone());
        // The stored cluster counts, which may have more hosts than the file.
        connections.warn(handle.last_snapshot().fabric.host_count());
        let limit = {
            let handle = handle.clone();
            move || connections.for_hosts(handle.last_snapshot().fabric.host_count())
        };
        let switching = app.switch.clone().follow(handle.clone());
        let watching = watch(handle.clone(), events.clone());
        let polling = {
            let (telemetry, clock) = (app.telemetry.clone(), app.clock.clone());
            let mut consumer = PolledReports::new(handle.clone(), metrics.clone());
            async move { poll(&telemetry, &mut consumer, &clock).await }
        };
        let ticking = {
            let (clock, handle, metrics) = (app.clock.clone(), handle.clone(), metrics.clone());
            async move { watch_clock(&clock, &handle, &metrics).await }
        };
        let notifying = {
            let (notifier, handle) = (notifier.clone(), handle.clone());
            async move {
                match notifier {
                    Some(notifier) => notifier.watch(&handle).await,
                    None => std::future::pending().await,
                }
            }
        };
        let hooking = {
            let configured = app.configured.clone();
            carry_out(move || configured.load().hook.clone(), handle.clone(), app.clock.clone())
        };
        let keeper = app.keeper.clone();
        let keeping = keeper.keep(&handle, app.about.interval);
        let access = app.access.clone();
        let checking = watch_tokens(&access, &handle);
        let app = Arc::new(app);
        let acceptor =
            Acceptor { listener: MAIN, routes: routes(app.clone()), reserve: None, metrics, patience, tls };
        let on_admin = Acceptor { listener: ADMIN, routes: admin_routes(app.clone()), ..acceptor.clone() };
        let on_main = Acceptor { reserve: Some(reserve_routes(app)), ..acceptor };
        let accepting = on_main.accept(listener, limit, &open);
        let accepting_admin = async {
            match admin {
                Some(listener) => on_admin.accept(listener, || ADMIN_CONNECTIONS, &open).await,
                None => std::future::pending().await,
            }
        };
        if let Some(notifier) = &notifier {
            notifier.ready();
        }
        tokio::select! {
            never = accepting => match never {},
            never = accepting_admin => match never {},
            never = polling => match never {},
            never = ticking => match never {},
            never = notifying => match never {},
            never = checking => match never {},
            never = keeping => match never {},
            never = hooking => match never {},
            never = switching => match never {},
            () = stop => {}
            () = watching => return Err(io::Error::other("the engine has stopped")),
            // The actor runs as long as a handle exists, so its end means a failure.
            ended = &mut actor => return Err(io::Error::other(format!("the engine has stopped: {ended:?}"))),
        }
        tracing::info!("stopping after the requests in progress");
        if let Some(notifier) = &notifier {
            notifier.stopping();
        }
        events.close();
        // Without a timeout, a client that reads nothing would block the shutdown forever.
        let _ = tokio::time::timeout(LAST_REQUESTS, open.shutdown()).await;
        keeper.save(&handle).await;
        match tokio::time::timeout(LAST_PERIODS, handle.end_periods()).await {
            Ok(Ok(())) => {}
            _ => tracing::warn!("the counts of the last ten minutes could not be stored"),
        }
        Ok(())
    }

    /// Opens the service without a listener: its routes, and its actor, which the caller runs as a task.
    ///
    /// # Errors
    /// An I/O error of kind `InvalidData` if the stored data is invalid.
    pub async fn open(self) -> io::Result<(Router, impl Future<Output = ()> + Send)> {
        let OpenService { app, actor } = self.open_store("http://localhost").await?;
        Ok((routes(Arc::new(app)), actor))
    }

    /// Opens the store. Other services learn the address `url`, unless the settings advertise another one.
    async fn open_store(self, url: &str) -> io::Result<OpenService> {
        let Service { limits, clock, patience, cluster, configured, seed, interval, store, .. } = self;
        let Service { body, bodies, streams, access, reload, telemetry, .. } = self;
        let address: Arc<str> = self.advertise.map_or_else(|| url.into(), Into::into);
        let about = About { since: clock.text(clock.now()), interval, address: address.clone() };
        let switch = Arc::new(OffSwitch::new(self.off_file));
        let coordinator = {
            let (configured, switch) = (configured.clone(), switch.clone());
            Box::new(move |cluster: &Cluster, leads: bool| {
                let configured = configured.load();
                let engine = configured.engine(cluster, leads, seed);
                let limits = Limits { move_timeout: configured.moves.timeout, ..limits };
                Coordinator::new(engine, configured.labels.clone(), limits)
                    .with_admission(configured.admission.clone())
                    .with_modes(configured.modes, switch.is_on())
            })
        };
        // Events are numbered from the start time in microseconds, so the numbers of an earlier run are
        // lower.
        let events = Arc::new(Events::new(clock.now().0 / 1_000, streams));
        let metrics = Arc::new(Metrics::default());
        let store =
            Box::new(ObservedStore::new(store, metrics.clone(), events.clone(), configured.load().modes));
        let ledger = configured.load().ledger.clone();
        let (keeper, telemetry_state) = TelemetryKeeper::read(self.telemetry_file, &clock, ledger).await;
        let opened =
            Handle::open(coordinator, cluster, store, clock.clone(), address.clone(), telemetry_state).await;
        let unreadable = |error: OpenError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let (handle, actor) = opened.map_err(unreadable)?;
        keeper.log(&handle);
        let probes = Probes::new(self.probes, interval, clock.now());
        let snapshots = Snapshots::new(handle.clone(), clock.clone(), &address);
        if let Some(reload) = &reload {
            reload.attach(handle.clone());
        }
        let app = AppState {
            handle,
            snapshots,
            configured,
            switch,
            clock,
            about,
            metrics,
            events,
            access,
            reload,
            telemetry,
            keeper,
            demo: self.demo.then(Board::default),
            probes,
            reporters: Reporters::default(),
            secrets: self.secrets,
            largest: body,
            bodies: Arc::new(Bodies::new(bodies.max(body))),
            patience,
            reading: Mutex::default(),
            description: description().into(),
        };
        Ok(OpenService { app, actor: Box::pin(actor) })
    }
}

/// Service whose store is open.
struct OpenService {
    app: AppState,
    actor: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The listener in the form that the runtime needs.
fn admin_listener(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Reloads the settings on every signal.
async fn reload_on(mut hangups: Signal, reload: Option<Arc<Reload>>, notifier: Option<Arc<ServiceNotifier>>) {
    while hangups.recv().await.is_some() {
        if let Some(notifier) = &notifier {
            notifier.reloading();
        }
        if let Some(reload) = reload.clone() {
            // The result is logged.
            let _ = reload.run().await;
        }
        if let Some(notifier) = &notifier {
            notifier.ready();
        }
    }
}
