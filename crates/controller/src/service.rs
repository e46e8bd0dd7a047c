//! The service from its settings to its end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use leeward_engine::{Engine, Policies};
use leeward_fabric::{Cluster, Nanos};
use leeward_ledger::{Ledger, LedgerSettings, SettingsError};
use leeward_placement::Explain;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::desk::{Desk, Labels, Limits};
use crate::http::{About, Edge, description, routes};
use crate::office::{NewCluster, Office};
use crate::store::Store;

/// How much of its reasons a decision keeps.
const EXPLAIN: Explain = Explain::Top(8);
/// How long requests under way may take to finish once the service is to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(30);

/// What is served, and how.
pub struct Service {
    /// How much is kept.
    pub limits: Limits,
    /// What time it is.
    pub clock: Clock,
    /// How long a request may take to arrive: its head from when the last one of its connection was answered, and then
    /// its body. Default 90 s.
    pub patience: Duration,
    /// Connections that may be open; who opens one more waits until another is closed. Default 512: most systems let a
    /// process have 1,024 files open.
    pub connections: usize,
    cluster: NewCluster,
    make: MakeEngine,
    labels: Labels,
    interval: Nanos,
    store: Box<dyn Store>,
}

/// What makes an engine for a cluster of which nothing is known yet.
type MakeEngine = Box<dyn Fn(&Cluster) -> Engine + Send>;

/// Why a service ended that nobody told to, or did not begin.
#[derive(Debug)]
pub enum RunError<E> {
    /// The address cannot be listened at.
    Listen(io::Error),
    /// Who was to be told the address did not take it.
    Told(E),
    /// The process or the system is in the way, or the engine has stopped.
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
        let make = move |cluster: &Cluster| {
            let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, settings.clone());
            Engine::new(ledger.expect("the settings were checked"), policies(), seed, EXPLAIN)
        };
        let (limits, clock, patience) = (Limits::default(), Clock::system(), Duration::from_secs(90));
        Ok(Service {
            limits,
            clock,
            patience,
            connections: 512,
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
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(RunError::Broken)?.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Broken)?;
            let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Broken)?;
            let listener = TcpListener::bind(address).await.map_err(RunError::Listen)?;
            listening(listener.local_addr().map_err(RunError::Listen)?).map_err(RunError::Told)?;
            let stop = async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            self.serve(listener, stop).await.map_err(RunError::Broken)
        })
    }

    /// Serves until `stop`, then finishes the requests under way.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Service { limits, clock, patience, connections, cluster, make, labels, interval, store } = self;
        let about = About {
            labels: labels.clone(),
            since: clock.text(clock.now()),
            interval_s: interval.as_secs_f64(),
        };
        let desk = Box::new(move |cluster: &Cluster| Desk::new(make(cluster), labels.clone(), limits));
        let opened = Office::open(desk, cluster, store, clock.clone()).await;
        let (office, work) = opened.map_err(io::Error::other)?;
        let mut desk = tokio::spawn(work);
        let open = GracefulShutdown::new();
        let routes = routes(Edge { office, clock, about, patience, description: description().into() });
        let accepting = accept(listener, routes, patience, connections, &open);
        tokio::select! {
            never = accepting => match never {},
            () = stop => {}
            // It holds while there is an office, so it can only have failed.
            ended = &mut desk => return Err(io::Error::other(format!("the engine has stopped: {ended:?}"))),
        }
        // Without an end of the wait, a client that reads nothing would keep the service up for ever.
        let _ = tokio::time::timeout(LAST_REQUESTS, open.shutdown()).await;
        Ok(())
    }
}

/// Takes connections in, each served by a task of its own.
async fn accept(
    listener: TcpListener,
    routes: Router,
    patience: Duration,
    connections: usize,
    open: &GracefulShutdown,
) -> Infallible {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    let places = Arc::new(Semaphore::new(connections));
    loop {
        let place = places.clone().acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Most often the process has too many files open; some may be closed soon.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Answers are small and wanted at once: nothing is gained by waiting for more to send.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(routes.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // How a client ends its connection is its own affair.
            let _ = connection.await;
            drop(place);
        });
    }
}
