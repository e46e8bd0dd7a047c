//! One request of a trace.

use leeward_fabric::Nanos;

/// Which way the payload goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// From the volume to the client.
    Read,
    /// From the client to the volume.
    Write,
}

/// One request to a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it was made, from wherever the trace counts.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload, in bytes.
    pub size: u64,
    /// Where on the volume its payload starts, in bytes; None if the trace does not say.
    pub offset: Option<u64>,
}
