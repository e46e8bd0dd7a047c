//! Queues, and the workloads that share them.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::ResourceId;

use super::workload::Workload;

/// A queue with strict priorities and a constant service rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Name of the queue, for messages.
    pub name: String,
    /// Work per second: bytes per second on a link, seconds of service per second at a device (1 for one
    /// device).
    pub capacity: f64,
    /// Link or device of the cluster; `None` for a queue outside the cluster.
    pub resource: Option<ResourceId>,
}

/// A placed workload with its priorities and enforced limits.
#[derive(Clone, PartialEq, Debug)]
pub struct Promise {
    /// The workload.
    pub workload: Arc<Workload>,
    /// For each demand: the queues of its path, by index and in order.
    pub route: Vec<Vec<usize>>,
    /// For each demand: its priority; 0 is served first, equal priorities in order of arrival.
    pub priorities: Vec<u32>,
    /// For each demand: the enforced token buckets, all at once. Buckets at or above the demand's own
    /// arrivals do not delay it.
    pub limits: Vec<ArrivalCurve>,
}

impl Promise {
    /// Removes stages that cross no queue, such as the network stages of a client on its own server. They take no time.
    #[must_use]
    pub fn crossing(mut self) -> Promise {
        let crosses: Vec<bool> = self.route.iter().map(|path| !path.is_empty()).collect();
        if crosses.contains(&false) {
            keep(&mut Arc::make_mut(&mut self.workload).demands, &crosses);
            keep(&mut self.priorities, &crosses);
            keep(&mut self.limits, &crosses);
            keep(&mut self.route, &crosses);
        }
        self
    }
}

/// Keeps the marked items.
fn keep<T>(all: &mut Vec<T>, marked: &[bool]) {
    let mut marked = marked.iter();
    all.retain(|_| marked.next().is_none_or(|&marked| marked));
}

/// Queues, and the promises that share them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct System {
    /// Queues.
    pub queues: Vec<Queue>,
    /// Promises.
    pub promises: Vec<Promise>,
}
