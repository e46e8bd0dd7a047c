//! Events of the enforcer, as lines of its log.

use std::fmt;
use std::time::Duration;

use leeward_fabric::input::InputError;

use crate::promises::LeftOut;

/// An event.
#[derive(Debug)]
pub enum Event {
    /// Promises were read, at the start or after a change of a file.
    Promises {
        /// Name of the host.
        host: String,
        /// Number of workloads whose packets leave the host.
        workloads: usize,
    },
    /// A file cannot be read; the promises from before stay enforced.
    Invalid(InputError),
    /// A workload is not enforced.
    LeftOut {
        /// Name of the interface; `None` for all.
        interface: Option<String>,
        /// The workload and the reason.
        left_out: LeftOut,
    },
    /// Note about a limit.
    Note(String),
    /// An interface was programmed.
    Enforced {
        /// Name of the interface.
        interface: String,
        /// Number of workloads with a class.
        workloads: usize,
        /// Number of classes, with those of the link and of all other packets.
        classes: usize,
        /// Time that it took.
        took: Duration,
    },
    /// The kernel differs from what was programmed, because of another hand.
    Drift {
        /// Name of the interface.
        interface: String,
        /// The difference.
        difference: String,
        /// True if it was mended.
        is_mended: bool,
    },
    /// An interface is gone.
    Gone {
        /// Name of the interface.
        interface: String,
    },
    /// An interface has no carrier, so its speed is unknown.
    NoCarrier {
        /// Name of the interface.
        interface: String,
    },
    /// An interface cannot be enforced.
    Failed {
        /// Reason, with the name of the interface.
        error: String,
    },
    /// An interface has its former state again.
    Undone {
        /// Name of the interface.
        interface: String,
        /// False if the interface is gone.
        exists: bool,
    },
    /// Nothing was left to undo.
    NothingToUndo,
    /// An event of the lease.
    Lease(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Promises { host, workloads: 0 } => {
                write!(f, "no workload has the host `{host}`; all packets are best effort")
            }
            Event::Promises { host, workloads } => write!(f, "{host}: {workloads} workloads"),
            Event::Invalid(error) => write!(f, "{error}; the promises from before stay enforced"),
            Event::LeftOut { interface: None, left_out } => write!(f, "error: {left_out}"),
            Event::LeftOut { interface: Some(interface), left_out } => {
                write!(f, "error: {interface}: {left_out}")
            }
            Event::Note(note) => write!(f, "note: {note}"),
            Event::Enforced { interface, workloads, classes, took } => {
                let took = took.as_secs_f64() * 1e3;
                write!(f, "{interface}: enforces {workloads} workloads by {classes} classes ({took:.0} ms)")
            }
            Event::Drift { interface, difference, is_mended: true } => {
                write!(f, "{interface}: drift: {difference}; mended")
            }
            Event::Drift { interface, difference, is_mended: false } => {
                write!(f, "{interface}: drift: {difference}; not mended")
            }
            Event::Gone { interface } => write!(f, "{interface}: the interface is gone"),
            Event::NoCarrier { interface } => {
                write!(
                    f,
                    "{interface}: no carrier, so its speed is unknown; it is programmed when it has one"
                )
            }
            Event::Failed { error } => write!(f, "error: {error}"),
            Event::Undone { interface, exists: true } => write!(f, "{interface}: undone"),
            Event::Undone { interface, exists: false } => {
                write!(f, "{interface}: the interface is gone; its table is deleted")
            }
            Event::NothingToUndo => f.write_str("nothing to undo"),
            Event::Lease(line) => f.write_str(line),
        }
    }
}
