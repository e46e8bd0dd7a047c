//! Whole records. Their bytes are not copied, but for pieces of a few kilobytes: a record is parts of the buffers into
//! which a connection was read, and passes on as it came, with the headers of its fragments.

use bytes::{Bytes, BytesMut};

use super::marking::{MARK, Marking, MarkingError};

/// Bytes of a message that are enough for the header of a call and the arguments before any payload: six numbers, a
/// credential and a verifier of 400 bytes each, a file handle of 64 bytes, and the numbers after it.
pub const HEAD: usize = 1024;

/// Pieces below this number of bytes are copied into one: without a limit, a client that sends single bytes would cost
/// a piece for each.
const SMALL: usize = 4096;

/// A record as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    first: Bytes,
    rest: Vec<Bytes>,
    payload: usize,
    size: usize,
}

impl Record {
    /// Bytes of the message.
    pub fn payload(&self) -> usize {
        self.payload
    }

    /// Bytes of the message and of the headers of its fragments.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The first [`HEAD`] bytes of the message, or all of it. `buffer` holds them where they are not in one piece.
    pub fn head<'a>(&'a self, buffer: &'a mut [u8; HEAD]) -> &'a [u8] {
        let wanted = self.payload.min(HEAD);
        let is_one_fragment = self.payload + MARK == self.size;
        if is_one_fragment && self.first.len() >= MARK + wanted {
            return &self.first[MARK..MARK + wanted];
        }
        let filled = self.copy_payload(&mut buffer[..wanted]);
        &buffer[..filled]
    }

    /// Copies the beginning of the message. Returns the number of bytes: those that fit, or all of the message.
    pub fn copy_payload(&self, into: &mut [u8]) -> usize {
        copy_payload(self.pieces().map(|piece| &piece[..]), into)
    }

    /// The pieces of the record, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The pieces of the record, in order.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        std::iter::once(self.first).chain(self.rest)
    }
}

/// Copies the beginning of the message whose fragments are in these pieces. Returns the number of bytes.
fn copy_payload<'a>(pieces: impl Iterator<Item = &'a [u8]>, into: &mut [u8]) -> usize {
    let (mut marking, mut filled) = (Marking::new(usize::MAX), 0);
    for mut bytes in pieces {
        while !bytes.is_empty() && filled < into.len() {
            // The pieces are fragments of a record, so no header announces too much.
            let Ok(part) = marking.step(bytes) else { return filled };
            let payload = &bytes[part.length - part.payload..part.length];
            let taken = payload.len().min(into.len() - filled);
            into[filled..filled + taken].copy_from_slice(&payload[..taken]);
            filled += taken;
            bytes = &bytes[part.length..];
        }
    }
    filled
}

/// Splits a stream into records.
#[derive(Debug)]
pub struct Records {
    marking: Marking,
    /// Bytes that are not taken yet.
    chunk: Bytes,
    /// Pieces of the record that has begun, then small pieces as one.
    pieces: Vec<Bytes>,
    small: BytesMut,
    payload: usize,
    size: usize,
}

impl Records {
    /// The beginning of a stream whose records have at most `limit` bytes, with the headers of their fragments.
    pub fn new(limit: usize) -> Records {
        Records {
            marking: Marking::new(limit),
            chunk: Bytes::new(),
            pieces: Vec::new(),
            small: BytesMut::new(),
            payload: 0,
            size: 0,
        }
    }

