//! Listeners of exports: which connections are accepted.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use super::connection::Connection;
use super::session::serve;
use super::{Limits, Shared};
use crate::event::Event;
use crate::queue::ConnectionNumber;

/// Time after a connection that could not be accepted, usually because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Listener of an export.
pub struct Listener {
    shared: Arc<Shared>,
    export: usize,
    listener: TcpListener,
}

/// Connections that are open.
#[derive(Default)]
pub struct Open {
    accepted: usize,
    by_client: HashMap<IpAddr, usize>,
    /// Those that have sent a call.
    connections: HashMap<ConnectionNumber, Arc<Connection>>,
}

impl Open {
    /// Counts a connection of a client, unless it is beyond a limit.
    fn admit(&mut self, client: IpAddr, limits: &Limits) -> Result<(), &'static str> {
        if self.accepted >= limits.connections {
            return Err("too many connections");
        }
        let of_client = self.by_client.entry(client).or_default();
        if *of_client >= limits.connections_per_client {
            return Err("too many connections of this client");
        }
        *of_client += 1;
        self.accepted += 1;
        Ok(())
    }

    /// A connection of a client ended.
    fn leave(&mut self, client: IpAddr) {
        self.accepted -= 1;
        if let Some(of_client) = self.by_client.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.by_client.remove(&client);
            }
        }
    }

    /// Adds a connection that has sent a call.
    pub fn add(&mut self, connection: Arc<Connection>) {
        self.connections.insert(connection.number, connection);
    }

    /// Removes a connection that was added.
    pub fn remove(&mut self, number: ConnectionNumber) {
        self.connections.remove(&number);
    }

    /// Connections that have sent a call.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.connections.values().cloned().collect()
    }
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
            match self.admit(client.ip().to_canonical()) {
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

    fn admit(&self, client: IpAddr) -> Result<Admitted, &'static str> {
        if self.shared.allowed.as_ref().is_some_and(|allowed| allowed.find(client).is_none()) {
            return Err("the address is not allowed");
        }
        self.shared.lock_open().admit(client, &self.shared.limits)?;
        self.shared.numbers.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Admitted(self.shared.clone(), client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_all_and_by_client() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let mut open = Open::default();
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|client| client.parse::<IpAddr>().unwrap());
        assert_eq!([one, one, two].map(|client| open.admit(client, &limits)), [Ok(()); 3]);
        assert_eq!(open.admit(two, &limits), Err("too many connections"));
        open.leave(two);
        assert_eq!(open.admit(one, &limits), Err("too many connections of this client"));
        open.leave(one);
        open.leave(one);
        assert!(open.by_client.is_empty() && open.accepted == 0);
        assert_eq!([one, one].map(|client| open.admit(client, &limits)), [Ok(()); 2]);
    }
}
