//! The agent of a host: reads what its interfaces count, and reports what they carry to the controller.
//!
//! ```text
//! machine --Reading--> Reporter --Report--> client --HTTP--> controller
//!  (sysfs)             |      ^                |
//!            Meter, Pace      '--- Answer -----'
//! ```
//!
//! [`Reporter`] is a plain value: times, readings, answers and random numbers in, reports and [`Event`]s out. [`machine`]
//! and [`client`] are the edge, and [`run`] the loop between them. One thread does it all, and nothing is queued: a window
//! that could not be sent is dropped and counted, since the next one says what is true now.
//!
//! A host whose counters cannot be read, and one whose agent is silent, reports nothing, and the controller then takes its
//! links for unknown, which is as good as full. Nothing here ever makes up a load of zero.

mod client;
mod clock;
mod counters;
mod machine;
mod pace;
mod report;
mod run;
mod settings;

pub use client::Client;
pub use counters::{Count, Gap, Interface, Meter, Reading, Window};
pub use machine::Machine;
pub use pace::Pace;
pub use report::{Event, Link, Refused, Report, Reporter, Taken};
pub use run::{Stopped, run};
pub use settings::{Given, Settings};
