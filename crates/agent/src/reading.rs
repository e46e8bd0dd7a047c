//! One reading of a machine.

use leeward_fabric::Nanos;

use crate::count::Count;
use crate::disks::Disk;
use crate::pods::Pods;
use crate::volumes::Storage;

/// An interface at the time of the reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Kernel index, which stays when the interface is renamed.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kernel index of the bond or bridge that it belongs to.
    pub master: Option<u32>,
    /// True for a card of the machine; false for a bridge, bond, tunnel or virtual function, whose bytes cross a card.
    pub physical: bool,
    /// Received traffic.
    pub received: Count,
    /// Sent traffic.
    pub sent: Count,
    /// Speed in each direction in bits per second, 0 without a link; `None` if the interface does not report it.
    pub speed_bps: Option<u64>,
    /// Bytes queued for sending; `None` if unreadable. A bond has no queue of its own: packets wait at its cards.
    pub queued: Option<u64>,
}

/// One reading of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Monotonic clock.
    pub at: Nanos,
    /// Wall clock since 1970.
    pub wall: Nanos,
    /// All interfaces.
    pub interfaces: Vec<Interface>,
    /// All disks.
    pub disks: Vec<Disk>,
    /// Bytes on the volumes; `None` if there are no volumes to read, or one of them is unreadable.
    pub storage: Option<Storage>,
    /// Kubernetes pods; `None` if they are not read, or not with this reading.
    pub pods: Option<Pods>,
    /// Errors about queues, disks, volumes and pods that could not be read.
    pub unread: Vec<String>,
}
