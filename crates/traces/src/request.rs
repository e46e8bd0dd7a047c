//! One request of a trace.

use leeward_fabric::Nanos;

/// Direction of the payload.
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
    /// Time of the request, from the origin of the trace.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload, in bytes.
    pub size: u64,
    /// Start of the payload on the volume, in bytes; `None` if the trace has no offsets.
    pub offset: Option<u64>,
}
