//! Bulk transfers over TCP: as many bytes as possible for some time, and the bytes received in every 10 ms.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};

use super::clock::Clock;
use crate::train::{Congestion, Transfer};
use crate::transfer_report::SLOT_NS;

const CHUNK: usize = 128 << 10;
/// Time after the end of a transfer during which its data may still arrive.
const LATE_NS: u64 = 2_000_000_000;

/// Sends zeros for the transfer's duration and returns the number of bytes that the system accepted.
///
/// # Errors
///
/// Returns the system's error; [`io::ErrorKind::TimedOut`] or `WouldBlock` if the peer accepts nothing.
pub fn send(mut stream: TcpStream, transfer: &Transfer) -> io::Result<u64> {
    if let Some(congestion) = transfer.congestion {
        set_congestion(&stream, congestion)?;
    }
    stream.set_write_timeout(Some(Duration::from_nanos(transfer.duration_ns + LATE_NS)))?;
    let zeros = vec![0; CHUNK];
    let clock = Clock::start();
    let mut sent = 0;
    while clock.ns() < transfer.duration_ns {
        sent += stream.write(&zeros)? as u64;
    }
    Ok(sent)
}

/// Sets the congestion control of a connection.
fn set_congestion(stream: &TcpStream, congestion: Congestion) -> io::Result<()> {
    let name = OsString::from(congestion.name());
    setsockopt(stream, sockopt::TcpCongestion, &name).map_err(|error| {
        let message = match error {
            Errno::EPERM => "not allowed; add it to the sysctl net.ipv4.tcp_allowed_congestion_control",
            Errno::ENOENT => "unknown; load its kernel module",
            other => other.desc(),
        };
        io::Error::new(
            io::Error::from(error).kind(),
            format!("congestion control {}: {message}", congestion.name()),
        )
    })
}

/// Receives a transfer until its sender closes the connection, or until two seconds after the end of the transfer.
/// Returns the number of bytes read in every 10 ms.
///
/// # Errors
///
/// Returns the system's error.
pub fn receive(mut stream: TcpStream, transfer: &Transfer, clock: &Clock) -> io::Result<Vec<u64>> {
    let most_ns = transfer.duration_ns + LATE_NS;
    stream.set_read_timeout(Some(Duration::from_nanos(LATE_NS)))?;
    let mut slots = vec![0; most_ns.div_ceil(SLOT_NS) as usize];
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Silence of this length counts as the end.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        };
        let Some(slot) = slots.get_mut((clock.ns() / SLOT_NS) as usize) else { break };
        *slot += read as u64;
    }
    Ok(slots)
}
