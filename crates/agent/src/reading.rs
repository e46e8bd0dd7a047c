//! What is read of a machine at a time.

use leeward_fabric::Nanos;

use crate::disks::Disk;

/// What an interface counted one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Bytes.
    pub bytes: u64,
    /// Packets; they tell a counter that wrapped from one that began anew.
    pub packets: u64,
}

/// An interface as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The kernel's number of it, which stays when it is renamed.
    pub index: u32,
    /// What it is called.
    pub name: String,
    /// The kernel's number of the bond or bridge that it is part of.
    pub master: Option<u32>,
    /// Whether it is a card of the machine, and no bridge, bond, tunnel or virtual function, whose bytes cross one.
    pub physical: bool,
    /// What came in.
    pub received: Count,
    /// What went out.
    pub sent: Count,
    /// What it carries at most each way, in bits per second, nothing while it has no link; `None` if it does not say.
    pub speed_bps: Option<u64>,
    /// Bytes that wait to be sent at it; `None` if that cannot be read. At a bond nothing waits: it waits at the cards below.
    pub queued: Option<u64>,
}

/// What was read of a machine at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The monotonic clock.
    pub at: Nanos,
    /// The wall clock, since 1970.
    pub wall: Nanos,
    /// All interfaces.
    pub interfaces: Vec<Interface>,
    /// All disks.
    pub disks: Vec<Disk>,
    /// What of queues and disks could not be read, in words.
    pub unread: Vec<String>,
}
