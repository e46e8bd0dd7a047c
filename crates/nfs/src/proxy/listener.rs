//! Listeners of exports: which connections are accepted.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use super::session::serve;
use super::shared::Shared;
use crate::event::Event;

/// First port that a process without privileges may use.
const FIRST_OPEN_PORT: u16 = 1024;

/// Time after a connection that could not be accepted, usually because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Listener of an export.
pub struct Listener {
    shared: Arc<Shared>,
    export: usize,
    listener: TcpListener,
}

/// Place of an accepted connection, until it is dropped.
struct Admitted(Arc<Shared>, IpAddr);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.lock_open().leave(self.1);
        self.0.numbers.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Listener {
    /// A listener of a runtime.
    ///
    /// # Errors
    /// An I/O error if the listener cannot be registered.
    pub fn new(shared: Arc<Shared>, export: usize, listener: std::net::TcpListener) -> io::Result<Listener> {
        Ok(Listener { shared, export, listener: TcpListener::from_std(listener)? })
    }

    /// Accepts connections, each with a task of its own.
    pub async fn run(self) -> Infallible {
        loop {
            let (stream, client) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.shared.events.send(Event::NotAccepted(error.to_string()));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            match self.admit(client) {
                Ok(admitted) => {
                    let (shared, export) = (self.shared.clone(), self.export);
                    tokio::spawn(async move {
                        let _admitted = admitted;
                        serve(shared, export, stream, client).await;
                    });
                }
                Err(why) => {
                    self.shared.numbers.refused.fetch_add(1, Ordering::Relaxed);
                    self.shared.events.send(Event::Refused { client, why });
                }
            }
        }
    }

    fn admit(&self, client: SocketAddr) -> Result<Admitted, &'static str> {
        let (client, port) = (client.ip().to_canonical(), client.port());
        if self.shared.allowed.as_ref().is_some_and(|allowed| allowed.find(client).is_none()) {
            return Err("the address is not allowed");
        }
        if self.shared.reserved_clients && port >= FIRST_OPEN_PORT {
            return Err("the port is not a reserved one, below 1024");
        }
        self.shared.lock_open().admit(client, &self.shared.limits)?;
        self.shared.numbers.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Admitted(self.shared.clone(), client))
    }
}
