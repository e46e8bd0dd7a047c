//! Connections that are open, in all and by client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::Limits;
use super::connection::Connection;
use crate::queue::ConnectionNumber;

/// Connections that are open.
#[derive(Default)]
pub struct Open {
    accepted: usize,
    /// Numbers by client; see [`client_of`].
    by_client: HashMap<IpAddr, usize>,
    /// Those that have sent a call.
    connections: HashMap<ConnectionNumber, Arc<Connection>>,
}

impl Open {
    /// Counts a connection of a client, unless it is beyond a limit.
    pub fn admit(&mut self, client: IpAddr, limits: &Limits) -> Result<(), &'static str> {
        if self.accepted >= limits.connections {
            return Err("too many connections");
        }
        let of_client = self.by_client.entry(client_of(client)).or_default();
        if *of_client >= limits.connections_per_client {
            return Err("too many connections of this client");
        }
        *of_client += 1;
        self.accepted += 1;
        Ok(())
    }

    /// A connection of a client ended.
    pub fn leave(&mut self, client: IpAddr) {
        self.accepted -= 1;
        let client = client_of(client);
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

/// Client that an address counts for: with IPv6, a machine has all addresses of a network of 64 bits.
fn client_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
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

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_client() {
        let limits = Limits { connections_per_client: 2, ..Limits::default() };
        let mut open = Open::default();
        let mut admit = |client: &str| open.admit(client.parse().unwrap(), &limits);
        assert_eq!(["2001:db8::1", "2001:db8::2"].map(&mut admit), [Ok(()); 2]);
        assert_eq!(admit("2001:db8::ffff:3"), Err("too many connections of this client"));
        assert_eq!(["2001:db8:0:1::3", "10.0.0.1", "10.0.0.2"].map(&mut admit), [Ok(()); 3]);
        ["2001:db8::7", "2001:db8::8"].iter().for_each(|client| open.leave(client.parse().unwrap()));
        assert_eq!(open.admit("2001:db8::9".parse().unwrap(), &limits), Ok(()));
    }
}
