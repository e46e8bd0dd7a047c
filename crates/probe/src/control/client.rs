//! Control client: sends requests to listening hosts.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::frame;
use super::message::{Reply, Request, VERSION};
use crate::error::ProbeError;
use crate::sockets::clock::Clock;

/// Default control port.
pub const DEFAULT_PORT: u16 = 7601;
/// Timeout for a connection, and for a reply that needs no measurement.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Number of pings; the shortest round trip counts.
const PINGS: usize = 5;

/// Shared secret of a network's hosts: only these hosts may request measurements.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Option<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Secret(..)" } else { "Secret(none)" })
    }
}

/// Resolves `HOST` or `HOST:PORT`, with [`DEFAULT_PORT`] by default.
fn resolve(host: &str) -> Result<Vec<SocketAddr>, ProbeError> {
    // An IPv6 address contains colons, so it needs brackets before a port.
    let bare = host.parse::<std::net::Ipv6Addr>().is_ok();
    let addresses = if !bare && host.contains(':') {
        host.to_socket_addrs()
    } else {
        (host, DEFAULT_PORT).to_socket_addrs()
    };
    let addresses: Vec<_> = addresses.map_err(|error| ProbeError::system(host, &error))?.collect();
    if addresses.is_empty() {
        return Err(ProbeError::System { what: host.to_owned(), message: "no address".to_owned() });
    }
    Ok(addresses)
}

/// Connects to a host.
pub(super) fn connect(host: &str) -> Result<TcpStream, ProbeError> {
    let mut last_error = None;
    for address in resolve(host)? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                let set = stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
                set.map_err(|error| ProbeError::system(host, &error))?;
                return Ok(stream);
            }
            Err(error) => last_error = Some(ProbeError::system(host, &error)),
        }
    }
    Err(last_error.unwrap_or_else(|| ProbeError::Nothing(format!("{host}: no address"))))
}

/// Connection to a listening host after the greeting.
pub struct Peer {
    name: String,
    stream: TcpStream,
}

impl Peer {
    /// Connects to a host and greets it.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::System`] if the host is unreachable, [`ProbeError::Refused`] if the secret differs, and
    /// [`ProbeError::Protocol`] if the host does not speak this protocol.
    pub fn greet(host: &str, secret: &Secret) -> Result<Peer, ProbeError> {
        let mut peer = Peer { name: host.to_owned(), stream: connect(host)? };
        let hello = Request::Hello { version: VERSION, secret: secret.0.clone() };
        match peer.request(&hello, Duration::ZERO)? {
            Reply::Hello { version: VERSION } => Ok(peer),
            Reply::Hello { version } => {
                let message = format!("protocol version {version}, expected {VERSION}");
                Err(ProbeError::Protocol { peer: peer.name, message })
            }
            other => Err(peer.unexpected(&other)),
        }
    }

    /// Address of the host and the port in use.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn address(&self) -> Result<SocketAddr, ProbeError> {
        self.stream.peer_addr().map_err(|error| ProbeError::system(&self.name, &error))
    }

    /// Sends a request and waits for the reply, for at most `duration` plus [a fixed timeout](TIMEOUT).
    ///
    /// # Errors
    ///
    /// Returns the system's error or the host's refusal.
    pub fn request(&mut self, request: &Request, duration: Duration) -> Result<Reply, ProbeError> {
        let probe_error = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => {
                ProbeError::Protocol { peer: self.name.clone(), message: error.to_string() }
            }
            _ => ProbeError::system(&self.name, &error),
        };
        self.stream.set_read_timeout(Some(duration + TIMEOUT)).map_err(probe_error)?;
        frame::write(&mut self.stream, request).map_err(probe_error)?;
        match frame::read(&mut self.stream).map_err(probe_error)? {
            Reply::Busy {} => Err(ProbeError::Busy { peer: self.name.clone() }),
            Reply::Refused { message } => Err(ProbeError::refused(&self.name, &message)),
            reply => Ok(reply),
        }
    }

    /// Shortest of several round-trip times in nanoseconds, including the host's time to reply.
    ///
    /// # Errors
    ///
    /// Fails as [`request`](Self::request) does.
    pub fn rtt_ns(&mut self) -> Result<u64, ProbeError> {
        let mut shortest = u64::MAX;
        for _ in 0..PINGS {
            let clock = Clock::start();
            match self.request(&Request::Ping {}, Duration::ZERO)? {
                Reply::Pong {} => shortest = shortest.min(clock.ns()),
                other => return Err(self.unexpected(&other)),
            }
        }
        Ok(shortest)
    }

    /// Error for a reply that does not match the request.
    pub(super) fn unexpected(&self, reply: &Reply) -> ProbeError {
        let text = serde_json::to_string(reply).unwrap_or_default();
        let text: String = text.chars().take(60).collect();
        let message = format!("unexpected reply: {text}");
        ProbeError::Protocol { peer: self.name.clone(), message }
    }
}
