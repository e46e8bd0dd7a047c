//! Sockets of flows, opened inside the namespaces of their hosts.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use leeward_packets::workload::Place;
use nix::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::error::LabError;
use crate::frame::Tuple;
use crate::inside::Inside;
use crate::names::{Address, LabName};

/// Port on which every host accepts flows.
const PORT: u16 = 5001;
/// Connections that may wait to be accepted.
const WAITING: i32 = 4096;

/// Counters of the kernel for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counters {
    pub(super) segments: u64,
    pub(super) retransmitted: u64,
    pub(super) acknowledged: u64,
}

/// Sockets of a lab's hosts: a listener for each, and connections that wait for their other end.
pub(super) struct Sockets<'a> {
    name: &'a LabName,
    control: &'a str,
    inside: Inside,
    /// Listeners, by host of the workload.
    pub(super) listeners: Vec<TcpListener>,
    /// Flows that have connected, by their ends. A host may use one port for connections to several others.
    connecting: HashMap<(SocketAddr, SocketAddr), u32>,
}

impl<'a> Sockets<'a> {
    /// Opens a listener on every host.
    pub(super) fn new(
        name: &'a LabName,
        places: &[Place],
        control: &'a str,
    ) -> Result<Sockets<'a>, LabError> {
        let mut sockets = Sockets {
            name,
            control,
            inside: Inside::new()?,
            listeners: Vec::new(),
            connecting: HashMap::new(),
        };
        for &place in places {
            sockets.enter(place)?;
            let socket = sockets.socket()?;
            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
            rustix::net::bind(&socket, &any).map_err(failed("listen on a host"))?;
            rustix::net::listen(&socket, WAITING).map_err(failed("listen on a host"))?;
            sockets.listeners.push(TcpListener::from(socket));
        }
        Ok(sockets)
    }

    fn enter(&self, place: Place) -> Result<(), LabError> {
        self.inside.enter(&self.name.namespace(&place.to_string()))
    }

    fn socket(&self) -> Result<rustix::fd::OwnedFd, LabError> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .map_err(failed("socket"))?;
        sockopt::set_tcp_congestion(&socket, self.control).map_err(|error| LabError::Unsupported {
            field: "tcp.control",
            problem: format!("`{}`: this kernel has no such congestion control ({error})", self.control),
        })?;
        sockopt::set_tcp_nodelay(&socket, true).map_err(failed("TCP_NODELAY"))?;
        Ok(socket)
    }

    /// Begins to connect a flow.
    pub(super) fn connect(
        &mut self,
        flow: u32,
        source: Place,
        destination: Place,
    ) -> Result<(TcpStream, Tuple), LabError> {
        self.enter(source)?;
        let socket = self.socket()?;
        let to = SocketAddrV4::new(Address(destination).ip(), PORT);
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(failed("connect")(error)),
        }
        let stream = TcpStream::from(socket);
        let local = stream.local_addr().map_err(LabError::system("connect"))?;
        self.connecting.insert((local, SocketAddr::V4(to)), flow);
        let ip = Address(source).ip();
        let tuple = Tuple { source: (ip, local.port()), destination: (Address(destination).ip(), PORT) };
        Ok((stream, tuple))
    }

    /// Accepts a connection of a host; returns its flow, or `None` if none waits.
    pub(super) fn accept(&mut self, host: usize) -> Result<Option<(u32, TcpStream)>, LabError> {
        accept(&self.listeners[host], &mut self.connecting).map_err(LabError::system("accept"))
    }
}

