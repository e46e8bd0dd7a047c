//! Simulated servers, and the limits enforced for each workload.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_shaping::{Batch, Caps, OverLimit, StartCaps};
use leeward_slo::Slo;

use super::scheduling::Scheduling;

/// Servers, the workloads that cross them, and recording options.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Links and devices.
    pub servers: Vec<Server>,
    /// Workloads, in the order of their sources.
    pub workloads: Vec<Enforced>,
    /// Largest packet of a link, in bytes; at least 1. A link may switch to a higher priority after each packet, and
    /// each packet proceeds to the next link independently. `None`: requests are sent whole.
    pub packet: Option<f64>,
    /// Time from which on no requests are sent. Requests in progress are served to their end.
    pub until: Option<Nanos>,
    /// Length of the windows that are checked against an SLO (SLO section 4.3); above 0.
    pub window: Nanos,
    /// Length of the intervals that count violations (SLO figure 3.1); above 0.
    pub interval: Nanos,
    /// If true, the report has a row for each request.
    pub rows: bool,
    /// For each workload, times of its requests at a device in addition to their work and the device's latency.
    /// Requests use them in order, then again from the first. Empty for workloads without such times; the whole list
    /// may also be empty. The device serves other requests meanwhile.
    pub tails: Vec<Arc<[Nanos]>>,
}

impl Setup {
    /// Creates a setup with whole requests, no end, windows of three minutes, intervals of ten seconds, and
    /// no rows.
    pub fn new(servers: Vec<Server>, workloads: Vec<Enforced>) -> Setup {
        Setup {
            servers,
            workloads,
            packet: None,
            until: None,
            window: Nanos(180 * Nanos::SECOND.0),
            interval: Nanos(10 * Nanos::SECOND.0),
            rows: false,
            tails: Vec::new(),
        }
    }
}

/// A queue and its server.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Name for messages.
    pub name: String,
    /// Work per second: bytes on a link, seconds of service at a device (1 for one device).
    pub capacity: f64,
    /// Time for which every request or packet stays after its service, and after the latency of a device. The server is
    /// free meanwhile, and the request occupies no place of a device.
    pub latency: Nanos,
    /// Service order.
    pub order: Scheduling,
    /// Device caps; `None` for a link, which serves one request or packet at a time.
    pub device: Option<Device>,
    /// Largest numbers of reads and of writes that a device has started and not finished, in addition to the cap on
    /// all requests; at least 1. No caps by default.
    pub outstanding_by_kind: [u32; 2],
}

impl Server {
    /// Creates a link with strict priorities; capacity in bytes per second.
    pub fn link(name: &str, capacity: f64) -> Server {
        Server {
            name: name.into(),
            capacity,
            latency: Nanos(0),
            order: Scheduling::Priority,
            device: None,
            outstanding_by_kind: [u32::MAX; 2],
        }
    }

    /// Creates one device with strict priorities.
    pub fn device(name: &str, device: Device) -> Server {
        Server { device: Some(device), ..Server::link(name, 1.0) }
    }

    /// Caps on the requests that the server starts. A link starts one after another.
    pub(super) fn caps(&self) -> Caps {
        let Some(Device { outstanding, read_bytes, write_bytes, behind, batch, .. }) = self.device else {
            return Caps::NONE;
        };
        let [reads, writes] = self.outstanding_by_kind;
        Caps { outstanding, reads, writes, read_bytes, write_bytes, behind, batch }
    }

    /// Sets the caps of a device; a link has none.
    pub fn set_caps(&mut self, caps: &Caps) {
        let Some(device) = &mut self.device else { return };
        let Caps { outstanding, reads, writes, read_bytes, write_bytes, behind, batch } = *caps;
        *device = Device { outstanding, read_bytes, write_bytes, behind, batch, ..*device };
        self.outstanding_by_kind = [reads, writes];
    }
}

/// Caps of a device on requests in progress, and times in addition to the work of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Largest number of requests started and not finished; at least 1. A batch counts as one.
    pub outstanding: u32,
    /// Largest number of bytes of reads started and not finished. One read may always be in progress.
    pub read_bytes: u64,
    /// Largest number of bytes of writes started and not finished. One write may always be in progress.
    pub write_bytes: u64,
    /// Caps on starts while a request of a higher priority is in progress.
    pub behind: Option<StartCaps>,
    /// Time of a read in addition to its work, during which the device serves others. Its latency without queueing is
    /// this time plus its work.
    pub read_latency: Nanos,
    /// Time of a write in addition to its work.
    pub write_latency: Nanos,
    /// Device time lost when a request follows a request of another workload, like a seek of a disk's head.
    pub turn: Nanos,
    /// Batching of consecutive writes, if any.
    pub batch: Option<Batch>,
}

impl Device {
    /// An SSD with `outstanding` requests in progress and no other caps; switching between workloads costs
    /// nothing.
    pub fn ssd(outstanding: u32) -> Device {
        Device {
            outstanding,
            read_bytes: u64::MAX,
            write_bytes: u64::MAX,
            behind: None,
            read_latency: Nanos(0),
            write_latency: Nanos(0),
            turn: Nanos(0),
            batch: None,
        }
    }
}

/// A workload, its route, and the limits enforced for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Enforced {
    /// Name for messages.
    pub name: String,
    /// Guaranteed SLO: reports include its percentile in each window, and requests above it are violations.
    pub slo: Option<Slo>,
    /// Weight of the workload at a device; above 0. The weight applies to [`Scheduling::Shares`] and
    /// [`Scheduling::Cake`].
    pub weight: f64,
    /// Limits at each of [`leeward_traces::Stage::ALL`].
    pub stages: [StageLimits; 3],
}

/// Limits of a workload at a stage.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StageLimits {
    /// Indices of the servers passed, in order. Requests skip a stage without servers; a request that skips
    /// all stages ends when it is sent.
    pub route: Vec<usize>,
    /// Priority, 0 first; equal priorities are served in order of arrival. The priority applies to
    /// [`Scheduling::Priority`].
    pub priority: u32,
    /// Rate limits, all enforced together at the first server; each has a rate above 0.
    pub limits: Vec<TokenBucket>,
    /// Handling of requests over a limit.
    pub over: OverLimit,
}
