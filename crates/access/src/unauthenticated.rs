//! Connections without an authorized request. At the connection limit, the service closes the oldest unauthorized
//! connection to accept a new one. Silent sockets therefore never block clients, regardless of the number and origin of
//! the sockets. No limit depends on the source address, so a load balancer needs no special rule.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// All unauthorized connections, in order of arrival.
#[derive(Clone, Default)]
pub struct UnauthenticatedConnections(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// Number of connections so far.
    count: u64,
    /// Signal to close, for each connection.
    close: BTreeMap<u64, Arc<Notify>>,
}

/// A connection; it is unauthorized until a request on it is authorized.
pub struct Connection {
    number: u64,
    close: Arc<Notify>,
    has_request: AtomicBool,
    is_authorized: AtomicBool,
    unauthenticated: UnauthenticatedConnections,
}

impl UnauthenticatedConnections {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection.
    pub fn register(&self) -> Connection {
        let mut waiting = self.lock();
        waiting.count += 1;
        let (number, close) = (waiting.count, Arc::new(Notify::new()));
        waiting.close.insert(number, close.clone());
        let (has_request, is_authorized) = (AtomicBool::new(false), AtomicBool::new(false));
        Connection { number, close, has_request, is_authorized, unauthenticated: self.clone() }
    }

    /// Closes the oldest unauthorized connection. Returns false if there is none.
    pub fn make_room(&self) -> bool {
        let oldest = self.lock().close.pop_first();
        oldest.map(|(_, close)| close.notify_one()).is_some()
    }
}

impl Connection {
    /// Records that the head of a request has arrived.
    pub fn record_request(&self) {
        self.has_request.store(true, Ordering::Relaxed);
    }

    /// Marks the connection as authorized.
    pub fn authorize(&self) {
        if !self.is_authorized.swap(true, Ordering::Relaxed) {
            self.unauthenticated.lock().close.remove(&self.number);
        }
    }

    /// Waits until the connection must close: to make room for a new connection, or because no request arrived within
    /// `silence`.
    pub async fn must_close(&self, silence: Duration) {
        if timeout(silence, self.close.notified()).await.is_err() && self.has_request.load(Ordering::Relaxed)
        {
            self.close.notified().await;
        }
        if self.is_authorized.load(Ordering::Relaxed) {
            // A request was authorized at the same time, so another connection closes instead.
            self.unauthenticated.make_room();
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.unauthenticated.lock().close.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if the connection must close by now.
    async fn must_close(connection: &Connection) -> bool {
        timeout(Duration::from_millis(10), connection.must_close(Duration::from_secs(9))).await.is_ok()
    }

    #[tokio::test]
    async fn the_oldest_unauthenticated_connection_is_closed_first() {
        let unauthenticated = UnauthenticatedConnections::default();
        let [known, gone, first, second] = [(); 4].map(|()| unauthenticated.register());
        known.record_request();
        known.authorize();
        first.record_request();
        drop(gone);
        assert!(unauthenticated.make_room());
        assert!(must_close(&first).await, "a request alone does not authorize a connection");
        assert!(!must_close(&known).await && !must_close(&second).await);
        unauthenticated.make_room();
        assert!(must_close(&second).await);
        assert!(!unauthenticated.make_room());
        assert!(!must_close(&known).await);
        let meanwhile = unauthenticated.register();
        unauthenticated.make_room();
        meanwhile.authorize();
        assert!(!must_close(&meanwhile).await, "the connection was authorized in time");
        assert!(unauthenticated.lock().close.is_empty());
    }

    #[tokio::test]
    async fn a_silent_connection_times_out_and_one_with_a_request_stays() {
        let unauthenticated = UnauthenticatedConnections::default();
        let [silent, active] = [(); 2].map(|()| unauthenticated.register());
        active.record_request();
        let short = Duration::from_millis(1);
        assert!(timeout(Duration::from_secs(9), silent.must_close(short)).await.is_ok());
        assert!(timeout(Duration::from_millis(20), active.must_close(short)).await.is_err());
    }
}
