//! Queues, and the workloads that share them.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::ResourceId;

use super::workload::Workload;

/// A queue of strict priorities, served at a constant rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Its name, for messages.
    pub name: String,
    /// Work a second: bytes a second on a link, seconds of service a second at a device (1 for one device).
    pub capacity: f64,
    /// The link or device of the cluster, if it is one.
    pub resource: Option<ResourceId>,
}

/// A workload where it is, with what is enforced for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Promise {
    /// The workload.
    pub workload: Arc<Workload>,
    /// For each of its demands, the queues passed, by index and in order.
    pub route: Vec<Vec<usize>>,
    /// For each of its demands, its priority there: 0 is served first, and equal ones in order of arrival.
    pub priorities: Vec<u32>,
    /// For each of its demands, the token buckets enforced, all of them at once. Where they are not below its own arrivals, it is not
    /// delayed by them.
    pub limits: Vec<ArrivalCurve>,
}

impl Promise {
    /// The same without stages that cross no queue, as those on the network where the client is the server: they take no time.
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

/// Keeps those that are marked.
fn keep<T>(all: &mut Vec<T>, marked: &[bool]) {
    let mut marked = marked.iter();
    all.retain(|_| marked.next().is_none_or(|&marked| marked));
}

/// Queues, and the promises that share them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct System {
    /// The queues.
    pub queues: Vec<Queue>,
    /// The promises.
    pub promises: Vec<Promise>,
}
