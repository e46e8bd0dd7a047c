//! State that hosts report beside the loads of their links and devices: speeds, queues, requests of disks, and the names
//! of disks. Sans I/O: the windows of the reports are the only clock.

mod disks;
mod readings;

pub use self::disks::{Disks, ReportedDiskName};
pub use self::readings::{KnownReading, LastReading, Reading, Readings, Requests};
