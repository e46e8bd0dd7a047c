//! pcapng files (draft-ietf-opsawg-pcapng): sections of either byte order, with several interfaces each.
//!
//! pcap-parser parses single blocks. The loop over blocks is written here, so that an invalid block does not affect
//! others, and every discard is counted with its place in the file. Options of interfaces are also decoded here. The
//! library reads time offsets only in little-endian order and rejects resolutions that are powers of two.

use std::io;

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, InterfaceDescriptionBlock, OptionCode, parse_block_be, parse_block_le};

use super::window::LONGEST;
use super::{Frame, Window, broken, cut_off};
use crate::discards::{Discards, Reason};

/// First bytes of a section, the same in both byte orders.
pub const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const BIG_ENDIAN: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// Type of the packet blocks that the enhanced packet block replaced, and bytes before the data of their packet.
const OBSOLETE_PACKET: (u32, usize) = (2, 28);
/// Option of an interface: bytes of the check sequence at the end of its frames.
const CHECK_SEQUENCE: OptionCode = OptionCode(13);
/// Largest number of interfaces of a section.
const MOST_INTERFACES: usize = 100_000;
const NANOS: i128 = 1_000_000_000;

/// Major and minor version of a section, from its first 16 bytes.
pub fn version(section: &[u8]) -> (u16, u16) {
    let number = |at: usize| {
        let two = [section[at], section[at + 1]];
        if section[8..12] == BIG_ENDIAN { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    };
    (number(12), number(14))
}

#[derive(Default)]
pub struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: u32,
    /// Units of time per second; `None` if the number is not representable.
    resolution: Option<u64>,
    offset_s: i64,
    /// Bytes of the check sequence at the end of each frame, which do not count.
    check_sequence: u64,
    /// Packets that the capturing system dropped, as far as the file has stated.
    dropped: u64,
}

/// Position of a packet's data in a block, with its metadata.
struct Packet {
    time_ns: Option<i64>,
    link_type: u32,
    data: std::ops::Range<usize>,
    length: u64,
}

