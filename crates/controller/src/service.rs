//! The service from its settings to its end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use leeward_engine::{Engine, Policies};
use leeward_fabric::{Cluster, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, SettingsError};
use leeward_placement::Explain;
use leeward_prometheus::{Telemetry, poll};
use leeward_records::Clock;
use leeward_service::{Coordinator, Handle, Labels, Limits, NewCluster, OpenError, Promising};
use leeward_store::Store;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Connection, Patient, Strangers};
use crate::http::{About, Board, Bodies, Edge, Peer, description, routes};
use crate::observability::{Events, Metrics, Watched, watch, watch_clock, watch_tokens};
use crate::polling::PolledReports;
use crate::probes::Probes;
use crate::reload::Reload;
use crate::settings::ProbeSettings;

/// How much of its reasons a decision keeps.
const EXPLAIN: Explain = Explain::Top(8);
/// How long requests under way may take to finish once the service is to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(30);

/// How long a new connection may be silent, and its first head may take: who opens one has something to ask.
const FIRST_HEAD: Duration = Duration::from_secs(10);

/// After so many tasks a worker looks after those that other threads woke, above all the store's: who asked for something
/// that is kept by now does not wait until all reports that came meanwhile are read. With tokio's own choice placements
/// beside 10,000 reports a second waited 6 ms at the 99th percentile, with this one 4 to 5.
const OUTSIDE_EVERY: u32 = 8;

/// What is served, and how.
pub struct Service {
    /// How much is kept.
    pub limits: Limits,
    /// What time it is.
    pub clock: Clock,
    /// How long a request may take to arrive: its head from when the last one of its connection was answered, and then
    /// its body. Default 90 s. The first head of a connection has 10 s of these.
    pub patience: Duration,
    /// Bytes of the largest body that is read. Default 16 MiB, a report of 100,000 hosts in one piece.
    pub body: usize,
    /// Bytes of all bodies that are held at once, from when they come until they are answered. Default 256 MiB, sixteen
    /// of the largest. A body of the largest size always has room where there is no other.
    pub bodies: usize,
    /// Streams of events that may be open. Default 64.
    pub streams: usize,
    /// Who may ask, and how often. By default everyone, as often as they like.
    pub access: Arc<Access>,
    /// What TLS is spoken with; HTTP without. It may be another one for each connection.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// Who decides what is promised to workloads. By default `dnc` and `compactor`.
    pub promising: Promising,
    /// What reads settings again.
    pub reload: Option<Arc<Reload>>,
    /// What is asked of Prometheus; by default nothing.
    pub telemetry: Arc<Telemetry>,
    /// The URL that others are told to reach it at; by default that of where it listens.
    pub advertise: Option<String>,
    /// Whether it shows a demo, which somebody puts there.
    pub demo: bool,
    /// How agents are asked to measure.
    pub probes: ProbeSettings,
    /// Connections that may be open. Who opens one more has the place of one on which nobody was let in yet, and where there
    /// is none waits until another is closed. Default 512: most systems let a process have 1,024 files open.
    pub connections: usize,
    cluster: NewCluster,
    make: MakeEngine,
    labels: Labels,
    interval: Nanos,
    store: Box<dyn Store>,
}

/// What makes an engine for a cluster of which nothing is known yet, one that leads or one that does not.
type MakeEngine = Box<dyn Fn(&Cluster, bool) -> Engine + Send>;

/// Why a service ended that nobody told to, or did not begin.
#[derive(Debug)]
pub enum RunError<E> {
    /// The address cannot be listened at.
    Listen(io::Error),
    /// Who was to be told the address did not take it.
    Told(E),
    /// The process or the system is in the way, the engine has stopped, or (of kind `InvalidData`) what is stored cannot be
    /// taken up.
    Broken(io::Error),
}

