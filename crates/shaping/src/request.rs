//! Requests, as far as their shaping depends on them.

use leeward_fabric::Nanos;
use leeward_traces::Kind;

/// Largest work of a request that counts, in the unit of its limits.
const MOST_WORK: f64 = 1e15;

/// A request at a server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// Read or write.
    pub kind: Kind,
    /// Payload in bytes. It counts towards the byte caps.
    pub size: u64,
    /// Start of the payload on the volume, in bytes, if it is known. Consecutive writes may be served as one batch.
    pub offset: Option<u64>,
    /// Work in the unit of the limits: seconds of service at a device, bytes on a network. NaN and a value below 0
    /// count as 0, a value above 1e15 as 1e15.
    pub work: f64,
    /// Deadline, for [`super::Order::Deadline`]; the latest time without one.
    pub deadline: Nanos,
    /// Decides between requests of one deadline, and between workloads of one start tag: the lower number is first.
    pub number: u64,
}

impl Request {
    /// The same request, with a work that can be added up.
    pub(crate) fn with_finite_work(self) -> Request {
        // NaN is not above 0.
        let work = if self.work > 0.0 { self.work.min(MOST_WORK) } else { 0.0 };
        Request { work, ..self }
    }
}

/// Name of a request from its arrival to its end. The ticket of a request that has ended names no later request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket {
    pub(crate) id: u32,
    pub(crate) generation: u32,
}
