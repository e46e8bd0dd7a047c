//! Events of an agent as log lines.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

use crate::pods::LeftOut;
use crate::window::Gap;

/// An event for the operator's log.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The first report was accepted, or the first report after rejections.
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
    /// Several disks exist, but only this disk has counters, and no disk was selected by name.
    SoleCounted(String),
    /// Some pods have no counters of their own.
    PodsLeftOut(LeftOut),
    /// The cluster has no device with this disk's name.
    NoDevice(String),
    /// The agent reports less often than the controller expects.
    Rare {
        /// Interval of the agent.
        own: Nanos,
        /// Interval of the controller, in seconds.
        needed_s: f64,
    },
    /// The controller bounded the load of this link, or the stored bytes of this host, by the capacity in the cluster
    /// file.
    Clamped(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Reports { dropped: 0 } => write!(f, "reports accepted"),
            Event::Reports { dropped } => {
                write!(f, "reports accepted; windows dropped before: {dropped}")
            }
            Event::Rejected { why, wait } => {
                write!(f, "report failed: {why}; retry in {:.1} s", wait.as_secs_f64())
            }
            Event::Stale => f.write_str(
                "reports have no new data: another agent reports for this host, the host is down, or this machine's \
                 clock is behind",
            ),
            Event::Gap(gap) => write!(f, "nothing to report: {gap}"),
            Event::InterfacesUnreadable(why) => {
                write!(f, "nothing to report: interfaces cannot be read: {why}")
            }
            Event::Unreadable(why) => write!(f, "not in reports: {why}"),
            Event::NoDisk(disk) => {
                write!(
                    f,
                    "not in reports: disk `{}` does not exist; /sys/block lists the existing ones",
                    excerpt(disk)
                )
            }
            Event::NotCounted(disk) => {
                let disk = excerpt(disk);
                write!(
                    f,
                    "not in reports: disk `{disk}` is not counted: its queue/iostats in /sys/block is 0; set it to 1"
                )
            }
            Event::SoleCounted(disk) => {
                let disk = excerpt(disk);
                write!(
                    f,
                    "not in reports: disk `{disk}` would look like the only one, since the others are not counted; \
                     name it with --disk {disk}=NAME"
                )
            }
            Event::PodsLeftOut(left_out) => write!(f, "not in reports: {left_out}"),
            Event::NoDevice(name) => {
                let (name, disk) =
                    (excerpt(name), excerpt(name.split_once(':').map_or("", |(_, disk)| disk)));
                write!(
                    f,
                    "not accepted: the cluster has no device `{name}`; --disk {disk}=NAME gives the disk's \
                     name in the cluster, and disks without a --disk are left out"
                )
            }
            Event::Rare { own, needed_s } => write!(
                f,
                "reports are too rare: one every {own}, and the controller expects one every {needed_s} s; the links \
                 are unknown in between: set --interval {needed_s}s"
            ),
            Event::Clamped(host) if !host.contains(':') => write!(
                f,
                "`{}`: the used bytes are above the storage in the cluster file and count as this storage; correct the \
                 cluster file, or the volumes of --volume",
                excerpt(host)
            ),
            Event::Clamped(name) => write!(
                f,
                "`{}`: the load is above the capacity in the cluster file and counts as this capacity; correct the \
                 cluster file, or name the interfaces with --interface",
                excerpt(name)
            ),
        }
    }
}
