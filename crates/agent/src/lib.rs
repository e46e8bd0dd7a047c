//! Agent of a host: reads the counters of its interfaces and disks and reports their loads to controllers.
//!
//! ```text
//!      machine --Reading--> Reporter --Report--> client --HTTP--> controller
//! (sysfs, netlink)          |      ^                |
//!                 Meter, Pace      '--- Answer -----'
//! ```
//!
//! [`Reporter`] is a plain state machine: times, readings, replies and random numbers in, reports and [`Event`]s out.
//! [`machine`] and [`client`] are the adapters, and [`run`] is the loop between them. One thread per controller does
//! everything, independent of the others. Nothing is queued: a window that could not be sent is dropped and counted, since the
//! next one has newer data.
//!
//! A host with unreadable counters or a silent agent reports nothing. The controller then treats its links as unknown, which
//! counts as full. The agent never invents a load of zero.

mod body;
mod client;
mod clock;
mod counters;
mod disks;
mod event;
mod machine;
mod pace;
mod queues;
mod reading;
mod report;
mod run;
mod settings;
mod window;

pub use body::{Device, Link, Probe, Refused, Report, Skipped, Taken};
pub use client::Client;
pub use counters::Meter;
pub use disks::{Disk, Work};
pub use event::Event;
pub use machine::Machine;
pub use pace::Pace;
pub use reading::{Count, Interface, Reading};
pub use report::{Disks, Reporter};
pub use run::{Stopped, run};
pub use settings::{Given, Settings};
pub use window::{Gap, Window};
