//! TCP connections whose packets have a DSCP. Reports then pass the queues of a busy network, as Sinbad section 8 asks:
//! lost and late reports make links count as full.
//!
//! The HTTP client opens plain sockets. This connector replaces its sockets, and leaves HTTP and TLS to it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use leeward_fabric::Dscp;
use socket2::{Domain, Protocol, Socket, Type};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout};

/// Shortest timeout of a connection to one of several addresses.
const SHORTEST: Duration = Duration::from_millis(10);

/// Connector of marked sockets.
#[derive(Debug)]
pub(crate) struct Marked(pub Dscp);

/// Opens a connection. Its first packet is marked too.
fn connect(address: SocketAddr, dscp: Dscp, timeout: Option<Duration>) -> io::Result<TcpStream> {
    let class = u32::from(dscp.traffic_class());
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    match address {
        SocketAddr::V4(_) => socket.set_tos_v4(class)?,
        SocketAddr::V6(_) => socket.set_tclass_v6(class)?,
    }
    socket.set_tcp_nodelay(true)?;
    match timeout {
        Some(timeout) => socket.connect_timeout(&address.into(), timeout)?,
        None => socket.connect(&address.into())?,
    }
    Ok(socket.into())
}

/// The client's error for an error of a socket: a read or write that takes too long would block.
fn error(error: io::Error, timeout: Timeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout),
        _ => Error::Io(error),
    }
}

/// Time until a timeout, at least one nanosecond: sockets have no timeout of zero. `None` without a timeout.
fn left(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|left| (*left).max(Duration::from_nanos(1)))
}

impl Connector<()> for Marked {
    type Out = MarkedTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<MarkedTransport>, Error> {
        // Each address gets an even share of the time, so that the last one is tried too.
        let addresses = details.addrs.len().max(1) as u32;
        let timeout = left(details.timeout).map(|left| (left / addresses).max(SHORTEST));
        let mut failure = Error::HostNotFound;
        for &address in &details.addrs {
            match connect(address, self.0, timeout) {
                Ok(stream) => {
                    let buffers = LazyBuffers::new(
                        details.config.input_buffer_size(),
                        details.config.output_buffer_size(),
                    );
                    return Ok(Some(MarkedTransport { stream, buffers }));
                }
                Err(why) => failure = error(why, Timeout::Connect),
            }
        }
        Err(failure)
    }
}

/// A marked connection.
pub(crate) struct MarkedTransport {
    stream: TcpStream,
    buffers: LazyBuffers,
}

impl fmt::Debug for MarkedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarkedTransport").field("peer", &self.stream.peer_addr().ok()).finish()
    }
}

impl Transport for MarkedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(left(timeout))?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output).map_err(|why| error(why, timeout.reason))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(left(timeout))?;
        let input = self.buffers.input_append_buf();
        let count = self.stream.read(input).map_err(|why| error(why, timeout.reason))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// True if the connection has neither ended nor sent anything without a request.
    fn is_open(&mut self) -> bool {
        let probe = |stream: &TcpStream| {
            stream.set_nonblocking(true)?;
            let peeked = stream.peek(&mut [0]);
            stream.set_nonblocking(false)?;
            peeked
        };
        probe(&self.stream).is_err_and(|why| why.kind() == ErrorKind::WouldBlock)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::SockRef;

    use super::*;

    #[test]
    fn connections_over_both_ip_versions_are_marked() {
        let dscp: Dscp = "cs6".parse().expect("a code point");
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(address) {
                Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                    println!("skipped: this machine has no {address}");
                    continue;
                }
                listener => listener.expect("a port"),
            };
            let address = listener.local_addr().expect("an address");
            let stream = connect(address, dscp, Some(Duration::from_secs(5))).expect("a connection");
            let socket = SockRef::from(&stream);
            let class = if address.is_ipv4() { socket.tos_v4() } else { socket.tclass_v6() };
            assert_eq!(class.expect("the mark of the socket"), 48 << 2, "{address}");
        }
    }
}
