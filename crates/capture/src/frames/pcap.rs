//! pcap files (draft-ietf-opsawg-pcap), of both byte orders, with microseconds or nanoseconds.

use std::io;

use pcap_parser::nom::IResult;
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use super::window::LONGEST;
use super::{Frame, Window, broken, cut_off};
use crate::discards::{Discards, Reason};

/// Bytes before the first record.
pub const HEADER: usize = 24;
/// First bytes of a file as little-endian numbers: the formats with microseconds, with nanoseconds and by Kuznetzov, in
/// both byte orders.
pub const MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0xa1b2_cd34];

/// Versions of the format. Before 2.3, the two lengths of a packet had the opposite order.
pub const VERSIONS: [(u16, u16); 2] = [(2, 3), (2, 4)];

type Parse = for<'a> fn(&'a [u8]) -> IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

pub struct Pcap {
    link_type: u32,
    /// Bytes before the data of a record.
    record_header: usize,
    big_endian: bool,
    /// Nanoseconds in a unit of the fraction of a second.
    unit_ns: i64,
    /// Bytes of the check sequence at the end of each frame, which do not count.
    check_sequence: u64,
    parse: Parse,
}

/// Flag of a link type: frames end with a check sequence, whose length in words of two bytes is in the upper four bits.
const HAS_CHECK_SEQUENCE: u32 = 0x0400_0000;

impl Pcap {
    /// The format and its version according to the file header; `None` if the header is invalid.
    pub fn open(bytes: &[u8]) -> Option<(Pcap, (u16, u16))> {
        let (_, header) = parse_pcap_header(bytes).ok()?;
        let (parse, record_header): (Parse, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, 24)
        } else if header.is_bigendian() {
            (parse_pcap_frame_be, 16)
        } else {
            (parse_pcap_frame, 16)
        };
        let network = header.network.0 as u32;
        let has_check_sequence = network & HAS_CHECK_SEQUENCE != 0;
        let pcap = Pcap {
            link_type: network & 0xffff,
            check_sequence: if has_check_sequence { u64::from(network >> 28) * 2 } else { 0 },
            record_header,
            big_endian: header.is_bigendian(),
            unit_ns: if header.is_nanosecond_precision() { 1 } else { 1_000 },
            parse,
        };
        Some((pcap, (header.version_major, header.version_minor)))
    }

    pub fn next<'a>(
        &mut self,
        window: &'a mut Window,
        discards: &mut Discards,
    ) -> io::Result<Option<Frame<'a>>> {
        while let Some(next) = Pcap::appended(window)? {
            *self = next;
            window.pass(HEADER);
        }
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
        let bytes = record.len() as u64;
        // The record is complete, so the parser always succeeds.
        let Ok((_, block)) = (self.parse)(record) else {
            discards.count(Reason::BrokenRecord, "", bytes, || "a record that cannot be parsed".into());
            return Ok(None);
        };
        Ok(Some(Frame {
            time_ns: i64::from(block.ts_sec) * 1_000_000_000 + i64::from(block.ts_usec) * self.unit_ns,
            link_type: self.link_type,
            data: block.data,
            length: u64::from(block.origlen.max(block.caplen)).saturating_sub(self.check_sequence),
        }))
    }

    /// The format of another file that begins here: files are appended to each other. As a record, a file header would
    /// be of the year 2055 or later.
    fn appended(window: &mut Window) -> io::Result<Option<Pcap>> {
        let magic = |bytes: &[u8]| matches!(*bytes, [a, b, c, d, ..] if MAGICS.contains(&u32::from_le_bytes([a, b, c, d])));
        if !window.reach(4)? || !magic(window.bytes()) || !window.reach(HEADER)? {
            return Ok(None);
        }
        let header = &window.bytes()[..HEADER];
        Ok(Pcap::open(header).and_then(|(pcap, version)| VERSIONS.contains(&version).then_some(pcap)))
    }

    /// Number of captured bytes of the next packet.
    fn captured(&self, record: &[u8]) -> usize {
        let field = [record[8], record[9], record[10], record[11]];
        let captured = if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) };
        captured as usize
    }
}
