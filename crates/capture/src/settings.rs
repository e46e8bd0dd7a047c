//! Settings for reading captures.

use crate::classes::Classes;
use crate::exports::Direction;
use crate::flow::Size;
use crate::packet::Tunnels;

/// Interpretation of the packets in a capture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Content {
    /// Decided by the first IP packet of a file: if it is an exported datagram, all packets are read as exports.
    #[default]
    Auto,
    /// Traffic: each packet is counted, except for exported datagrams, which are discards.
    Packets,
    /// Datagrams of sFlow, NetFlow or IPFIX: their contents are counted, the datagrams themselves are not.
    Exports,
}

impl Content {
    /// All kinds of content.
    pub const ALL: [Content; 3] = [Content::Auto, Content::Packets, Content::Exports];

    /// Name of the content in settings.
    pub fn name(self) -> &'static str {
        match self {
            Content::Auto => "auto",
            Content::Packets => "packets",
            Content::Exports => "exports",
        }
    }

    /// The content with this name.
    pub fn from_name(name: &str) -> Option<Content> {
        Content::ALL.into_iter().find(|content| content.name() == name)
    }
}

/// Settings for reading captures.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Length of an interval, in seconds.
    pub interval_s: u32,
    /// Definition of a packet's length.
    pub size: Size,
    /// Interpretation of captured packets.
    pub content: Content,
    /// Further ports of exported datagrams, in addition to 6343, 2055 and 4739. On other ports, exports are recognized
    /// if they are consistent.
    pub ports: Vec<u16>,
    /// Sampling rate of exporters that do not state theirs.
    pub sampling: Option<u32>,
    /// If true, counters of interfaces are stored.
    pub counters: bool,
    /// Directions to count, of exporters that state them.
    pub direction: Direction,
    /// Addresses of packets in tunnels.
    pub tunnels: Tunnels,
    /// Classes of service that are counted separately, if any.
    pub classes: Option<Classes>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            interval_s: 3600,
            size: Size::default(),
            content: Content::default(),
            ports: Vec::new(),
            sampling: None,
            counters: false,
            direction: Direction::default(),
            tunnels: Tunnels::default(),
            classes: None,
        }
    }
}
