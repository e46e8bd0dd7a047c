//! What whoever looks after an agent is told, in words.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

use crate::window::Gap;

/// What whoever looks after the agent is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The first report was taken in, or the first one after some were not.
    Reports {
        /// How many windows were dropped since the one before.
        dropped: u64,
    },
    /// A report was not taken in.
    Refused {
        /// Why.
        why: String,
        /// When the next one is sent.
        wait: Nanos,
    },
    /// Reports are taken in, and say nothing new.
    Stale,
    /// There is nothing to report.
    Gap(Gap),
    /// Interfaces cannot be read.
    Unread(String),
    /// Something else cannot be read, and is not in reports.
    Less(String),
    /// A disk that is to be reported is not there.
    NoDisk(String),
    /// The kernel does not count what this disk does.
    NotCounted(String),
    /// This disk is the only one of several that is counted, and nobody named it.
    LeftOver(String),
    /// The cluster has no device that is called like this disk.
    NoDevice(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Reports { dropped: 0 } => write!(f, "reports are taken in"),
            Event::Reports { dropped } => {
                write!(f, "reports are taken in; windows that were dropped before: {dropped}")
            }
            Event::Refused { why, wait } => {
                write!(f, "not reported: {why}; again in {:.1} s", wait.as_secs_f64())
            }
            Event::Stale => f.write_str(
                "reports say nothing new: another agent reports for this host, it is known to be down, \
                 or this machine's clock is behind",
            ),
            Event::Gap(gap) => write!(f, "nothing to report: {gap}"),
            Event::Unread(why) => write!(f, "nothing to report: interfaces cannot be read: {why}"),
            Event::Less(why) => write!(f, "not in reports: {why}"),
            Event::NoDisk(disk) => {
                write!(
                    f,
                    "not in reports: disk `{}` is not there; /sys/block lists those that are",
                    excerpt(disk)
                )
            }
            Event::NotCounted(disk) => {
                let disk = excerpt(disk);
                write!(
                    f,
                    "not in reports: disk `{disk}` is not counted: queue/iostats of it in /sys/block is 0, and 1 has it counted"
                )
            }
            Event::LeftOver(disk) => {
                let disk = excerpt(disk);
                write!(
                    f,
                    "not in reports: disk `{disk}` would be taken for the only one, since the others are not counted; --device \
                     {disk}=NAME says what the cluster calls it"
                )
            }
            Event::NoDevice(name) => {
                let (name, disk) =
                    (excerpt(name), excerpt(name.split_once(':').map_or("", |(_, disk)| disk)));
                write!(
                    f,
                    "not taken in: the cluster has no device `{name}`; --device {disk}=NAME says what it calls the disk, and \
                     disks that no --device names are left out"
                )
            }
        }
    }
}
