//! What one packet or one exported record says of traffic.

use std::net::IpAddr;

/// Traffic from one address to another, as it was seen: not yet scaled by `rate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// When it began and ended, in nanoseconds since 1970; the same for a packet.
    pub start_ns: i64,
    /// The end; not before the start.
    pub end_ns: i64,
    /// Who sent it.
    pub source: IpAddr,
    /// Who it was for.
    pub destination: IpAddr,
    /// Its ports at the two ends, where there are any.
    pub ports: Option<(u16, u16)>,
    /// Bytes of the packets that were seen.
    pub bytes: u64,
    /// Packets that were seen, at least one.
    pub packets: u64,
    /// How many packets each seen one stands for, at least 1: the sampling rate.
    pub rate: u32,
}

/// Which bytes of a packet count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Size {
    /// The frame, from its Ethernet header to the end of its payload, without the check sequence: what a capture
    /// calls the original length.
    #[default]
    Frame,
    /// The IP packet with its headers (layer 3), which is what NetFlow and IPFIX count.
    Ip,
}

impl Size {
    /// Both.
    pub const ALL: [Size; 2] = [Size::Frame, Size::Ip];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Size::Frame => "frame",
            Size::Ip => "ip",
        }
    }

    /// The size of that name.
    pub fn named(name: &str) -> Option<Size> {
        Size::ALL.into_iter().find(|size| size.name() == name)
    }

    /// Of a packet whose frame and IP lengths are known.
    pub(crate) fn of(self, frame: u64, ip: u64) -> u64 {
        match self {
            Size::Frame => frame,
            Size::Ip => ip,
        }
    }
}

/// Bytes of an Ethernet header, which a record of IP bytes leaves out.
pub(crate) const ETHERNET: u64 = 14;
/// Bytes of the check sequence behind an Ethernet frame, which sFlow counts and captures do not.
pub(crate) const CHECK_SEQUENCE: u64 = 4;
