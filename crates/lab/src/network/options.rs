//! Options of a network.

use leeward_fabric::Bytes;

/// Bytes that may wait for a link: a thousand frames, as at an interface.
const QUEUE: Bytes = Bytes(1_514_000);
/// Largest size of a disk. Its file is sparse.
const DISK_SIZE: Bytes = Bytes(1 << 30);

/// Options of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkOptions {
    /// Number by which all rates are divided.
    pub scale: u32,
    /// Bytes that may wait for a link.
    pub queue: Bytes,
    /// Bytes that may cross a link at once. By default 16 KiB, and more for rates above 600 Mb/s.
    pub burst: Option<Bytes>,
    /// Largest size of a disk; a device with a smaller capacity has that.
    pub disk_size: Bytes,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions { scale: 1, queue: QUEUE, burst: None, disk_size: DISK_SIZE }
    }
}
