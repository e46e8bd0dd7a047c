//! What travels: segments one way, acknowledgements the other. Small values, copied.

use leeward_fabric::Nanos;

/// Bytes of headers before a segment's payload: IPv4 20, TCP 20, timestamps 12 (RFC 7323, appendix A).
pub const HEADER: u32 = 52;

/// The largest payload at an MTU of 9000 bytes.
pub const MSS: u32 = 9000 - HEADER;

/// Blocks of a selective acknowledgement that fit beside timestamps (RFC 2018, section 3).
pub const BLOCKS: usize = 3;

/// What the network may do to say that it is congested (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable: a queue drops instead.
    #[default]
    No,
    /// ECN-capable.
    Capable,
    /// Congestion experienced: a queue has marked it.
    Marked,
}

/// Bytes on their way to a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub start: u64,
    /// When it left the sender: its timestamp.
    pub sent: Nanos,
    /// How many bytes.
    pub length: u32,
    /// Whether these bytes were sent before.
    pub again: bool,
    /// A queue that would mark sets [`Ecn::Marked`] where it is [`Ecn::Capable`].
    pub ecn: Ecn,
    /// The sender has reduced its window for the marks it was told of (CWR).
    pub reduced: bool,
    /// The division in which it was sent; 0 without divisions.
    pub division: u8,
}

impl Segment {
    /// The sequence number after the last byte.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Its size as an IP packet, in bytes.
    pub fn wire_bytes(&self) -> u32 {
        self.length + HEADER
    }
}

/// Bytes from `start` up to `end`, which is not among them. Nothing if these are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// First sequence number.
    pub start: u64,
    /// The one after the last.
    pub end: u64,
}

impl Block {
    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// What a receiver tells its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// All bytes before this one have arrived.
    pub cumulative: u64,
    /// Bytes beyond it that have arrived, the latest first; those after the first empty one say nothing (RFC 2018).
    pub blocks: [Block; BLOCKS],
    /// The timestamp that is echoed (RFC 7323, section 4.3).
    pub echo: Nanos,
    /// The ECN echo. A switch that tells of circuits sets it too (Etalon, section 4.4).
    pub ece: bool,
    /// The division in which the segment with the echoed timestamp was sent.
    pub sent_in: u8,
    /// The division in which this was sent.
    pub division: u8,
}

impl Ack {
    /// Its size as an IP packet, in bytes.
    pub fn wire_bytes(&self) -> u32 {
        match self.blocks.iter().filter(|block| !block.is_empty()).count() as u32 {
            0 => HEADER,
            // The option and two bytes that align it.
            blocks => HEADER + 4 + 8 * blocks,
        }
    }
}
