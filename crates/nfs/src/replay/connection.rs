//! A connection of a replay: calls wait until it takes their bytes, and of replies only the beginnings are kept.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Buf, Bytes};

use super::settings::MOST_PAYLOAD;
use crate::outgoing::{Source, connect_blocking};
use crate::rpc::{Marking, MarkingError};

/// Bytes of a reply that are kept: the header, the attributes of the file and the number of bytes.
const HEAD: usize = 256;
/// Largest reply in bytes.
const MOST_REPLY: usize = MOST_PAYLOAD as usize + (64 << 10);
/// Parts of calls that are sent at once.
const PARTS: usize = 32;

/// A connection whose sides do not wait.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// Parts of calls that the connection has not taken yet.
    calls: VecDeque<Bytes>,
    replies: Replies,
}

/// Beginnings of the replies in a stream.
#[derive(Debug)]
pub(super) struct Replies {
    marking: Marking,
    head: Vec<u8>,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    /// An I/O error if the server does not accept.
    pub fn connect(to: SocketAddr, source: Source, patience: std::time::Duration) -> io::Result<Connection> {
        let stream = connect_blocking(to, source, patience)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, calls: VecDeque::new(), replies: Replies::new() })
    }

    /// Hands over a part of a call.
    pub fn push(&mut self, part: Bytes) {
        self.calls.push_back(part);
    }

    /// True if parts of calls wait.
    pub fn waits(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Sends the bytes that the connection takes now.
    ///
    /// # Errors
    /// An I/O error if the connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.waits() {
            let parts: Vec<IoSlice<'_>> =
                self.calls.iter().take(PARTS).map(|part| IoSlice::new(part)).collect();
            match self.stream.write_vectored(&parts) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.remove(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes bytes that were sent.
    fn remove(&mut self, mut taken: usize) {
        while let Some(part) = self.calls.front_mut() {
            if taken < part.len() {
                part.advance(taken);
                return;
            }
            taken -= part.len();
            self.calls.pop_front();
        }
    }

    /// Reads bytes that are there. Returns their number; 0 if there are none.
    ///
    /// # Errors
    /// An I/O error if the connection failed or ended.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the server")),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            read => read,
        }
    }

    /// The replies in the bytes that were read.
    pub fn replies(&mut self) -> &mut Replies {
        &mut self.replies
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Replies {
    fn new() -> Replies {
        Replies { marking: Marking::new(MOST_REPLY), head: Vec::new() }
    }

    /// Takes bytes up to the end of the next reply. Returns the beginning of this reply, or `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// Fails for a reply that is too large.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, MarkingError> {
        while !bytes.is_empty() {
            let part = self.marking.step(bytes)?;
            let payload = &bytes[part.length - part.payload..part.length];
            let room = HEAD - self.head.len();
            self.head.extend_from_slice(&payload[..payload.len().min(room)]);
            *bytes = &bytes[part.length..];
            if part.ends {
                return Ok(Some(std::mem::take(&mut self.head)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Accepted, reply};

    #[test]
    fn replies_have_their_beginnings_wherever_the_stream_is_cut() {
        let long = vec![7; 1000];
        let stream: Vec<u8> =
            [&long[..], b"short", b""].map(|results| reply(9, Accepted::Success(results))).concat();
        for chunk in [1, 3, 100, stream.len()] {
            let (mut replies, mut heads) = (Replies::new(), Vec::new());
            for mut bytes in stream.chunks(chunk) {
                while let Some(head) = replies.take(&mut bytes).unwrap() {
                    heads.push(head.len());
                }
            }
            // A header has 24 bytes.
            assert_eq!(heads, [HEAD, 29, 24], "chunks of {chunk}");
        }
        let mut huge: &[u8] = &(u32::MAX).to_be_bytes();
        assert!(Replies::new().take(&mut huge).is_err());
    }
}
