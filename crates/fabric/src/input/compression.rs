//! Compressed text. Several compressed parts may follow each other, as `cat` and parallel compressors write them.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A format of compressed data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    Gzip,
    Bzip2,
    Zstd,
}

impl Compression {
    /// The format of data with these first bytes; `None` for plain text.
    pub fn of(start: &[u8]) -> Option<Compression> {
        match start {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            // The size of blocks, and then the digits of pi, or of its square root at the end of empty data.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, 0x41 | 0x72, ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }

    /// Name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd => "zstd",
        }
    }

    /// The text of compressed data.
    pub fn decoder(self, reader: impl BufRead + 'static) -> Box<dyn BufRead> {
        match self {
            Compression::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(reader))),
            Compression::Bzip2 => Box::new(BufReader::new(MultiBzDecoder::new(reader))),
            Compression::Zstd => {
                let frames = ZstdFrames { reader, decoder: FrameDecoder::new(), is_open: false };
                Box::new(BufReader::new(frames))
            }
        }
    }
}

/// Frames of zstd, one after another.
struct ZstdFrames<R> {
    reader: R,
    decoder: FrameDecoder,
    /// True within a frame.
    is_open: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    /// Begins the next frame with text. Returns false at the end of the data.
    fn open(&mut self) -> io::Result<bool> {
        while !self.reader.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.reader) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.reader).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(with_kind(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_open && !self.open()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.reader, one).map_err(with_kind)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("its checksum is of other data"));
            }
            self.is_open = false;
        }
    }
}

/// The error of a frame; of a truncated one with the kind that says so.
fn with_kind(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        let kind = inner.downcast_ref().map(io::Error::kind);
        if kind == Some(io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = inner.source();
    }
    io::Error::other(error)
}
