//! Records of a run.

use leeward_fabric::{HostId, Nanos, ResourceId};

/// Traffic of a link in a window, by one class of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes sent, with headers.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Time that the sent packets waited, in nanoseconds, summed over packets.
    pub waited: u64,
}

impl Traffic {
    /// Counts a packet.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32, wait: u64, marked: bool) {
        self.bytes += u64::from(bytes);
        self.packets += 1;
        self.marked += u64::from(marked);
        self.waited = self.waited.saturating_add(wait);
    }
}

/// Traffic of a link of a rack or pod in a window, by class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkRecord {
    /// Start of the window.
    pub start: Nanos,
    /// The link.
    pub link: ResourceId,
    /// Number of the class.
    pub class: u32,
    /// The traffic.
    pub traffic: Traffic,
}

/// A finished operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationRecord {
    /// Number of the job's kind.
    pub job: u32,
    /// Number of the operation's kind.
    pub operation: u32,
    /// Host that reads or writes.
    pub client: HostId,
    /// Host of the data.
    pub server: HostId,
    /// Bytes read or written.
    pub bytes: u64,
    /// Time of its request.
    pub began: Nanos,
    /// Time at which the client had the data, or knew of the write.
    pub ended: Nanos,
    /// Time in the server: processing, and waiting for the device and using it. The rest is the network.
    pub served: Nanos,
    /// True if the data were computed from other chunks of a stripe; `server` then has the chunk that came late.
    pub degraded: bool,
}

impl OperationRecord {
    /// Time from the request to the end.
    pub fn latency(&self) -> Nanos {
        self.ended.since(self.began)
    }

    /// Part of the latency on the network.
    pub fn on_network(&self) -> Nanos {
        self.latency().since(self.served)
    }
}

/// A finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRecord {
    /// Number of the job's kind.
    pub job: u32,
    /// Number of the job, of those of its kind.
    pub number: u32,
    /// Its start.
    pub began: Nanos,
    /// End of its last stage.
    pub ended: Nanos,
}

/// A worker of a finished stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerRecord {
    /// Number of the job's kind.
    pub job: u32,
    /// Number of the job, of those of its kind.
    pub number: u32,
    /// Number of the stage.
    pub stage: u32,
    /// Number of the worker.
    pub worker: u32,
    /// Host of the worker.
    pub host: HostId,
    /// Its start.
    pub began: Nanos,
    /// Its end.
    pub ended: Nanos,
    /// Time that it computed.
    pub computed: Nanos,
}

/// Records of a run. Operations, jobs and workers that began before the end of the warm-up, and those that have not ended, are
/// left out, and so are those of jobs without `record`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    /// Operations, in the order of their end.
    pub operations: Vec<OperationRecord>,
    /// Jobs, in the order of their end.
    pub jobs: Vec<JobRecord>,
    /// Workers of stages, in the order of their end.
    pub workers: Vec<WorkerRecord>,
    /// Traffic of links, by window, link and class.
    pub links: Vec<LinkRecord>,
    /// Number of packets with data that reached their host, of the whole run.
    pub data_packets: u64,
    /// Number of acknowledgements that reached their host.
    pub ack_packets: u64,
    /// Recorded operations that began after the warm-up and had not ended at the end. Latencies lack them.
    pub unfinished: u64,
    /// Jobs that had not ended at the end, likewise.
    pub unfinished_jobs: u64,
    /// Segments of all connections, repeated segments among them, and expiries of their retransmission timers.
    pub segments: u64,
    /// Repeated segments.
    pub retransmitted: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
}