    /// Adds the next bytes of the stream. [`Records::next_record`] must have taken the bytes before.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty());
        self.chunk = chunk;
    }

    /// Takes the next whole record; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Fails at a record that is too large. The stream is then of no use.
    pub fn next_record(&mut self) -> Result<Option<Record>, MarkingError> {
        let mut at = 0;
        while at < self.chunk.len() {
            let part = self.marking.step(&self.chunk[at..])?;
            at += part.length;
            self.payload += part.payload;
            if part.ends {
                return Ok(Some(self.finish(at)));
            }
        }
        if at > 0 {
            self.size += at;
            let piece = std::mem::take(&mut self.chunk);
            self.keep(piece);
        }
        Ok(None)
    }

    /// Bytes that the current fragment still needs; 0 between fragments.
    pub fn missing(&self) -> usize {
        self.marking.left()
    }

    /// True if all bytes of the stream so far are in records, or in the one that has begun.
    pub fn is_drained(&self) -> bool {
        self.chunk.is_empty()
    }

    /// Copies the beginning of the message that has begun. Returns the number of bytes.
    pub fn copy_begun(&self, into: &mut [u8]) -> usize {
        let pieces = self.pieces.iter().map(|piece| &piece[..]);
        copy_payload(pieces.chain([&self.small[..]]), into)
    }

    /// Bytes of the record that has begun.
    pub fn begun(&self) -> usize {
        self.size
    }

    /// The record that ends at `at` in the chunk.
    fn finish(&mut self, at: usize) -> Record {
        let (payload, size) = (std::mem::take(&mut self.payload), std::mem::take(&mut self.size) + at);
        let last = self.chunk.split_to(at);
        if self.pieces.is_empty() && self.small.is_empty() {
            return Record { first: last, rest: Vec::new(), payload, size };
        }
        self.keep(last);
        self.flush_small();
        let mut rest = std::mem::take(&mut self.pieces);
        let first = rest.remove(0);
        Record { first, rest, payload, size }
    }

    fn keep(&mut self, piece: Bytes) {
        if piece.len() < SMALL {
            self.small.extend_from_slice(&piece);
        } else {
            self.flush_small();
            self.pieces.push(piece);
        }
    }

    fn flush_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(std::mem::take(&mut self.small).freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rpc::marking::LAST;

    /// A record of these fragments.
    fn stream(fragments: &[Vec<u8>]) -> Vec<u8> {
        let last = fragments.len().saturating_sub(1);
        let fragment = |(at, bytes): (usize, &Vec<u8>)| {
            let mark = bytes.len() as u32 | if at == last { LAST } else { 0 };
            [&mark.to_be_bytes()[..], bytes].concat()
        };
        fragments.iter().enumerate().flat_map(fragment).collect()
    }

    fn fragments() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let small = prop::collection::vec(any::<u8>(), 0..40);
        let large = (any::<u8>(), 0usize..20_000).prop_map(|(byte, length)| vec![byte; length]);
        prop::collection::vec(prop_oneof![3 => small, 1 => large], 1..5)
    }

    proptest! {
        #[test]
        fn records_come_out_as_they_went_in_wherever_the_stream_is_cut(
            records in prop::collection::vec(fragments(), 0..6),
            cuts in prop::collection::vec(prop_oneof![1usize..8, 1usize..9_000], 1..20),
        ) {
            let streams: Vec<Vec<u8>> = records.iter().map(|fragments| stream(fragments)).collect();
            let all = Bytes::from(streams.concat());
            let (mut rest, mut reader, mut read) = (all, Records::new(1 << 20), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                reader.push(rest.split_to((*cut).min(rest.len())));
                while let Some(record) = reader.next_record().unwrap() {
                    read.push(record);
                }
            }
            prop_assert_eq!(read.len(), records.len());
            prop_assert!(reader.begun() == 0 && reader.is_drained());
            for ((record, fragments), stream) in read.into_iter().zip(&records).zip(&streams) {
                let message = fragments.concat();
                prop_assert_eq!((record.payload(), record.size()), (message.len(), stream.len()));
                let mut buffer = [0; HEAD];
                prop_assert_eq!(record.head(&mut buffer), &message[..message.len().min(HEAD)]);
                let pieces: Vec<u8> = record.into_pieces().flatten().collect();
                prop_assert_eq!(&pieces, stream);
            }
        }

        #[test]
        fn any_bytes_are_records_or_an_error(
            bytes in prop::collection::vec(prop_oneof![4 => Just(0u8), 1 => any::<u8>()], 0..200),
            cut in 1usize..50,
        ) {
            let mut reader = Records::new(64);
            for chunk in bytes.chunks(cut) {
                reader.push(Bytes::copy_from_slice(chunk));
                loop {
                    match reader.next_record() {
                        Ok(Some(record)) => prop_assert!(record.size() <= 64),
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
            }
        }
    }

    #[test]
    fn a_message_can_be_seen_while_it_comes() {
        let bytes = stream(&[vec![1; 5], Vec::new(), vec![2; 10_000]]);
        for cut in [1, 7, 5_000] {
            let (mut reader, mut sent) = (Records::new(1 << 20), 0);
            for chunk in bytes.chunks(cut) {
                reader.push(Bytes::copy_from_slice(chunk));
                sent += chunk.len();
                if reader.next_record().unwrap().is_some() {
                    break;
                }
                let mut head = [0; 8];
                let length = reader.copy_begun(&mut head);
                // Headers of four bytes, before the first, the second and the last fragment.
                let payload = (sent.saturating_sub(4)).min(5) + sent.saturating_sub(5 + 3 * 4);
                assert_eq!(length, payload.min(8), "{sent} bytes");
                assert_eq!(head[..length], [1, 1, 1, 1, 1, 2, 2, 2][..length]);
            }
            assert_eq!((sent, reader.copy_begun(&mut [0; 8])), (bytes.len(), 0));
        }
    }

    #[test]
    fn single_bytes_do_not_become_pieces_of_their_own() {
        let bytes = stream(&[vec![7; 3_000]]);
        let mut reader = Records::new(1 << 20);
        let mut read = None;
        for byte in bytes {
            reader.push(Bytes::copy_from_slice(&[byte]));
            read = reader.next_record().unwrap().or(read);
        }
        assert_eq!(read.unwrap().pieces().count(), 1);
    }
}
