//! Looking on while a run happens.

use leeward_fabric::Nanos;
use leeward_traces::{Kind, Stage};

/// Someone who is told what happens, in order of time. `()` looks away, and costs nothing.
pub trait Watch {
    /// A request of `workload` is let pass by its limits at a stage, with so much work; demoted ones are not.
    fn passed(&mut self, _at: Nanos, _workload: usize, _stage: Stage, _work: f64) {}
    /// A request comes to a server; it may wait behind a limiter there.
    fn came(&mut self, _at: Nanos, _server: usize, _of: Of) {}
    /// A server is handed a request, or a link begins to send a packet of it.
    fn started(&mut self, _at: Nanos, _server: usize, _of: Of) {}
    /// A server has served a request or packet. A device's latency comes after.
    fn served(&mut self, _at: Nanos, _server: usize, _of: Of) {}
}

impl Watch for () {}

/// A request, or a packet of it, at a server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Of {
    /// Which workload.
    pub workload: usize,
    /// Which request of all, from 0 in order of arrival.
    pub number: u64,
    /// Read or write.
    pub kind: Kind,
    /// Rank of its priority at this server, 0 first; `u32::MAX` if it is demoted. 0 in orders without priorities.
    pub rank: u32,
    /// Work there: of what is started or served, a packet's own.
    pub work: f64,
}
