//! Calls that this process makes itself, one after another over a connection: to find a server, and to open a file there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{getegid, geteuid};

use crate::outgoing::{Source, connect_blocking};
use crate::rpc::{Credential, HeaderError, MarkingError, Records, call, results};

/// Largest reply to such a call, in bytes.
const LARGEST_REPLY: usize = 64 << 10;

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed, or no answer came in time.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The answer is no sequence of records.
    #[error("{0}")]
    Marking(#[from] MarkingError),
    /// The answer reports a failure, or answers another call.
    #[error("{0}")]
    Header(#[from] HeaderError),
}

/// Credential of the user that runs this process. `machine` is the name of this machine.
pub fn own_credential(machine: &str) -> Credential<'_> {
    Credential::System { machine, user: geteuid().as_raw(), group: getegid().as_raw() }
}

/// A connection whose calls wait for their replies.
#[derive(Debug)]
pub struct Caller<'a> {
    stream: TcpStream,
    records: Records,
    machine: &'a str,
    patience: Duration,
    xid: u32,
}

impl<'a> Caller<'a> {
    /// Connects to a server. `machine` is the name of this machine in credentials, and `patience` the longest time of the
    /// connect and of each call.
    ///
    /// # Errors
    /// An I/O error if the server does not accept in time.
    pub fn connect(
        to: SocketAddr,
        source: Source,
        machine: &'a str,
        patience: Duration,
    ) -> io::Result<Caller<'a>> {
        let stream = connect_blocking(to, source, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Caller { stream, records: Records::new(LARGEST_REPLY), machine, patience, xid: 0 })
    }

    /// Calls a procedure, and returns its results.
    ///
    /// # Errors
    /// Fails if no answer comes in time, or if it is not a successful reply to this call.
    pub fn call(&mut self, numbers: [u32; 3], arguments: &[u8]) -> Result<Vec<u8>, CallError> {
        self.xid = self.xid.wrapping_add(1);
        self.stream.write_all(&call(self.xid, numbers, own_credential(self.machine), arguments))?;
        let mut buffer = [0; 4096];
        loop {
            if let Some(record) = self.records.next_record()? {
                let mut message = vec![0; record.payload()];
                record.copy_payload(&mut message);
                return Ok(results(&message, self.xid)?.to_vec());
            }
            let length = match self.stream.read(&mut buffer) {
                Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the server")),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let late = format!("timeout: no answer in {} s", self.patience.as_secs());
                    Err(io::Error::new(io::ErrorKind::TimedOut, late))
                }
                read => read,
            }?;
            self.records.push(Bytes::copy_from_slice(&buffer[..length]));
        }
    }
}
