//! Encodings of bodies and streams: gzip and zstd.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Largest body that is compressed thoroughly, in bytes. Larger bodies take ten times as long per byte for a few per
/// cent of their size.
const THOROUGH: usize = 2 << 20;
/// Memory of a compressed stream: 2^20 bytes of its past, in which repetitions are found.
const STREAM_WINDOW: u32 = 20;

/// Encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// As it is.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// zstd (RFC 8878).
    Zstd,
}

impl Encoding {
    /// Best encoding that the client accepts (RFC 9110, section 12.5.3). A client that prefers none gets zstd.
    /// `values` are those of the header `accept-encoding`.
    pub fn accepted<'a>(values: impl Iterator<Item = &'a str>) -> Encoding {
        let items: Vec<(&str, f64)> = values.flat_map(|value| value.split(',')).map(item).collect();
        let weight = |name: &str| {
            let named = items.iter().find(|(item, _)| item.eq_ignore_ascii_case(name));
            named.or_else(|| items.iter().find(|(item, _)| *item == "*")).map_or(0.0, |&(_, weight)| weight)
        };
        let (zstd, gzip) = (weight("zstd"), weight("gzip").max(weight("x-gzip")));
        match () {
            () if zstd > 0.0 && zstd >= gzip => Encoding::Zstd,
            () if gzip > 0.0 => Encoding::Gzip,
            () => Encoding::Identity,
        }
    }

    /// Value of the header `content-encoding`.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Encoding::Identity => None,
            Encoding::Gzip => Some("gzip"),
            Encoding::Zstd => Some("zstd"),
        }
    }

    /// Compresses a whole body.
    ///
    /// # Errors
    /// An I/O error if the compressor has no memory.
    pub fn compress(self, body: Bytes) -> io::Result<Bytes> {
        let thorough = body.len() <= THOROUGH;
        Ok(match self {
            Encoding::Identity => body,
            Encoding::Gzip => {
                let level = Compression::new(if thorough { 6 } else { 1 });
                let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), level);
                encoder.write_all(&body)?;
                encoder.finish()?.into()
            }
            Encoding::Zstd => zstd::bulk::compress(&body, if thorough { 9 } else { 1 })?.into(),
        })
    }
}

/// An item of `accept-encoding` with its weight; an invalid weight counts as 0.
fn item(text: &str) -> (&str, f64) {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let weight = match parameters.trim().split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("q") => value.trim().parse().unwrap_or(0.0),
        _ => 1.0,
    };
    (name.trim(), weight)
}

/// Compressor of a stream. The client can decode each piece as soon as it arrives.
pub enum StreamEncoder {
    /// Leaves the pieces as they are.
    Identity,
    /// gzip.
    Gzip(GzEncoder<Vec<u8>>),
    /// zstd.
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl StreamEncoder {
    /// Compressor for one client.
    ///
    /// # Errors
    /// An I/O error if the compressor has no memory.
    pub fn new(encoding: Encoding) -> io::Result<StreamEncoder> {
        Ok(match encoding {
            Encoding::Identity => StreamEncoder::Identity,
            Encoding::Gzip => StreamEncoder::Gzip(GzEncoder::new(Vec::new(), Compression::new(4))),
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
                encoder.window_log(STREAM_WINDOW)?;
                StreamEncoder::Zstd(encoder)
            }
        })
    }

    /// Compresses a piece.
    ///
    /// # Errors
    /// An I/O error if the compressor has no memory.
    pub fn piece(&mut self, piece: Bytes) -> io::Result<Bytes> {
        match self {
            StreamEncoder::Identity => Ok(piece),
            StreamEncoder::Gzip(encoder) => {
                encoder.write_all(&piece)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()).into())
            }
            StreamEncoder::Zstd(encoder) => {
                encoder.write_all(&piece)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()).into())
            }
        }
    }

    /// End of the stream.
    ///
    /// # Errors
    /// An I/O error if the compressor has no memory.
    pub fn end(self) -> io::Result<Bytes> {
        Ok(match self {
            StreamEncoder::Identity => Bytes::new(),
            StreamEncoder::Gzip(encoder) => encoder.finish()?.into(),
            StreamEncoder::Zstd(encoder) => encoder.finish()?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_accepted_encoding_is_chosen() {
        let accepted = |text: &str| Encoding::accepted(std::iter::once(text));
        assert_eq!(Encoding::accepted(std::iter::empty()), Encoding::Identity);
        assert_eq!(Encoding::accepted(["br", "gzip;q=0.5"].into_iter()), Encoding::Gzip);
        for (text, expected) in [
            ("", Encoding::Identity),
            ("identity, br", Encoding::Identity),
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip", Encoding::Gzip),
            ("GZIP;q=0.5, zstd ; q=0.25", Encoding::Gzip),
            ("zstd;q=0, gzip;q=0.001", Encoding::Gzip),
            ("gzip;q=0, zstd;q=0", Encoding::Identity),
            ("*", Encoding::Zstd),
            ("*;q=0.1, zstd;q=0", Encoding::Gzip),
            ("zstd;q=high", Encoding::Identity),
            ("x-gzip", Encoding::Gzip),
        ] {
            assert_eq!(accepted(text), expected, "{text}");
        }
    }
}
