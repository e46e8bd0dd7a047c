//! pcap files (draft-ietf-opsawg-pcap), of both byte orders, with microseconds or nanoseconds.

use std::io;

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use super::window::LONGEST;
use super::{Frame, Window, broken, cut_off};
use crate::discards::Discards;

/// Bytes before the first record.
pub const HEADER: usize = 24;
/// First bytes of a file as little-endian numbers: the formats with microseconds, with nanoseconds and by Kuznetzov, in
/// both byte orders.
pub const MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0xa1b2_cd34];

type Parse = for<'a> fn(&'a [u8]) -> IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

pub struct Pcap {
    link_type: u32,
    /// Bytes before the data of a record.
    record_header: usize,
    big_endian: bool,
    /// Nanoseconds in a unit of the fraction of a second.
    unit_ns: i64,
    parse: Parse,
}

impl Pcap {
    /// The format according to the file header; `None` if the header is invalid.
    pub fn open(bytes: &[u8]) -> Option<Pcap> {
        let (_, header) = parse_pcap_header(bytes).ok()?;
        let (parse, record_header): (Parse, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, 24)
        } else if header.is_bigendian() {
            (parse_pcap_frame_be, 16)
        } else {
            (parse_pcap_frame, 16)
        };
        Some(Pcap {
            // The bits above the lower 16 state whether frames include check sequences.
            link_type: header.network.0 as u32 & 0xffff,
            record_header,
            big_endian: header.is_bigendian(),
            unit_ns: if header.is_nanosecond_precision() { 1 } else { 1_000 },
            parse,
        })
    }

    pub fn next<'a>(&self, window: &'a mut Window, discards: &mut Discards) -> io::Result<Option<Frame<'a>>> {
        if !window.reach(self.record_header)? {
            cut_off(window, discards);
            return Ok(None);
        }
        let captured = self.captured(window.bytes());
        if captured > LONGEST - self.record_header {
            broken(window, discards, || format!("a packet of {captured} captured bytes"))?;
            return Ok(None);
        }
        if !window.reach(self.record_header + captured)? {
            cut_off(window, discards);
            return Ok(None);
        }
        let record = window.pass(self.record_header + captured);
        // The record is complete, so the parser always succeeds.
        let Ok((_, block)) = (self.parse)(record) else { return Ok(None) };
        Ok(Some(Frame {
            time_ns: i64::from(block.ts_sec) * 1_000_000_000 + i64::from(block.ts_usec) * self.unit_ns,
            link_type: self.link_type,
            data: block.data,
            length: u64::from(block.origlen.max(block.caplen)),
        }))
    }

    /// Number of captured bytes of the next packet.
    fn captured(&self, record: &[u8]) -> usize {
        let field = [record[8], record[9], record[10], record[11]];
        let captured = if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) };
        captured as usize
    }
}
