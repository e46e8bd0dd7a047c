//! Agent of a host: reads the counters of its interfaces, disks and pods and the storage of its volumes, and reports them
//! to controllers.
//!
//! ```text
//!      machine --Reading--> Reporter --Report--> client --HTTP--> controller
//! (sysfs, netlink)           |     ^                |
//!           Meter, ReportSchedule  '---- Reply -----'
//! ```
//!
//! [`Reporter`] is a plain state machine: times, readings, replies and random numbers go in, reports and [`Event`]s
//! come out. [`machine`] and [`client`] are the adapters, and [`run`] is the loop between them. One thread per
//! controller reads and reports, independent of the other threads. Nothing is queued: a window that could not be sent
//! is dropped and counted, because the next one has newer data.
//!
//! A host with unreadable counters or a silent agent reports nothing. The controller then treats the host's links as
//! unknown, and thus as full. The agent never reports missing data as a load of zero.

mod body;
mod client;
mod clock;
mod count;
mod counters;
mod disks;
mod event;
mod liveness;
mod machine;
mod marked;
mod pod_rates;
mod pods;
mod queues;
mod reading;
mod report;
mod report_schedule;
mod run;
mod settings;
mod volumes;
mod window;

pub use body::{Acceptance, Device, HostStorage, Link, PodTraffic, Probe, Rejection, Report, SkippedParts};
pub use client::Client;
pub use count::Count;
pub use counters::Meter;
pub use disks::{Disk, DiskWork};
pub use event::Event;
pub use machine::Machine;
pub use pods::{LeftOut, Pod, PodId, Pods};
pub use reading::{Interface, Reading};
pub use report::{Disks, Reporter};
pub use report_schedule::ReportSchedule;
pub use run::{StopReason, run};
pub use settings::{Arguments, Settings};
pub use volumes::Storage;
pub use window::{Gap, Window};
