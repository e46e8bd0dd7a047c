//! Connections of clients: acceptance, limits and time limits. The routes come from `http`, and `access` decides which
//! connections are authorized. `bodies` limits the memory of the bodies that all connections send.
//!
//! Health, metrics and administration stay available when all connections are in use: on a listener of their own, or on
//! a few reserve connections, which serve nothing else and close after one response.

mod bodies;
mod files;
mod shortage;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
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
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutWriter;
use tokio_rustls::TlsAcceptor;

pub use self::bodies::{Bodies, BodyBytes};
pub use self::files::{ConnectionLimit, raise_file_limit};
use self::shortage::Shortage;
use leeward_access::{Connection, Peer, UnauthenticatedConnections};
use leeward_observability::Metrics;

/// Name of the main listener in metrics and logs.
pub const MAIN: &str = "main";
/// Name of the listener for health, metrics and administration.
pub const ADMIN: &str = "admin";
/// Name of the reserve.
const RESERVE: &str = "reserve";

/// Least number of connections if the settings name none.
const DEFAULT_CONNECTIONS: usize = 512;
/// Number of connections of the listener for health, metrics and administration.
pub const ADMIN_CONNECTIONS: usize = 16;
/// Number of connections beyond the limit of the main listener.
const RESERVE_CONNECTIONS: usize = 8;

/// Limit on the idle time of a new connection and on the time of its first request head.
const FIRST_HEAD: Duration = Duration::from_secs(10);
/// Limit on the time in which a replaced connection closes. A connection whose request is authorized at the same time
/// stays open.
const CLOSING: Duration = Duration::from_millis(100);

/// The server's side of connections of one listener.
#[derive(Clone)]
pub struct Acceptor {
    /// Name of the listener.
    pub listener: &'static str,
    /// Routes of its connections.
    pub routes: Router,
    /// Routes of connections beyond the limit. Without them, such a connection waits until another closes.
    pub reserve: Option<Router>,
    /// Metrics of connections.
    pub metrics: Arc<Metrics>,
    /// Limit on the time of a request head, and on the time of a blocked write.
    pub patience: Duration,
    /// TLS configuration; plain HTTP without it.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
}

/// Connections of a limited number.
struct Pool {
    permits: Arc<Semaphore>,
    connections: usize,
    unauthenticated: UnauthenticatedConnections,
}

impl Pool {
    fn new(connections: usize) -> Pool {
        Pool {
            permits: Arc::new(Semaphore::new(connections)),
            connections,
            unauthenticated: UnauthenticatedConnections::default(),
        }
    }

    /// Raises the number of connections. True if it was lower.
    fn grow(&mut self, connections: usize) -> bool {
        let added = connections.saturating_sub(self.connections);
        self.permits.add_permits(added);
        self.connections += added;
        added > 0
    }

    /// A permit for a new connection, at once or as soon as a connection closes.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.ok()
    }
}

impl Acceptor {
    /// Accepts connections and serves each in its own task. `limit` is the largest number of connections now. It grows
    /// with the cluster, and a smaller one takes effect with the next start.
    pub async fn accept(
        self,
        listener: TcpListener,
        limit: impl Fn() -> usize,
        open: &GracefulShutdown,
    ) -> Infallible {
        let (mut pool, reserve) = (Pool::new(limit()), Pool::new(RESERVE_CONNECTIONS));
        let mut shortage = Shortage::new(self.listener, pool.connections);
        self.metrics.connection_limit(self.listener, pool.connections);
        let on_reserve = self.reserve.clone().map(|routes| Acceptor {
            listener: RESERVE,
            routes,
            reserve: None,
            patience: self.patience.min(FIRST_HEAD),
            ..self.clone()
        });
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // Usually the process has too many open files; some may close soon.
                Err(error) => {
                    shortage.not_accepted(&error);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            if pool.grow(limit()) {
                shortage.limit = pool.connections;
                self.metrics.connection_limit(self.listener, pool.connections);
            }
            let place = match self.place(&pool, &mut shortage).await {
                Some(permit) => Some((&self, &pool, permit)),
                None => self.place_in_reserve(on_reserve.as_ref(), &pool, &reserve, &mut shortage).await,
            };
            // Without a place, the semaphores are closed, which never happens while this function runs.
            let Some((acceptor, pool, permit)) = place else { continue };
            // Responses are small and urgent, so Nagle's algorithm would only delay them.
            let _ = stream.set_nodelay(true);
            let connection = Arc::new(pool.unauthenticated.register());
            tokio::spawn(acceptor.clone().run(stream, peer, connection, open.watcher(), permit));
        }
    }

    /// A permit within the limit: a free one, or that of an unauthenticated connection.
    async fn place(&self, pool: &Pool, shortage: &mut Shortage) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = pool.permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        if !pool.unauthenticated.make_room() {
            return None;
        }
        self.metrics.connection_replaced();
        shortage.replaced();
        timeout(CLOSING, pool.permit()).await.ok().flatten()
    }

    /// A permit of the reserve, or the next one within the limit if there is no reserve.
    async fn place_in_reserve<'a>(
        &'a self,
        on_reserve: Option<&'a Acceptor>,
        pool: &'a Pool,
        reserve: &'a Pool,
        shortage: &mut Shortage,
    ) -> Option<(&'a Acceptor, &'a Pool, OwnedSemaphorePermit)> {
        shortage.exhausted();
        let Some(acceptor) = on_reserve else {
            return Some((self, pool, pool.permit().await?));
        };
        if reserve.permits.available_permits() == 0 {
            reserve.unauthenticated.make_room();
        }
        tokio::select! {
            permit = reserve.permit() => Some((acceptor, reserve, permit?)),
            permit = pool.permit() => Some((self, pool, permit?)),
        }
    }

    /// Serves a connection until it closes.
    async fn run(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        connection: Arc<Connection>,
        watcher: Watcher,
        permit: OwnedSemaphorePermit,
    ) {
        let _open = self.metrics.open_connection(self.listener);
        // A client that does not read blocks a write. The timeouts of head and body are for clients that do not write.
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(self.patience));
        tokio::select! {
            () = self.serve(Box::pin(stream), peer, &connection, watcher) => {}
            () = connection.must_close(self.patience.min(FIRST_HEAD)) => {
                tracing::debug!(peer = %peer.ip(), "connection closed: it has no authorized request");
            }
        }
        drop(permit);
    }

    /// Serves a connection, with TLS if configured.
    async fn serve(
        &self,
        stream: Pin<Box<TimeoutWriter<TcpStream>>>,
        peer: SocketAddr,
        connection: &Arc<Connection>,
        watcher: Watcher,
    ) {
        let Some(tls) = &self.tls else { return self.serve_http(stream, peer, connection, watcher).await };
        // The connection's limit on the first head also covers the TLS handshake.
        match TlsAcceptor::from(tls.load_full()).accept(stream).await {
            Ok(stream) => self.serve_http(stream, peer, connection, watcher).await,
            Err(error) => tracing::debug!(peer = %peer.ip(), %error, "TLS handshake failed"),
        }
    }

    /// Serves HTTP until either side closes the connection.
    async fn serve_http<S>(&self, stream: S, peer: SocketAddr, connection: &Arc<Connection>, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let routes = TowerToHyperService::new(self.routes.clone());
        let connection = connection.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            connection.record_request();
            request.extensions_mut().insert(Peer(peer.ip().to_canonical()));
            request.extensions_mut().insert(connection.clone());
            routes.call(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.patience).keep_alive(self.listener != RESERVE);
        // Errors of a client's connection affect only this client.
        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
    }
}
