//! Connections without an authorized request. At the connection limit, the oldest of them is closed for a new one. So
//! silent sockets never block clients, regardless of their number and origin. A load balancer, as the source of all
//! connections behind it, needs no special rule.

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
    came: u64,
    /// Signal for each connection that it must close.
    leave: BTreeMap<u64, Arc<Notify>>,
}

/// A connection; it is unauthorized until a request on it is authorized.
pub struct Connection {
    number: u64,
    leave: Arc<Notify>,
    asked: AtomicBool,
    is_known: AtomicBool,
    unauthenticated: UnauthenticatedConnections,
}

impl UnauthenticatedConnections {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection.
    pub fn come(&self) -> Connection {
        let mut waiting = self.lock();
        waiting.came += 1;
        let (number, leave) = (waiting.came, Arc::new(Notify::new()));
        waiting.leave.insert(number, leave.clone());
        let (asked, is_known) = (AtomicBool::new(false), AtomicBool::new(false));
        Connection { number, leave, asked, is_known, unauthenticated: self.clone() }
    }

    /// Closes the oldest unauthorized connection, if there is one.
    pub fn make_room(&self) {
        if let Some((_, leave)) = self.lock().leave.pop_first() {
            leave.notify_one();
        }
    }
}

impl Connection {
    /// Records that the head of a request has arrived.
    pub fn asks(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Marks the connection as authorized.
    pub fn let_in(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.unauthenticated.lock().leave.remove(&self.number);
        }
    }

    /// Waits until the connection must close: for a new one, or because no request arrived within `silence`.
    pub async fn leaves(&self, silence: Duration) {
        if timeout(silence, self.leave.notified()).await.is_err() && self.asked.load(Ordering::Relaxed) {
            self.leave.notified().await;
        }
        if self.is_known.load(Ordering::Relaxed) {
            // A request was authorized at the same moment, so another connection closes instead.
            self.unauthenticated.make_room();
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.unauthenticated.lock().leave.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if the connection must close by now.
    async fn leaves(connection: &Connection) -> bool {
        timeout(Duration::from_millis(10), connection.leaves(Duration::from_secs(9))).await.is_ok()
    }

    #[tokio::test]
    async fn the_oldest_unauthenticated_connection_is_closed_first() {
        let unauthenticated = UnauthenticatedConnections::default();
        let [known, gone, first, second] = [(); 4].map(|()| unauthenticated.come());
        known.asks();
        known.let_in();
        first.asks();
        drop(gone);
        unauthenticated.make_room();
        assert!(leaves(&first).await, "to ask is not to be let in");
        assert!(!leaves(&known).await && !leaves(&second).await);
        unauthenticated.make_room();
        assert!(leaves(&second).await);
        unauthenticated.make_room();
        assert!(!leaves(&known).await);
        let meanwhile = unauthenticated.come();
        unauthenticated.make_room();
        meanwhile.let_in();
        assert!(!leaves(&meanwhile).await, "the connection was authenticated before");
        assert!(unauthenticated.lock().leave.is_empty());
    }

    #[tokio::test]
    async fn a_silent_connection_times_out_and_one_with_a_request_stays() {
        let unauthenticated = UnauthenticatedConnections::default();
        let [silent, asked] = [(); 2].map(|()| unauthenticated.come());
        asked.asks();
        let in_no_time = Duration::from_millis(1);
        assert!(timeout(Duration::from_secs(9), silent.leaves(in_no_time)).await.is_ok());
        assert!(timeout(Duration::from_millis(20), asked.leaves(in_no_time)).await.is_err());
    }
}
