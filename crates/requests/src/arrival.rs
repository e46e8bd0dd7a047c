//! Requests that workloads send.

use leeward_fabric::Nanos;
use leeward_traces::Kind;

/// A request, with its work at each stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// Send time, on the clock of the replay. Closed loops ignore it.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload in bytes; it counts towards the byte caps of a device.
    pub size: u64,
    /// Start of the payload on the volume, in bytes, if the trace records it. Consecutive writes may be
    /// served as one batch.
    pub offset: Option<u64>,
    /// Work at each of [`leeward_traces::Stage::ALL`], in that order: bytes, seconds of service at saturation, and
    /// bytes. Each amount is from 0 to 1e15.
    pub work: [f64; 3],
}

/// Request source of a workload: an open or a closed loop.
pub enum Source<'a> {
    /// Open loop, the replay of a trace: sends each request at its time, independent of earlier ones.
    /// Requests are in order of time.
    Open(Box<dyn Iterator<Item = Arrival> + 'a>),
    /// Closed loop, like a file copy: sends the next request when an earlier one ends. It is workload L of SLO table
    /// 3.1.
    Closed {
        /// Outstanding requests; at least 1.
        outstanding: u32,
        /// Send time of the first requests.
        from: Nanos,
        /// Requests to send, in order. If the iterator is endless, the run needs an end ([`super::Setup::until`]). Each
        /// request must have work in at least one stage.
        requests: Box<dyn Iterator<Item = Arrival> + 'a>,
    },
}

impl<'a> Source<'a> {
    /// Creates an open loop.
    pub fn open(arrivals: impl IntoIterator<Item = Arrival, IntoIter: 'a>) -> Source<'a> {
        Source::Open(Box::new(arrivals.into_iter()))
    }

    /// Creates a closed loop that starts at time 0.
    pub fn closed(outstanding: u32, requests: impl IntoIterator<Item = Arrival, IntoIter: 'a>) -> Source<'a> {
        Source::Closed { outstanding, from: Nanos(0), requests: Box::new(requests.into_iter()) }
    }
}
