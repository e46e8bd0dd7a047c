//! Queues, and the workloads that share them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::ResourceId;
use leeward_traces::Stage;

use super::workload::Workload;

/// A rate-latency queue with strict priorities: in any t seconds with backlog, it serves at least `capacity` times
/// (t - `latency`), and never more than `capacity` times t.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Name of the queue, for messages.
    pub name: String,
    /// Work per second: bytes per second on a link, seconds of service per second at a device (1 for one
    /// device).
    pub capacity: f64,
    /// Latency in seconds, in addition to the waiting and the service of requests: time for which the queue may stand
    /// still while it has work, and for which work may stay after its service, together.
    pub latency: f64,
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

impl System {
    /// Queues of devices: those that the storage stage of a workload crosses.
    pub fn devices(&self) -> BTreeSet<usize> {
        let at_storage = |promise: &Promise| -> Vec<usize> {
            let stages = promise.workload.demands.iter().zip(&promise.route);
            let storage = stages.filter(|(demand, _)| demand.stage == Stage::Storage);
            storage.flat_map(|(_, path)| path.iter().copied()).collect()
        };
        self.promises.iter().flat_map(at_storage).collect()
    }

    /// For each queue, the number of its group. Queues that share traffic, directly or through other queues, form a
    /// group.
    pub(crate) fn queue_groups(&self) -> Vec<usize> {
        let mut sets = Sets::new(self.queues.len());
        for route in self.promises.iter().flat_map(|promise| &promise.route) {
            route.windows(2).for_each(|pair| sets.join(pair[0], pair[1]));
        }
        (0..self.queues.len()).map(|queue| sets.find(queue)).collect()
    }

    /// For each promise, the number of its group. Dependencies form groups: they are symmetric and transitive. Names
    /// outside the system are ignored.
    pub(crate) fn dependency_groups(&self) -> Vec<usize> {
        let names: BTreeMap<&str, usize> =
            self.promises.iter().enumerate().map(|(at, of)| (of.workload.name.as_str(), at)).collect();
        let mut sets = Sets::new(self.promises.len());
        for (at, of) in self.promises.iter().enumerate() {
            let known = of.workload.dependencies.iter().filter_map(|name| names.get(name.as_str()));
            known.for_each(|&other| sets.join(at, other));
        }
        (0..self.promises.len()).map(|at| sets.find(at)).collect()
    }
}

/// Disjoint sets (union-find).
pub(crate) struct Sets(Vec<usize>);

impl Sets {
    pub fn new(elements: usize) -> Sets {
        Sets((0..elements).collect())
    }

    pub fn find(&mut self, element: usize) -> usize {
        let mut root = element;
        while self.0[root] != root {
            self.0[root] = self.0[self.0[root]];
            root = self.0[root];
        }
        root
    }

    pub fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
    }
}
