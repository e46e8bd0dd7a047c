//! Connections to the server, from an ordinary or from a reserved port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Reserved ports that no well-known program uses: those of the clients of NFS.
const RESERVED: std::ops::RangeInclusive<u16> = 665..=1023;

/// Time without a sign of life after which a connection is checked, and the time between further checks.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Longest time for which a client takes no bytes, or acknowledges none. Its connection then ends.
const CLIENT_PATIENCE: Duration = Duration::from_secs(120);

/// Ports from which connections to the server come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// Any port.
    #[default]
    Any,
    /// A port below 1024, which many servers require (export option `secure` of Linux). The process needs the capability
    /// CAP_NET_BIND_SERVICE.
    Reserved,
}

/// The reserved ports, beginning with another one each time.
fn reserved_ports() -> impl Iterator<Item = u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (first, last) = (*RESERVED.start(), *RESERVED.end());
    let count = last - first + 1;
    let skipped = NEXT.fetch_add(1, Ordering::Relaxed) % count;
    (0..count).map(move |at| last - (skipped + at) % count)
}

fn any_address(to: SocketAddr, port: u16) -> SocketAddr {
    let address = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(address, port)
}

/// True if another port may work: this one is in use, or was in use a moment ago.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}

fn no_port() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "all reserved ports are in use")
}

/// An error of binding to a reserved port, with the remedy if the process may not.
fn bind_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a reserved port requires root or the capability CAP_NET_BIND_SERVICE",
        ),
        _ => error,
    }
}

/// Connects within a time, and waits meanwhile.
///
/// # Errors
/// An I/O error if the server does not accept in time, or if no reserved port is free or allowed.
pub fn connect_blocking(
    to: SocketAddr,
    source: Source,
    patience: Duration,
) -> io::Result<std::net::TcpStream> {
    if source == Source::Any {
        return std::net::TcpStream::connect_timeout(&to, patience);
    }
    for port in reserved_ports() {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        // A port of a connection that ended a moment ago may lead to another server.
        socket.set_reuse_address(true)?;
        match socket.bind(&any_address(to, port).into()) {
            Err(error) if is_taken(&error) => continue,
            bound => bound.map_err(bind_error)?,
        }
        match socket.connect_timeout(&to.into(), patience) {
            Err(error) if is_taken(&error) => {}
            connected => return connected.map(|()| socket.into()),
        }
    }
    Err(no_port())
}

/// Connects within a time.
///
/// # Errors
/// As [`connect_blocking`].
pub async fn connect(to: SocketAddr, source: Source, patience: Duration) -> io::Result<TcpStream> {
    let connecting = async {
        if source == Source::Any {
            return TcpStream::connect(to).await;
        }
        for port in reserved_ports() {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            match socket.bind(any_address(to, port)) {
                Err(error) if is_taken(&error) => continue,
                bound => bound.map_err(bind_error)?,
            }
            match socket.connect(to).await {
                Err(error) if is_taken(&error) => {}
                connected => return connected,
            }
        }
        Err(no_port())
    };
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("timeout: no connection in {patience:?}"));
    timeout(patience, connecting).await.map_err(|_| late())?
}

/// Sets a connection to a server up: small messages leave at once, and a peer that went away without a word is found.
///
/// # Errors
/// An I/O error of the system.
pub fn prepare_server(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Sets a connection of a client up. In addition, a client that takes no bytes is disconnected after a time; a server
/// may stand still for longer.
///
/// # Errors
/// As [`prepare_server`].
pub fn prepare_client(stream: &TcpStream) -> io::Result<()> {
    prepare_server(stream)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(CLIENT_PATIENCE))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn each_search_sees_every_reserved_port_once() {
        for _ in 0..3 {
            let ports: Vec<u16> = reserved_ports().collect();
            let different: BTreeSet<u16> = ports.iter().copied().collect();
            assert_eq!((ports.len(), different), (RESERVED.count(), RESERVED.collect()));
        }
    }

    #[test]
    fn a_connection_from_a_reserved_port_has_one_or_says_what_it_requires() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        match connect_blocking(to, Source::Reserved, Duration::from_secs(5)) {
            Ok(stream) => assert!(RESERVED.contains(&stream.local_addr().unwrap().port())),
            Err(error) => assert!(error.to_string().contains("CAP_NET_BIND_SERVICE"), "{error}"),
        }
        let stream = connect_blocking(to, Source::Any, Duration::from_secs(5)).unwrap();
        assert!(stream.local_addr().unwrap().port() > 1023);
    }
}
