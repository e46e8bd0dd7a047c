//! The agent of a host: reads what its interfaces and disks count, and reports what they carry to controllers.
//!
//! ```text
//!      machine --Reading--> Reporter --Report--> client --HTTP--> controller
//! (sysfs, netlink)          |      ^                |
//!                 Meter, Pace      '--- Answer -----'
//! ```
//!
//! [`Reporter`] is a plain value: times, readings, answers and random numbers in, reports and [`Event`]s out. [`machine`]
//! and [`client`] are the edge, and [`run`] the loop between them. One thread does it all, for each controller another one as if it were
//! alone, and nothing is queued: a window that could not be sent is dropped and counted, since the next one says what is true
//! now.
//!
//! A host whose counters cannot be read, and one whose agent is silent, reports nothing, and the controller then takes its
//! links for unknown, which is as good as full. Nothing here ever makes up a load of zero.

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