impl Service {
    /// A service for a cluster of which nothing is known yet, on the machine's clock. `policies` makes them, more than once
    /// if it must be; `labels` are what users call them, settings included.
    pub fn new(
        cluster: NewCluster,
        policies: impl Fn() -> Policies + Send + 'static,
        labels: Labels,
        settings: LedgerSettings,
        seed: u64,
        store: Box<dyn Store>,
    ) -> Result<Service, SettingsError> {
        settings.check()?;
        let interval = settings.interval;
        let make = move |cluster: &Cluster, leads: bool| {
            let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, settings.clone());
            let mut policies = policies();
            // Who follows hears of moves from who leads.
            policies.moves = policies.moves.filter(|_| leads);
            Engine::new(ledger.expect("the settings were checked"), policies, seed, EXPLAIN)
        };
        let (limits, clock, patience) = (Limits::default(), Clock::system(), Duration::from_secs(90));
        Ok(Service {
            limits,
            clock,
            patience,
            connections: 512,
            body: 16 << 20,
            bodies: 256 << 20,
            streams: 64,
            access: Arc::new(Access::new(None, None)),
            tls: None,
            promising: Promising::default(),
            reload: None,
            telemetry: Arc::new(Telemetry::new(None)),
            advertise: None,
            demo: false,
            probes: ProbeSettings::default(),
            cluster,
            make: Box::new(make),
            labels,
            interval,
            store,
        })
    }

    /// Listens at `address` and serves until the process is told to stop (SIGINT, SIGTERM). `listening` is told the
    /// address, with the port that was found where port 0 was asked for; its error ends the service before it begins.
    pub fn run<E>(
        self,
        address: SocketAddr,
        listening: impl FnOnce(SocketAddr) -> Result<(), E>,
    ) -> Result<(), RunError<E>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .global_queue_interval(OUTSIDE_EVERY)
            .build();
        runtime.map_err(RunError::Broken)?.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Broken)?;
            let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Broken)?;
            let again = signal(SignalKind::hangup()).map_err(RunError::Broken)?;
            let reloading = tokio::spawn(reload_on(again, self.reload.clone()));
            let listener = TcpListener::bind(address).await.map_err(RunError::Listen)?;
            listening(listener.local_addr().map_err(RunError::Listen)?).map_err(RunError::Told)?;
            let stop = async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            let served = self.serve(listener, stop).await;
            reloading.abort();
            tracing::info!("stopped");
            served.map_err(RunError::Broken)
        })
    }

    /// Serves until `stop`, then finishes the requests under way.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Service { limits, clock, patience, connections, cluster, make, labels, interval, store, .. } =
            self;
        let Service {
            body,
            bodies,
            streams,
            access,
            tls,
            reload,
            telemetry,
            advertise,
            demo,
            probes,
            promising,
            ..
        } = self;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address: Arc<str> = match advertise {
            Some(url) => url.into(),
            None => format!("{scheme}://{}", listener.local_addr()?).into(),
        };
        let about = About {
            labels: labels.clone(),
            promising: promising.clone(),
            since: clock.text(clock.now()),
            interval,
            address: address.clone(),
        };
        let coordinator = Box::new(move |cluster: &Cluster, leads: bool| {
            Coordinator::new(make(cluster, leads), labels.clone(), limits).with_promising(promising.clone())
        });
        // Events are numbered by the microsecond of the start, so that numbers of an earlier run are lower.
        let events = Arc::new(Events::new(clock.now().0 / 1_000, streams));
        let metrics = Arc::new(Metrics::new());
        let store = Box::new(Watched::new(store, metrics.clone(), events.clone()));
        let opened = Handle::open(coordinator, cluster, store, clock.clone(), address).await;
        let unreadable = |error: OpenError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let (handle, work) = opened.map_err(unreadable)?;
        let mut coordinator = tokio::spawn(work);
        let open = GracefulShutdown::new();
        let watching = watch(handle.clone(), events.clone());
        let polling = {
            let (telemetry, clock) = (telemetry.clone(), clock.clone());
            let mut consumer = PolledReports::new(handle.clone(), metrics.clone());
            async move { poll(&telemetry, &mut consumer, &clock).await }
        };
        let ticking = {
            let clock = clock.clone();
            async move { watch_clock(&clock, interval).await }
        };
        let checking = {
            let (access, handle) = (access.clone(), handle.clone());
            async move { watch_tokens(&access, &handle).await }
        };
        let (description, counted) = (description().into(), metrics.clone());
        let probes = Probes::new(probes, interval, clock.now());
        let edge = Edge {
            handle,
            clock,
            about,
            metrics,
            events: events.clone(),
            access,
            reload,
            telemetry,
            demo: demo.then(Board::default),
            probes,
            largest: body,
            bodies: Arc::new(Bodies::new(bodies.max(body))),
            patience,
            reading: Mutex::default(),
            description,
        };
        let door = Door { routes: routes(edge), metrics: counted, patience, tls };
        let accepting = door.accept(listener, connections, &open);
        tokio::select! {
            never = accepting => match never {},
            never = polling => match never {},
            never = ticking => match never {},
            never = checking => match never {},
            () = stop => {}
            () = watching => return Err(io::Error::other("the engine has stopped")),
            // It holds while there is a handle, so it can only have failed.
            ended = &mut coordinator => return Err(io::Error::other(format!("the engine has stopped: {ended:?}"))),
        }
        tracing::info!("stopping: requests under way are finished");
        events.close();
        // Without an end of the wait, a client that reads nothing would keep the service up for ever.
        let _ = tokio::time::timeout(LAST_REQUESTS, open.shutdown()).await;
        Ok(())
    }
}

