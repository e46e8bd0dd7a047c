//! Flows: the traffic of one packet or of one exported record.

use std::net::IpAddr;

use leeward_fabric::Dscp;

/// Observed traffic from one address to another, not yet scaled by `rate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Time of the first packet, in nanoseconds since 1970; equal to `end_ns` for a single packet.
    pub start_ns: i64,
    /// Time of the last packet, not before the start.
    pub end_ns: i64,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Ports of source and destination, if there are any.
    pub ports: Option<(u16, u16)>,
    /// Code point of the packets, if it is known.
    pub dscp: Option<Dscp>,
    /// Bytes of the observed packets.
    pub bytes: u64,
    /// Number of observed packets, at least one.
    pub packets: u64,
    /// Sampling rate, at least 1: one of every `rate` packets was observed.
    pub rate: u32,
}

/// Definition of a packet's length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Size {
    /// The frame from its Ethernet header to the end of its payload, without the check sequence. Captures state this
    /// length as the original length of a packet.
    #[default]
    Frame,
    /// The IP packet with its headers (layer 3), as in NetFlow and IPFIX.
    Ip,
}

impl Size {
    /// All definitions.
    pub const ALL: [Size; 2] = [Size::Frame, Size::Ip];

    /// Name of the length in settings.
    pub fn name(self) -> &'static str {
        match self {
            Size::Frame => "frame",
            Size::Ip => "ip",
        }
    }

    /// The length with this name.
    pub fn from_name(name: &str) -> Option<Size> {
        Size::ALL.into_iter().find(|size| size.name() == name)
    }

    /// The length of a packet under this definition, from its frame length and its IP length.
    pub(crate) fn of(self, frame: u64, ip: u64) -> u64 {
        match self {
            Size::Frame => frame,
            Size::Ip => ip,
        }
    }
}

/// Length of an Ethernet header, in bytes. A count of IP bytes leaves it out.
pub(crate) const ETHERNET: u64 = 14;
/// Length of the check sequence at the end of an Ethernet frame, in bytes. Lengths in sFlow include the check sequence;
/// lengths in captures do not.
pub(crate) const CHECK_SEQUENCE: u64 = 4;
