//! The service from its settings to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use leeward_engine::Engine;
use leeward_fabric::{Cluster, Fabric};
use leeward_ledger::{Ledger, LedgerSettings, SettingsError};
use leeward_placement::replicas::ReplicaRequest;
use leeward_placement::{Explain, Policy};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::desk::{Desk, Limits};
use crate::http::{About, Edge, routes};
use crate::task::Office;

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
    engine: Engine,
    policy: String,
}

impl Service {
    /// A service for a cluster of which nothing is known yet, on the machine's clock. `label` is what users call the
    /// policy, settings included.
    pub fn new(
        cluster: &Cluster,
        policy: Box<dyn Policy<ReplicaRequest>>,
        label: &str,
        settings: LedgerSettings,
        seed: u64,
    ) -> Result<Service, SettingsError> {
        let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, settings)?;
        let engine = Engine::new(ledger, policy, seed, EXPLAIN);
        Ok(Service { limits: Limits::default(), clock: Clock::system(), engine, policy: label.to_owned() })
    }

    /// Listens at `address` and serves until the process is told to stop (SIGINT, SIGTERM). `listening` is told the
    /// address, with the port that was found where port 0 was asked for.
    pub fn run(self, address: SocketAddr, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let (mut interrupt, mut terminate) =
                (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
            let listener = TcpListener::bind(address).await?;
            listening(listener.local_addr()?);
            let stop = async move {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            self.serve(listener, stop).await
        })
    }

    /// Serves until `stop`, then finishes the requests under way.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let Service { limits, clock, engine, policy } = self;
        let fabric: Arc<Fabric> = engine.ledger().fabric().clone();
        let about = About { policy, since: clock.text(clock.now()) };
        let (office, work) = Office::open(Desk::new(engine, limits), clock.clone());
        let mut desk = tokio::spawn(work);
        let (stopping, stopped) = oneshot::channel();
        // Answers are small and wanted at once: nothing is gained by waiting for more to send.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let server = axum::serve(listener, routes(Edge { office, fabric, clock, about }));
        let server = server.with_graceful_shutdown(async {
            stop.await;
            let _ = stopping.send(());
        });
        let patience = async {
            // Without an end of the wait, a client that sends half a request would keep the service up for ever.
            match stopped.await {
                Ok(()) => tokio::time::sleep(LAST_REQUESTS).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            served = server => served,
            () = patience => Ok(()),
            // It holds while there is an office, so it can only have failed.
            ended = &mut desk => Err(io::Error::other(format!("the engine has stopped: {ended:?}"))),
        }
    }
}
