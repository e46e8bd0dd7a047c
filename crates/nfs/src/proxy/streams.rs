//! The halves of a connection: chunks that were read, and bytes that wait to be written.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Room below which a new buffer is taken, if no more is missing.
const LEAST_ROOM: usize = 4 << 10;
/// Size of a buffer, and room that a large message uses up before a new one is taken.
const BUFFER: usize = 64 << 10;
/// Size of a buffer for large messages.
const LARGE_BUFFER: usize = 256 << 10;
/// Pieces of a write.
const PIECES: usize = 64;

/// Bytes from a peer.
pub struct Incoming {
    half: OwnedReadHalf,
    buffer: BytesMut,
}

impl Incoming {
    /// Bytes from this half.
    pub fn new(half: OwnedReadHalf) -> Incoming {
        Incoming { half, buffer: BytesMut::new() }
    }

    /// Reads a chunk; `missing` is the number of bytes that the current message needs. An empty chunk is the end.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>, missing: usize) -> Poll<io::Result<Bytes>> {
        // The buffer is empty, because each chunk takes all that was read.
        if self.buffer.capacity() < missing.clamp(LEAST_ROOM, BUFFER) {
            self.buffer.reserve(missing.clamp(BUFFER, LARGE_BUFFER));
        }
        let read = pin!(self.half.read_buf(&mut self.buffer));
        ready!(read.poll(context))?;
        Poll::Ready(Ok(self.buffer.split().freeze()))
    }
}

/// Bytes for a peer.
pub struct Outgoing {
    half: OwnedWriteHalf,
    pieces: VecDeque<Bytes>,
}

impl Outgoing {
    /// Bytes for this half.
    pub fn new(half: OwnedWriteHalf) -> Outgoing {
        Outgoing { half, pieces: VecDeque::new() }
    }

    /// Pieces that are not written yet.
    pub fn pieces(&mut self) -> &mut VecDeque<Bytes> {
        &mut self.pieces
    }

    /// Number of bytes that are not written yet.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// True if all bytes are written.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes all pieces.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pieces.is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let count = self.pieces.len().min(PIECES);
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(piece);
            }
            let half = Pin::new(&mut self.half);
            let written = ready!(half.poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            advance(&mut self.pieces, written);
        }
        Poll::Ready(Ok(()))
    }
}

/// Removes bytes from the beginning of pieces.
fn advance(pieces: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = pieces.front_mut() {
        if written < first.len() {
            first.advance(written);
            return;
        }
        written -= first.len();
        pieces.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_removed_whatever_pieces_they_were() {
        let all: Vec<u8> = (0..60).collect();
        for first in 1..30 {
            let bytes = Bytes::from(all.clone());
            let mut pieces: VecDeque<Bytes> =
                [0..7, 7..7, 7..8, 8..40, 40..60].map(|range| bytes.slice(range)).into();
            let mut left = &all[..];
            for written in [first, 3, 27, usize::MAX] {
                let written = written.min(left.len());
                advance(&mut pieces, written);
                left = &left[written..];
                assert_eq!(pieces.iter().flatten().copied().collect::<Vec<u8>>(), left);
            }
        }
    }
}