/// Accepts the connection of a flow. Connections of no flow, and those that have ended before, are closed.
fn accept(
    listener: &TcpListener,
    connecting: &mut HashMap<(SocketAddr, SocketAddr), u32>,
) -> io::Result<Option<(u32, TcpStream)>> {
    loop {
        let (stream, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        let to = stream.local_addr()?;
        if let Some(flow) = connecting.remove(&(from, to)) {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            return Ok(Some((flow, stream)));
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> LabError {
    move |error| LabError::system(what)(error.into())
}

/// Counters of a connection; zeros if the kernel has none.
#[allow(unsafe_code, reason = "no library that the project uses reads TCP_INFO")]
pub(super) fn counters(stream: &TcpStream) -> Counters {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, and the socket is open as long as the stream lives.
    let result = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut length)
    };
    if result != 0 {
        return Counters::default();
    }
    // SAFETY: the structure holds integers only, and zeros are valid for what the kernel did not write.
    let info = unsafe { info.assume_init() };
    Counters {
        segments: u64::from(info.tcpi_data_segs_out),
        retransmitted: u64::from(info.tcpi_total_retrans),
        acknowledged: info.tcpi_bytes_acked,
    }
}

/// Makes the close of a connection discard what its socket has not sent. Otherwise the kernel tries for minutes to send
/// it, also after the host is removed.
pub(super) fn discard_at_close(stream: &TcpStream) {
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Sends zeros; returns the number of bytes that the socket took, 0 if it is full.
pub(super) fn send(stream: &TcpStream, zeros: &[u8]) -> io::Result<usize> {
    match rustix::net::send(stream, zeros, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(bytes) => Ok(bytes),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Receives at most a buffer's bytes and discards them; returns their number, 0 if none have arrived. The end of the
/// stream is an error, because flows are closed on both sides at once.
pub(super) fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    // With TRUNC, the kernel discards the bytes of a stream without copying them.
    match rustix::net::recv(stream, buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
        Ok((_, 0)) => Err(closed()),
        Ok((_, bytes)) => Ok(bytes),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Reason why a connection has ended, of which the kernel reported an error or the end.
pub(super) fn end_of(stream: &TcpStream) -> io::Error {
    match stream.take_error() {
        Ok(Some(error)) | Err(error) => error,
        Ok(None) => closed(),
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed before the flow ended")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// A connection: its client and its server.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        (client, listener.accept().expect("a connection").0)
    }

    /// Waits until the kernel reports that a connection has ended.
    fn wait_for_end(stream: &TcpStream) {
        let wait = Timespec { tv_sec: 10, tv_nsec: 0 };
        poll(&mut [PollFd::new(stream, PollFlags::empty())], Some(&wait)).expect("a socket");
    }

    /// A client whose connection the server has reset, because the server did not read all bytes.
    fn reset() -> TcpStream {
        let (mut client, server) = pair();
        client.write_all(b"unread").expect("it is open");
        server.peek(&mut [0]).expect("bytes arrive");
        drop(server);
        wait_for_end(&client);
        client
    }

    #[test]
    fn bytes_are_counted_and_the_end_of_a_stream_is_an_error() {
        let (mut client, server) = pair();
        assert_eq!(receive(&server, &mut [0; 100]).expect("it is open"), 0);
        client.write_all(&[0; 30]).expect("it is open");
        server.peek(&mut [0]).expect("bytes arrive");
        assert_eq!(receive(&server, &mut [0; 100]).expect("it is open"), 30);
        drop(client);
        server.peek(&mut [0]).expect("the end arrives");
        let error = receive(&server, &mut [0; 100]).expect_err("it has ended");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_reset_is_an_error_of_both_directions() {
        let errors = [
            receive(&reset(), &mut [0; 100]).expect_err("it is reset"),
            send(&reset(), &[0; 100]).expect_err("it is reset"),
            end_of(&reset()),
        ];
        for error in errors {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }

    #[test]
    fn a_connection_of_no_flow_does_not_hide_the_next_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let mut connecting = HashMap::new();
        assert!(accept(&listener, &mut connecting).expect("a listener").is_none());
        let address = listener.local_addr().expect("an address");
        let connect = || TcpStream::connect(address).expect("it listens");
        let (other, client) = (connect(), connect());
        connecting.insert((client.local_addr().expect("an address"), address), 7);
        let (flow, _stream) = accept(&listener, &mut connecting).expect("a listener").expect("a flow");
        assert_eq!(flow, 7);
        assert!(accept(&listener, &mut connecting).expect("a listener").is_none());
        wait_for_end(&other);
        assert_eq!(receive(&other, &mut [0]).expect_err("closed").kind(), io::ErrorKind::UnexpectedEof);
    }
}