/// Reads settings again whenever a signal says so.
async fn reload_on(mut again: Signal, reload: Option<Arc<Reload>>) {
    while again.recv().await.is_some() {
        if let Some(reload) = reload.clone() {
            // What came of it is in the log.
            let _ = tokio::task::spawn_blocking(move || reload.logged()).await;
        }
    }
}

/// What connections come in by.
#[derive(Clone)]
struct Door {
    routes: Router,
    metrics: Arc<Metrics>,
    patience: Duration,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
}

impl Door {
    /// Takes connections in, each served by a task of its own.
    async fn accept(self, listener: TcpListener, connections: usize, open: &GracefulShutdown) -> Infallible {
        let (places, strangers) = (Arc::new(Semaphore::new(connections)), Strangers::default());
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // Most often the process has too many files open; some may be closed soon.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            if places.available_permits() == 0 {
                strangers.make_room();
            }
            let place = places.clone().acquire_owned().await;
            // Answers are small and wanted at once: nothing is gained by waiting for more to send.
            let _ = stream.set_nodelay(true);
            let (door, watcher, connection) = (self.clone(), open.watcher(), Arc::new(strangers.come()));
            tokio::spawn(async move {
                door.metrics.connections.inc();
                let stream = Patient::new(stream, door.patience);
                tokio::select! {
                    () = door.serve(stream, peer, &connection, watcher) => {}
                    () = connection.leaves(door.patience.min(FIRST_HEAD)) => {
                        tracing::debug!(peer = %peer.ip(), "closed: nobody was let in on this connection");
                    }
                }
                door.metrics.connections.dec();
                drop(place);
            });
        }
    }

    /// Serves a connection, behind TLS if that is spoken here.
    async fn serve(
        &self,
        stream: Patient<TcpStream>,
        peer: SocketAddr,
        connection: &Arc<Connection>,
        watcher: Watcher,
    ) {
        let Some(tls) = &self.tls else { return self.speak(stream, peer, connection, watcher).await };
        // A greeting that does not end is a head that does not come.
        match TlsAcceptor::from(tls.load_full()).accept(stream).await {
            Ok(stream) => self.speak(stream, peer, connection, watcher).await,
            Err(error) => tracing::debug!(peer = %peer.ip(), %error, "no TLS came about"),
        }
    }

    /// Speaks HTTP until either side ends it.
    async fn speak<S>(&self, stream: S, peer: SocketAddr, connection: &Arc<Connection>, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let routes = TowerToHyperService::new(self.routes.clone());
        let connection = connection.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            connection.asks();
            request.extensions_mut().insert(Peer(peer.ip().to_canonical()));
            request.extensions_mut().insert(connection.clone());
            routes.call(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.patience);
        // How a client ends its connection is its own affair.
        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
    }
}
