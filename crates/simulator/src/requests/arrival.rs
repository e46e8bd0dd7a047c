//! What workloads send.

use leeward_fabric::Nanos;
use leeward_traces::Kind;

/// A request, and its work at each stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// When it is made, from wherever the replay counts. Of no account in a closed loop.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload, in bytes: what counts for the byte caps of a device.
    pub size: u64,
    /// Where its payload starts on the volume, in bytes, if the trace says: writes that follow one another may be served as one batch.
    pub offset: Option<u64>,
    /// Work at [`leeward_traces::Stage::ALL`], in that order: bytes, seconds of service at saturation, bytes. From 0 to 1e15.
    pub work: [f64; 3],
}

/// When a workload sends its requests.
pub enum Source<'a> {
    /// Each at its time, whatever became of those before: the replay of a trace. In order of time.
    Open(Box<dyn Iterator<Item = Arrival> + 'a>),
    /// The next when an earlier one is done, as a file copy does: workload L of SLO table 3.1.
    Closed {
        /// Requests under way at a time; at least 1.
        outstanding: u32,
        /// When the first ones are sent.
        from: Nanos,
        /// What is sent, in order. Without an end, the run needs one ([`super::Setup::until`]). Each request must have work somewhere.
        requests: Box<dyn Iterator<Item = Arrival> + 'a>,
    },
}

impl<'a> Source<'a> {
    /// An open loop.
    pub fn open(arrivals: impl IntoIterator<Item = Arrival, IntoIter: 'a>) -> Source<'a> {
        Source::Open(Box::new(arrivals.into_iter()))
    }

    /// A closed loop from time 0 on.
    pub fn closed(outstanding: u32, requests: impl IntoIterator<Item = Arrival, IntoIter: 'a>) -> Source<'a> {
        Source::Closed { outstanding, from: Nanos(0), requests: Box::new(requests.into_iter()) }
    }
}
