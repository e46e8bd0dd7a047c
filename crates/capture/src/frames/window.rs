//! A window of bytes that moves over a file, in constant memory regardless of the file's length.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes per read.
const CHUNK: usize = 1 << 20;
/// Bytes of the longest record.
pub const LONGEST: usize = 64 << 20;

/// The bytes of a file, plain or gzip, from the next record on.
pub struct Window {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the file before `start`.
    passed: u64,
    /// True if compressed data ended in the middle.
    cut_off: bool,
}

impl Window {
    pub fn open(mut reader: impl Read + 'static) -> io::Result<Window> {
        let mut magic = Vec::with_capacity(2);
        reader.by_ref().take(2).read_to_end(&mut magic)?;
        let gzip = magic == GZIP_MAGIC;
        let whole = io::Cursor::new(magic).chain(reader);
        let reader: Box<dyn Read> = if gzip {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)))
        } else {
            Box::new(whole)
        };
        Ok(Window { reader, buffer: vec![0; 2 * CHUNK], start: 0, end: 0, passed: 0, cut_off: false })
    }

    /// The bytes in the window.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes of the file before the window.
    pub fn bytes_read(&self) -> u64 {
        self.passed
    }

    /// True if the file ended in the middle of compressed data.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Extends the window to `length` bytes; `false` if the file has fewer left.
    pub fn reach(&mut self, length: usize) -> io::Result<bool> {
        debug_assert!(length <= LONGEST);
        while self.end - self.start < length {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() < length + CHUNK {
                self.buffer.resize(length + CHUNK, 0);
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.cut_off = true;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Advances by `length` bytes of the window, and returns them.
    pub fn pass(&mut self, length: usize) -> &[u8] {
        let from = self.start;
        self.start = (from + length).min(self.end);
        self.passed += (self.start - from) as u64;
        &self.buffer[from..self.start]
    }
}
