//! Bulk transfers: as much as TCP gives for a while, and what arrived of it in every 10 ms.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::clock::Clock;
use crate::train::Transfer;
use crate::transferred::SLOT_NS;

const CHUNK: usize = 128 << 10;
/// How long after its time a transfer may still arrive.
const LATE_NS: u64 = 2_000_000_000;

/// Sends zeros until the time is over; gives the bytes that the system took.
///
/// # Errors
///
/// What the system says; [`io::ErrorKind::TimedOut`] or `WouldBlock` if the peer takes nothing.
pub fn send(mut stream: TcpStream, transfer: &Transfer) -> io::Result<u64> {
    stream.set_write_timeout(Some(Duration::from_nanos(transfer.duration_ns + LATE_NS)))?;
    let zeros = vec![0; CHUNK];
    let clock = Clock::start();
    let mut sent = 0;
    while clock.ns() < transfer.duration_ns {
        sent += stream.write(&zeros)? as u64;
    }
    Ok(sent)
}

/// Takes a transfer in until its sender closes it or its time is over by two seconds; gives the bytes of each 10 ms, by
/// when they were read.
///
/// # Errors
///
/// What the system says.
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
            // Nothing for as long as this is as good as an end.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        };
        let Some(slot) = slots.get_mut((clock.ns() / SLOT_NS) as usize) else { break };
        *slot += read as u64;
    }
    Ok(slots)
}
