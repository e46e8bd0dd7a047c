//! Events of an agent as log lines.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

use crate::window::Gap;

/// An event for the operator's log.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A report was accepted: the first one, or the first one after rejections.
    Reports {
        /// Number of windows dropped since the last accepted report.
        dropped: u64,
    },
    /// A report was not accepted.
    Rejected {
        /// Reason.
        why: String,
        /// Time until the next attempt.
        wait: Nanos,
    },
    /// Reports are accepted but have no new data.
    Stale,
    /// A reading without a window.
    Gap(Gap),
    /// Interfaces could not be read.
    InterfacesUnreadable(String),
    /// Other data could not be read and is missing from reports.
    Unreadable(String),
    /// A selected disk does not exist.
    NoDisk(String),
    /// The kernel does not count this disk's work.
    NotCounted(String),
    /// This disk is the only counted one of several, and none was selected by name.
    LeftOver(String),
    /// The cluster has no device with this disk's name.
    NoDevice(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Reports { dropped: 0 } => write!(f, "reports are taken in"),
            Event::Reports { dropped } => {
                write!(f, "reports are taken in; windows that were dropped before: {dropped}")
            }
            Event::Rejected { why, wait } => {
                write!(f, "not reported: {why}; again in {:.1} s", wait.as_secs_f64())
            }
            Event::Stale => f.write_str(
                "reports say nothing new: another agent reports for this host, it is known to be down, \
                 or this machine's clock is behind",
            ),
            Event::Gap(gap) => write!(f, "nothing to report: {gap}"),
            Event::InterfacesUnreadable(why) => {
                write!(f, "nothing to report: interfaces cannot be read: {why}")
            }
            Event::Unreadable(why) => write!(f, "not in reports: {why}"),
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
