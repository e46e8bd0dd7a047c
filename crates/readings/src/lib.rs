//! State that hosts report beside the loads of their links and devices: speeds, queues, requests of disks, names
//! of disks, states of hosts, and pods. Sans I/O: the times of reports are the only clock.

mod disks;
mod hosts;
mod pods;
mod readings;

pub use self::disks::{Disks, ReportedDiskName};
pub use self::hosts::{HostReport, Hosts, KnownHost};
pub use self::pods::{PODS_PER_HOST, PodId, Pods, ReportedPod};
pub use self::readings::{KnownReading, LastReading, Reading, Readings, Requests};
