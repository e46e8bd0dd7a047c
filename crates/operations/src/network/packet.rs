//! Packets on their way, and the ports that they cross.

use leeward_tcp::{Ack, Ecn, Segment};

/// Most ports between two hosts: of the hosts, their racks and their pods.
pub(super) const MOST_PORTS: usize = 6;
/// No packet.
pub(super) const NONE: u32 = u32::MAX;

/// Ports from one host to another, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    ports: [u32; MOST_PORTS],
    length: u8,
}

impl Path {
    /// Creates a path; ports beyond the most of a tree are left out.
    pub(super) fn new(ports: impl IntoIterator<Item = u32>) -> Path {
        let mut path = Path { ports: [0; MOST_PORTS], length: 0 };
        for (place, port) in path.ports.iter_mut().zip(ports) {
            *place = port;
            path.length += 1;
        }
        path
    }

    /// The port at a position; `None` after the last one.
    #[inline]
    pub(super) fn port(&self, position: u8) -> Option<u32> {
        (position < self.length).then(|| self.ports[usize::from(position)])
    }
}

/// Content of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    /// Bytes of a connection.
    Data(Segment),
    /// Acknowledgement of them.
    Ack(Ack),
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub payload: Payload,
    /// Number of its connection.
    pub connection: u32,
    /// Size with headers.
    pub bytes: u32,
    pub class: u8,
    /// Position of the next port in the path.
    pub(super) position: u8,
    path: Path,
    /// Time of arrival at a port with queues.
    pub(super) entered: u64,
    /// Next packet of the queue.
    pub(super) next: u32,
}

impl Packet {
    /// Creates a packet at its sender.
    pub fn new(payload: Payload, connection: u32, class: u8, path: Path) -> Packet {
        let bytes = match &payload {
            Payload::Data(segment) => segment.wire_bytes(),
            Payload::Ack(ack) => ack.wire_bytes(),
        };
        Packet { payload, connection, bytes, class, position: 0, path, entered: 0, next: NONE }
    }

    /// The next port; `None` at the receiver.
    #[inline]
    pub(super) fn port(&self) -> Option<u32> {
        self.path.port(self.position)
    }

    /// Marks a packet that is capable of marks. Returns true if it did.
    #[inline]
    pub(super) fn mark(&mut self) -> bool {
        match &mut self.payload {
            Payload::Data(segment) if segment.ecn != Ecn::No => {
                segment.ecn = Ecn::Marked;
                true
            }
            _ => false,
        }
    }
}

/// All packets on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    all: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// Adds a packet; returns its number.
    #[inline]
    pub fn add(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = packet;
                number
            }
            None => {
                self.all.push(packet);
                (self.all.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn get(&self, number: u32) -> &Packet {
        &self.all[number as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.all[number as usize]
    }

    /// Removes a packet.
    #[inline]
    pub fn take(&mut self, number: u32) -> Packet {
        self.free.push(number);
        self.all[number as usize]
    }
}
