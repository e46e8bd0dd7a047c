//! A checked scenario: what jobs do, on which hosts, with which media.

use std::sync::Arc;

use leeward_fabric::{Bandwidth, Cluster, HostId, Nanos, ResourceId};
use leeward_tcp as tcp;

use crate::draws::Duration;
use crate::media::Medium;
use crate::network;

/// Direction of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Hosts that an operation may be with.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Servers {
    /// One of these, with equal probability.
    Hosts(Vec<HostId>),
    /// The host of a chunk of a stripe; each stripe and each chunk has equal probability.
    Chunks,
}

/// A kind of operations.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Operation {
    pub name: String,
    pub direction: Direction,
    /// Number of its medium.
    pub medium: usize,
    /// Least and most bytes.
    pub sizes: (u64, u64),
    pub class: u8,
    pub servers: Servers,
    /// Time after which other chunks are fetched.
    pub degraded_after: Option<Nanos>,
}

/// A step of a worker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Step {
    /// Computes.
    Compute(Duration),
    /// Has `count` operations of a kind, at most `parallel` of them at once.
    Operations { operation: usize, count: u32, parallel: u32 },
}

/// A stage of a job.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stage {
    pub workers: u32,
    pub steps: Vec<Step>,
    /// Number of times that a worker follows the steps.
    pub repeat: u32,
}

/// Start of jobs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Arrivals {
    /// A Poisson process, with jobs per second.
    Rate(f64),
    /// Always this number of jobs: when one ends, the next begins.
    Concurrent(u32),
}

/// A kind of jobs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Job {
    pub name: String,
    pub arrivals: Arrivals,
    /// Hosts of workers, each drawn with equal probability.
    pub hosts: Vec<HostId>,
    pub stages: Vec<Stage>,
    /// Times between which jobs start.
    pub start: Nanos,
    pub end: Nanos,
    pub is_recorded: bool,
}

impl Job {
    /// Mean time that a worker of the first stage computes before its first operation, in nanoseconds.
    pub fn first_computation(&self) -> f64 {
        let steps = self.stages.first().map_or(&[][..], |stage| &stage.steps[..]);
        let computes = steps.iter().map_while(|step| match step {
            Step::Compute(time) => Some(time.mean),
            Step::Operations { .. } => None,
        });
        computes.sum()
    }
}

/// A link that gets another rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub at: Nanos,
    pub link: ResourceId,
    pub rate: Bandwidth,
}

/// A checked scenario.
#[derive(Clone)]
pub(crate) struct Plan {
    pub cluster: Arc<Cluster>,
    pub network: network::Settings,
    pub tcp: tcp::Settings,
    /// Most bytes of a connection in the queue of its host.
    pub host_limit: u64,
    pub media: Vec<Medium>,
    pub operations: Vec<Operation>,
    pub jobs: Vec<Job>,
    pub changes: Vec<Change>,
    /// Hosts of the chunks of each stripe, and the number of data chunks.
    pub stripes: Vec<Vec<HostId>>,
    pub data_chunks: usize,
    pub horizon: Nanos,
    pub warmup: Nanos,
    pub sample: Nanos,
    pub seed: u64,
}
