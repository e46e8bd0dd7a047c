//! Sockets of flows, opened inside the namespaces of their hosts.

use std::collections::HashMap;
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
        let (stream, from) = match self.listeners[host].accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(LabError::system("accept")(error)),
        };
        stream.set_nonblocking(true).map_err(LabError::system("accept"))?;
        let to = stream.local_addr().map_err(LabError::system("accept"))?;
        let Some(flow) = self.connecting.remove(&(from, to)) else { return Ok(None) };
        sockopt::set_tcp_nodelay(&stream, true).map_err(failed("TCP_NODELAY"))?;
        Ok(Some((flow, stream)))
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
pub(super) fn send(stream: &TcpStream, zeros: &[u8]) -> Result<usize, LabError> {
    match rustix::net::send(stream, zeros, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(bytes) => Ok(bytes),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(LabError::system("send")(error.into())),
    }
}

/// Receives at most a buffer's bytes and discards them; `None` at the end of the stream.
pub(super) fn receive(stream: &TcpStream, buffer: &mut [u8]) -> Result<Option<usize>, LabError> {
    // With TRUNC, the kernel discards the bytes of a stream without copying them.
    match rustix::net::recv(stream, buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
        Ok((_, 0)) => Ok(None),
        Ok((_, bytes)) => Ok(Some(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Some(0)),
        Err(Errno::CONNRESET) => Ok(None),
        Err(error) => Err(LabError::system("receive")(error.into())),
    }
}