impl PcapNg {
    pub fn next<'a>(
        &mut self,
        window: &'a mut Window,
        discards: &mut Discards,
    ) -> io::Result<Option<Frame<'a>>> {
        loop {
            if !window.reach(12)? {
                cut_off(window, discards);
                return Ok(None);
            }
            let head = window.bytes();
            if head[..4] == MAGIC {
                self.big_endian = head[8..12] == BIG_ENDIAN;
            }
            let length = self.word(&head[4..8]) as usize;
            if !(12..=LONGEST).contains(&length) {
                broken(window, discards, || format!("a block of {length} bytes"))?;
                return Ok(None);
            }
            if !window.reach(length)? {
                cut_off(window, discards);
                return Ok(None);
            }
            let at = window.bytes_read();
            let Some(packet) = self.read(&window.bytes()[..length], at, discards) else {
                window.pass(length);
                continue;
            };
            let bytes = packet.data.len() as u64;
            let Some(time_ns) = packet.time_ns else {
                discards.count(Reason::NoTime, "", packet.length, || format!("byte {at}: {bytes} bytes"));
                window.pass(length);
                continue;
            };
            let block = window.pass(length);
            let (link_type, length) = (packet.link_type, packet.length);
            return Ok(Some(Frame { time_ns, link_type, data: &block[packet.data], length }));
        }
    }

    /// Reads a complete block; returns its packet, if it has one.
    fn read(&mut self, bytes: &[u8], at: u64, discards: &mut Discards) -> Option<Packet> {
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let Ok((_, block)) = parse(bytes) else {
            let kind = self.word(&bytes[..4]);
            discards.count(Reason::BrokenBlock, "", bytes.len() as u64, || {
                format!("byte {at}: block type {kind}")
            });
            return None;
        };
        match block {
            Block::SectionHeader(_) => self.interfaces.clear(),
            Block::InterfaceDescription(described) if self.interfaces.len() < MOST_INTERFACES => {
                self.interfaces.push(self.interface(&described));
            }
            Block::EnhancedPacket(packet) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return self.no_interface(packet.if_id, packet.origlen, at, discards);
                };
                let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let length = u64::from(packet.origlen.max(packet.caplen));
                let length = length.saturating_sub(interface.check_sequence);
                let data = inside(bytes, packet.packet_data());
                return Some(Packet {
                    time_ns: interface.time_ns(time),
                    link_type: interface.link_type,
                    data,
                    length,
                });
            }
            Block::SimplePacket(packet) => {
                let Some(interface) = self.interfaces.first() else {
                    return self.no_interface(0, packet.origlen, at, discards);
                };
                let length = u64::from(packet.origlen).saturating_sub(interface.check_sequence);
                let link_type = interface.link_type;
                return Some(Packet {
                    time_ns: None,
                    link_type,
                    data: inside(bytes, packet.packet_data()),
                    length,
                });
            }
            Block::Unknown(_) if self.word(&bytes[..4]) == OBSOLETE_PACKET.0 => {
                return self.obsolete(bytes, at, discards);
            }
            Block::InterfaceStatistics(statistics) => {
                let count = |code| {
                    let option = statistics.options.iter().find(|option| option.code == code)?;
                    Some(self.long(<[u8; 8]>::try_from(option.as_bytes().ok()?).ok()?))
                };
                let dropped =
                    [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop].map(|code| count(code).unwrap_or(0));
                let dropped = dropped[0].saturating_add(dropped[1]);
                if let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) {
                    let more = dropped.saturating_sub(interface.dropped);
                    interface.dropped = interface.dropped.max(dropped);
                    discards.count_all(Reason::CaptureDrops, "", more, 0, || {
                        format!("byte {at}: interface {}", statistics.if_id)
                    });
                }
            }
            // Blocks of names and secrets have no traffic.
            _ => {}
        }
        None
    }

    /// The packet of an obsolete packet block: interface, dropped packets, time, lengths, data.
    fn obsolete(&self, bytes: &[u8], at: u64, discards: &mut Discards) -> Option<Packet> {
        let (_, start) = OBSOLETE_PACKET;
        let captured = (bytes.len() >= start + 4).then(|| self.word(&bytes[20..24]) as usize);
        let Some(captured) = captured.filter(|&captured| captured <= bytes.len() - start - 4) else {
            discards.count(Reason::BrokenBlock, "obsolete packet block", bytes.len() as u64, || {
                format!("byte {at}")
            });
            return None;
        };
        let id = u32::from(self.short(&bytes[8..10]));
        let length = self.word(&bytes[24..28]);
        let Some(interface) = self.interfaces.get(id as usize) else {
            return self.no_interface(id, length, at, discards);
        };
        let time = u64::from(self.word(&bytes[12..16])) << 32 | u64::from(self.word(&bytes[16..20]));
        Some(Packet {
            time_ns: interface.time_ns(time),
            link_type: interface.link_type,
            data: start..start + captured,
            length: u64::from(length).max(captured as u64).saturating_sub(interface.check_sequence),
        })
    }

    fn no_interface(&self, id: u32, length: u32, at: u64, discards: &mut Discards) -> Option<Packet> {
        discards.count(Reason::NoInterface, "", length.into(), || format!("byte {at}: interface {id}"));
        None
    }

    /// Time format of an interface. The library reads offsets only in little-endian order and rejects powers of two.
    fn interface(&self, described: &InterfaceDescriptionBlock<'_>) -> Interface {
        let (mut resolution, mut offset_s, mut check_sequence) = (Some(1_000_000), 0, 0);
        for option in &described.options {
            match (option.code, option.as_bytes()) {
                (OptionCode::IfTsresol, Ok(&[power])) => {
                    let (base, power) = (if power & 0x80 == 0 { 10_u64 } else { 2 }, u32::from(power & 0x7f));
                    resolution = base.checked_pow(power);
                }
                (CHECK_SEQUENCE, Ok(&[length])) => check_sequence = length.into(),
                (OptionCode::IfTsoffset, Ok(value)) => {
                    if let Ok(value) = <[u8; 8]>::try_from(value) {
                        offset_s = if self.big_endian {
                            i64::from_be_bytes(value)
                        } else {
                            i64::from_le_bytes(value)
                        };
                    }
                }
                _ => {}
            }
        }
        Interface { link_type: described.linktype.0 as u32, resolution, offset_s, check_sequence, dropped: 0 }
    }

    fn short(&self, bytes: &[u8]) -> u16 {
        let short = [bytes[0], bytes[1]];
        if self.big_endian { u16::from_be_bytes(short) } else { u16::from_le_bytes(short) }
    }

    fn long(&self, bytes: [u8; 8]) -> u64 {
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    fn word(&self, bytes: &[u8]) -> u32 {
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }
}

impl Interface {
    fn time_ns(&self, time: u64) -> Option<i64> {
        let resolution = i128::from(self.resolution?);
        let time = i128::from(time);
        // Whole seconds are converted separately, because with a resolution of 2^-63 the product with 10^9 overflows 64
        // bits.
        let ns = time / resolution * NANOS + time % resolution * NANOS / resolution;
        i64::try_from(ns + i128::from(self.offset_s) * NANOS).ok()
    }
}

/// Position of the slice `part` within `whole`.
fn inside(whole: &[u8], part: &[u8]) -> std::ops::Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..(start + part.len()).min(whole.len())
}
