//! Record marking (RFC 5531, section 11). A record is one message in one or several fragments. Each fragment follows
//! four bytes: the highest bit is set for the last fragment of a record, the others are the length of the fragment.

/// Bytes of the header of a fragment.
pub(super) const MARK: usize = 4;

/// Bit of the last fragment of a record.
pub(super) const LAST: u32 = 1 << 31;

/// A stream that is no sequence of records of the allowed size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MarkingError {
    /// A record is too large.
    #[error("a record of more than {limit} bytes")]
    TooLarge {
        /// Largest number of bytes of a record, with the headers of its fragments.
        limit: usize,
    },
}

/// Position within a stream of records.
#[derive(Clone, Debug)]
pub struct Marking {
    mark: [u8; MARK],
    /// Bytes of the header that are there; [`MARK`] within a fragment.
    filled: usize,
    /// Bytes left of the fragment.
    left: usize,
    is_last: bool,
    /// Bytes of the record so far and of the current fragment, with headers.
    size: usize,
    limit: usize,
}

/// The next bytes of a stream: the rest of a fragment's header, then bytes of the fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// Number of bytes of the part.
    pub length: usize,
    /// Number of these bytes, at the end of the part, that belong to the message.
    pub payload: usize,
    /// True if the record ends with the part.
    pub ends: bool,
    /// Bytes of the record up to the end of the current fragment, with headers.
    pub record: usize,
}

impl Marking {
    /// The beginning of a stream whose records have at most `limit` bytes.
    pub fn new(limit: usize) -> Marking {
        Marking { mark: [0; MARK], filled: 0, left: 0, is_last: false, size: 0, limit }
    }

    /// Takes the next part from the beginning of `bytes`: at least one byte, unless `bytes` is empty.
    ///
    /// # Errors
    /// Fails as soon as the header of a fragment announces a record that is too large. The stream is then of no use.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Part, MarkingError> {
        let mut part = Part::default();
        if self.filled < MARK {
            let taken = bytes.len().min(MARK - self.filled);
            self.mark[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            part.length = taken;
            if self.filled < MARK {
                return Ok(part);
            }
            let mark = u32::from_be_bytes(self.mark);
            self.is_last = mark & LAST != 0;
            self.left = (mark & !LAST) as usize;
            // Headers count, so that empty fragments are no endless record.
            self.size = self.size.saturating_add(MARK).saturating_add(self.left);
            if self.size > self.limit {
                return Err(MarkingError::TooLarge { limit: self.limit });
            }
        }
        part.payload = self.left.min(bytes.len() - part.length);
        part.length += part.payload;
        self.left -= part.payload;
        part.record = self.size;
        if self.left == 0 {
            self.filled = 0;
            part.ends = self.is_last;
            if self.is_last {
                self.size = 0;
            }
        }
        Ok(part)
    }

    /// Bytes left of the current fragment.
    pub fn left(&self) -> usize {
        self.left
    }

    /// True between two records.
    pub fn is_between(&self) -> bool {
        self.size == 0 && self.filled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of the records of a stream that arrives in chunks.
    fn lengths(stream: &[u8], chunk: usize, limit: usize) -> Result<Vec<usize>, MarkingError> {
        let (mut marking, mut lengths, mut length) = (Marking::new(limit), Vec::new(), 0);
        for mut bytes in stream.chunks(chunk) {
            while !bytes.is_empty() {
                let part = marking.step(bytes)?;
                length += part.payload;
                bytes = &bytes[part.length..];
                if part.ends {
                    lengths.push(std::mem::take(&mut length));
                    assert!(marking.is_between());
                }
            }
        }
        Ok(lengths)
    }

    fn fragment(length: u32, is_last: bool) -> Vec<u8> {
        let mark = length | if is_last { LAST } else { 0 };
        [&mark.to_be_bytes()[..], &vec![7; length as usize]].concat()
    }

    #[test]
    fn records_end_with_their_last_fragments_wherever_the_stream_is_cut() {
        let fragments = [(5, true), (0, false), (3, false), (9, true), (0, true), (4, false), (0, true)];
        let stream = fragments.map(|(length, is_last)| fragment(length, is_last)).concat();
        for chunk in 1..=stream.len() {
            assert_eq!(lengths(&stream, chunk, 100), Ok(vec![5, 12, 0, 4]), "chunks of {chunk}");
        }
    }

    #[test]
    fn a_record_above_the_limit_is_an_error_at_its_header() {
        let limit = 20;
        let error = Err(MarkingError::TooLarge { limit });
        assert_eq!(lengths(&fragment(16, true), 7, limit), Ok(vec![16]));
        assert_eq!(lengths(&(17 | LAST).to_be_bytes(), 7, limit), error);
        assert_eq!(lengths(&u32::MAX.to_be_bytes(), 7, limit), error);
        assert_eq!(lengths(&[fragment(4, false), fragment(9, true)].concat(), 3, limit), error);
        // Empty fragments without end.
        assert_eq!(lengths(&[0; 24], 3, limit), error);
    }
}
