//! Segments and acknowledgements: small values that are copied.

use leeward_fabric::Nanos;

/// Bytes of headers before a segment's payload: IPv4 20, TCP 20, timestamps 12 (RFC 7323, appendix A).
pub const HEADER: u32 = 52;

/// The largest payload at an MTU of 9000 bytes.
pub const MSS: u32 = 9000 - HEADER;

/// Blocks of a selective acknowledgement that fit next to the timestamp option (RFC 2018, section 3).
pub const BLOCKS: usize = 3;

/// ECN field of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable: a queue drops the packet instead of marking it.
    #[default]
    No,
    /// ECN-capable.
    Capable,
    /// Congestion experienced: a queue has marked the packet.
    Marked,
}

/// A segment: payload bytes on their way to a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub start: u64,
    /// Send time: the timestamp.
    pub sent: Nanos,
    /// Number of bytes.
    pub length: u32,
    /// True if these bytes were sent before.
    pub again: bool,
    /// ECN field; a queue that marks changes [`Ecn::Capable`] to [`Ecn::Marked`].
    pub ecn: Ecn,
    /// True if the sender has reduced its window for the echoed marks (CWR).
    pub reduced: bool,
    /// Division in which the segment was sent; 0 without divisions.
    pub division: u8,
}

impl Segment {
    /// Sequence number after the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Size as an IP packet, in bytes.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        self.length + HEADER
    }
}

/// Bytes from `start` up to `end`, exclusive. A block is empty if `start` equals `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// First sequence number.
    pub start: u64,
    /// Sequence number after the last byte.
    pub end: u64,
}

impl Block {
    /// Returns true if the block has no bytes.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// Acknowledgement of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// All bytes before this one have arrived.
    pub cumulative: u64,
    /// Blocks beyond `cumulative` that have arrived, the latest first; blocks after the first empty one are meaningless
    /// (RFC 2018).
    pub blocks: [Block; BLOCKS],
    /// Echoed timestamp (RFC 7323, section 4.3).
    pub echo: Nanos,
    /// ECN echo. A switch that announces circuits sets it too (Etalon, section 4.4).
    pub ece: bool,
    /// Division in which the segment with the echoed timestamp was sent.
    pub sent_in: u8,
    /// Division in which this acknowledgement was sent.
    pub division: u8,
}

impl Ack {
    /// Size as an IP packet, in bytes.
    #[inline]
    pub fn wire_bytes(&self) -> u32 {
        match self.blocks.iter().filter(|block| !block.is_empty()).count() as u32 {
            0 => HEADER,
            // The SACK option and two bytes of alignment.
            blocks => HEADER + 4 + 8 * blocks,
        }
    }
}
