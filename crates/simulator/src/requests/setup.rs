//! What is simulated: servers, and what is enforced for each workload.

use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_placement::volumes::Slo;

use super::order::Order;

/// Servers, the workloads that cross them, and what is kept of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Links and devices.
    pub servers: Vec<Server>,
    /// Workloads, in the order of their sources.
    pub workloads: Vec<Enforced>,
    /// The largest packet of a link, in bytes; at least 1. A link may turn to a higher priority after each packet, and each goes on to
    /// the next link by itself. `None`: requests are sent whole.
    pub packet: Option<f64>,
    /// Requests are sent before this time only. Those under way are served to their end.
    pub until: Option<Nanos>,
    /// Length of the windows in which an SLO is met or not (SLO section 4.3); above 0.
    pub window: Nanos,
    /// Length of the intervals over which violations are counted (SLO figure 3.1); above 0.
    pub interval: Nanos,
    /// Whether a row is kept for each request.
    pub rows: bool,
    /// For each workload, what its requests take at a device beside their work and the device's latency, one after another and from
    /// the first again; none if there are none for a workload, or for all. In it the device serves others.
    pub tails: Vec<Arc<[Nanos]>>,
}

impl Setup {
    /// Servers and workloads, with whole requests, no end, windows of three minutes, intervals of ten seconds, and no rows.
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

/// A queue and what serves it.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Its name, for messages.
    pub name: String,
    /// Work a second: bytes on a link, seconds of service at a device, 1 for one device.
    pub capacity: f64,
    /// Who is next.
    pub order: Order,
    /// `None` for a link, which has one request or packet at a time.
    pub device: Option<Device>,
}

impl Server {
    /// A link of strict priorities; bytes a second.
    pub fn link(name: &str, capacity: f64) -> Server {
        Server { name: name.into(), capacity, order: Order::Priority, device: None }
    }

    /// One device of strict priorities.
    pub fn device(name: &str, device: Device) -> Server {
        Server { name: name.into(), capacity: 1.0, order: Order::Priority, device: Some(device) }
    }
}

/// What may be under way at a device, and what a request takes beside its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Requests started and not done, at most; at least 1. A batch counts as one.
    pub outstanding: u32,
    /// Bytes of reads started and not done, at most. One read may always be under way.
    pub read_bytes: u64,
    /// The same for writes.
    pub write_bytes: u64,
    /// What may be started while a request of a higher priority is under way.
    pub behind: Option<Behind>,
    /// Time of a read beside its work, in which the device serves others: its latency without queueing is this and its work.
    pub read_latency: Nanos,
    /// The same for a write.
    pub write_latency: Nanos,
    /// Device time lost when a request is served after one of another workload, as when a disk's head moves.
    pub turn: Nanos,
    /// Whether writes that follow one another are started together.
    pub batch: Option<Batch>,
}

/// Caps on what is started while a request of a higher priority is under way: a request waits once so much was started, of
/// whatever priority, since the oldest such one (as in the released enforcer). Counts for [`Order::Priority`] only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Requests.
    pub requests: u32,
    /// Bytes, reads and writes together.
    pub bytes: u64,
}

/// Writes of one workload, next to one another in the order of service, of which each starts near where the one before ends, are
/// started together and not interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Bytes of a batch, at most, but for its first write.
    pub bytes: u64,
    /// From the end of a write to the start of the next, at most, in bytes, in either direction.
    pub gap: u64,
}

impl Device {
    /// An SSD with so many requests under way, and no other caps: it has no cost of turning from one workload to another.
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

    /// A disk with so many requests under way (one or two), and batches of nearly sequential writes of at most 1 MiB.
    pub fn disk(outstanding: u32) -> Device {
        Device { batch: Some(Batch { bytes: 1 << 20, gap: 64 << 10 }), ..Device::ssd(outstanding) }
    }
}

/// A workload, where it goes, and what is enforced for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Enforced {
    /// Its name, for messages.
    pub name: String,
    /// What it is promised: its percentile is reported in each window, later requests are violations.
    pub slo: Option<Slo>,
    /// Its share of a device relative to others'; above 0. Counts for [`Order::Shares`] and [`Order::Cake`].
    pub weight: f64,
    /// What is enforced at each of [`leeward_traces::Stage::ALL`].
    pub stages: [StageLimits; 3],
}

/// What is enforced for a workload at a stage.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StageLimits {
    /// The servers passed, by index and in order; if there are none, requests skip the stage; one that skips all is done when it is sent.
    pub route: Vec<usize>,
    /// 0 is served first; equal ones in order of arrival. Counts for [`Order::Priority`].
    pub priority: u32,
    /// Rate limits, all of them at once, enforced at the first server; each of a rate above 0.
    pub limits: Vec<TokenBucket>,
    /// What happens to requests over a limit.
    pub over: Over,
}

/// What happens to requests over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Over {
    /// They wait until there are tokens.
    #[default]
    Held,
    /// They wait too, but are served when the server has nothing else to do: after all priorities and in order of arrival, for the rest
    /// of the stage. They take what tokens there are, and not below none.
    Demoted,
}
