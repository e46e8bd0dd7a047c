//! History of the last hour, in steps of ten seconds: utilization and queues of all links and of many devices. Steps
//! are shared and immutable, so readers never wait.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_fabric::{Fabric, Nanos, ResourceId};

use crate::core::{DeviceState, LinkState, NetworkSnapshot};

/// Length of a step, in seconds.
pub const STEP: u64 = 10;
/// Largest number of steps: one hour.
const MAX_STEPS: usize = 360;
/// Largest number of devices with a history: the first ones of a cluster. Their hour takes 94 MB.
const MAX_DEVICES: usize = 1 << 15;

/// A step: its end, and the means of resources. The mean of an unseen link is NaN.
struct Step {
    ends: Nanos,
    fabric: Arc<Fabric>,
    /// Mean utilization of each link, in order of ids.
    links: Box<[f32]>,
    /// Mean utilization of the seen devices.
    busy: Means,
    /// Mean queues of links and devices that reported one.
    queues: Means,
}

/// Means of some resources.
struct Means {
    /// The resources in order of ids. Consecutive steps with the same resources share the list.
    resources: Arc<[ResourceId]>,
    values: Box<[f32]>,
}

/// The last hour.
#[derive(Default)]
pub(super) struct History {
    steps: ArcSwap<VecDeque<Arc<Step>>>,
}

/// Sums of the current step. Only the actor's task uses them.
#[derive(Default)]
pub(super) struct BucketSums {
    ends: Nanos,
    /// Fabric that the ids belong to; `None` before the first snapshot.
    fabric: Option<Arc<Fabric>>,
    /// Utilization above which a link is hot.
    hot_above: f64,
    links: Vec<Sum>,
    /// Capacity of each link in bit/s.
    capacities: Vec<f64>,
    /// Sums by resource id, up to the highest id seen; the entries of links stay empty.
    busy: Vec<Sum>,
    queues: Vec<Sum>,
}

/// Loads of a step that has ended.
pub(super) struct StepLoads<'a> {
    /// End of the step.
    pub ends: Nanos,
    /// Length of the step.
    pub length: Nanos,
    /// Fabric of the links.
    pub fabric: &'a Arc<Fabric>,
    /// Utilization above which a link is hot.
    pub hot_above: f64,
    /// Mean utilization of each link, in order of ids; NaN if unknown.
    pub means: &'a [f32],
    /// Capacity of each link in bit/s.
    pub capacities: &'a [f64],
}

/// A sum and its number of values.
#[derive(Clone, Copy, Default)]
struct Sum(f64, u32);

impl Sum {
    fn add(&mut self, value: f64) {
        *self = Sum(self.0 + value, self.1 + 1);
    }

    fn mean(self) -> f32 {
        if self.1 == 0 { f32::NAN } else { (self.0 / f64::from(self.1)) as f32 }
    }
}

/// Adds a value for a resource.
fn add(sums: &mut Vec<Sum>, resource: ResourceId, value: f64) {
    if sums.len() <= resource.index() {
        sums.resize(resource.index() + 1, Sum::default());
    }
    sums[resource.index()].add(value);
}

impl Means {
    /// Means of sums. The list of resources is shared with the previous step if equal.
    fn new(sums: &[Sum], before: Option<&Means>) -> Means {
        let seen = sums.iter().zip(0..).filter(|(sum, _)| sum.1 > 0);
        let ids = seen.clone().map(|(_, id)| ResourceId(id));
        let same = before.filter(|before| before.resources.iter().copied().eq(ids.clone()));
        let resources = same.map_or_else(|| ids.collect(), |before| before.resources.clone());
        Means { resources, values: seen.map(|(sum, _)| sum.mean()).collect() }
    }

    /// Mean of a resource.
    fn get(&self, resource: ResourceId) -> Option<f32> {
        self.values.get(self.resources.binary_search(&resource).ok()?).copied()
    }
}

impl BucketSums {
    /// Adds the states of links and devices of a snapshot, which may come in several pieces.
    pub fn add(&mut self, links: &[LinkState], devices: &[DeviceState]) {
        for state in links {
            let at = state.link.index();
            if self.links.len() <= at {
                self.links.resize(at + 1, Sum::default());
                self.capacities.resize(at + 1, 0.0);
            }
            self.capacities[at] = state.capacity.0 as f64;
            if let Some(utilization) = state.utilization() {
                self.links[at].add(utilization);
            }
            if let Some(queue) = state.queue {
                add(&mut self.queues, state.link, queue);
            }
        }
        let Some(fabric) = &self.fabric else { return };
        let end = fabric.link_count() + MAX_DEVICES;
        for state in devices.iter().take_while(|state| state.device.index() < end) {
            if let Some(busy) = state.busy {
                add(&mut self.busy, state.device, busy);
            }
            if let Some(queue) = state.queue() {
                add(&mut self.queues, state.device, queue);
            }
        }
    }
}

impl History {
    /// Begins to add a snapshot. A step ends with the first snapshot after it, and `ended` gets its loads.
    pub fn begin(
        &self,
        current: &mut BucketSums,
        snapshot: &NetworkSnapshot,
        ended: impl FnOnce(StepLoads<'_>),
    ) {
        let length = STEP * Nanos::SECOND.0;
        let ends = Nanos((snapshot.at.0 / length + 1) * length);
        // A step that began on another cluster is dropped.
        let is_same_fabric =
            current.fabric.as_ref().is_some_and(|fabric| Arc::ptr_eq(fabric, &snapshot.fabric));
        if current.ends != ends || !is_same_fabric {
            if is_same_fabric {
                let step = self.push(current, snapshot.fabric.clone());
                ended(StepLoads {
                    ends: step.ends,
                    length: Nanos(length),
                    fabric: &step.fabric,
                    hot_above: current.hot_above,
                    means: &step.links,
                    capacities: &current.capacities,
                });
            }
            (current.ends, current.fabric) = (ends, Some(snapshot.fabric.clone()));
            current.hot_above = snapshot.hot_above;
            current.capacities.clear();
            for sums in [&mut current.links, &mut current.busy, &mut current.queues] {
                sums.clear();
            }
        }
    }

    fn push(&self, sums: &BucketSums, fabric: Arc<Fabric>) -> Arc<Step> {
        let mut steps = VecDeque::clone(&self.steps.load());
        let last = steps.back();
        let links = sums.links.iter().map(|sum| sum.mean()).collect();
        let busy = Means::new(&sums.busy, last.map(|last| &last.busy));
        let queues = Means::new(&sums.queues, last.map(|last| &last.queues));
        let step = Arc::new(Step { ends: sums.ends, fabric, links, busy, queues });
        steps.push_back(step.clone());
        // The first snapshot of a service may be years old, if its coordinator did not know the time yet.
        let hour_ago = sums.ends.since(Nanos(MAX_STEPS as u64 * STEP * Nanos::SECOND.0));
        while steps.len() > MAX_STEPS || steps.front().is_some_and(|step| step.ends <= hour_ago) {
            steps.pop_front();
        }
        self.steps.store(Arc::new(steps));
        step
    }

    /// Steps that end after `since`; every `join` steps are merged into one.
    pub fn since(&self, since: Nanos, join: u64) -> HistoryBuckets {
        let steps = self.steps.load().iter().filter(|step| step.ends > since).cloned().collect();
        HistoryBuckets { steps, join }
    }
}

/// Steps for a reader.
pub struct HistoryBuckets {
    steps: Vec<Arc<Step>>,
    /// Number of steps merged into one.
    join: u64,
}

impl HistoryBuckets {
    /// Length of a merged step, in seconds.
    pub fn step(&self) -> u64 {
        STEP * self.join
    }

    /// Start of the first step.
    pub fn from(&self) -> Option<Nanos> {
        let first = self.steps.first()?;
        let length = self.step() * Nanos::SECOND.0;
        Some(Nanos(first.ends.0.saturating_sub(1) / length * length))
    }

    /// Number of merged steps.
    pub fn count(&self) -> usize {
        let length = self.step() * Nanos::SECOND.0;
        let (Some(from), Some(last)) = (self.from(), self.steps.last()) else { return 0 };
        ((last.ends.0 - 1 - from.0) / length + 1) as usize
    }

    /// Mean utilization of a link, by its position in the fabric, in each step; `None` for steps without snapshots, or
    /// without load of the link.
    pub fn utilization(&self, fabric: &Arc<Fabric>, link: usize) -> Vec<Option<f32>> {
        self.means(fabric, |step| step.links.get(link).copied())
    }

    /// Mean utilization of a device in each step; `None` also for a device without a history.
    pub fn busy(&self, fabric: &Arc<Fabric>, device: ResourceId) -> Vec<Option<f32>> {
        self.means(fabric, |step| step.busy.get(device))
    }

    /// Mean queue of a link or device in each step.
    pub fn queue(&self, fabric: &Arc<Fabric>, resource: ResourceId) -> Vec<Option<f32>> {
        self.means(fabric, |step| step.queues.get(resource))
    }

    fn means(&self, fabric: &Arc<Fabric>, mean: impl Fn(&Step) -> Option<f32>) -> Vec<Option<f32>> {
        let length = self.step() * Nanos::SECOND.0;
        let Some(from) = self.from() else { return Vec::new() };
        let mut sums = vec![(0.0_f32, 0_u32); self.count()];
        for step in self.steps.iter().filter(|step| Arc::ptr_eq(&step.fabric, fabric)) {
            let value = mean(step).unwrap_or(f32::NAN);
            let (sum, count) = &mut sums[((step.ends.0 - 1 - from.0) / length) as usize];
            if !value.is_nan() {
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use leeward_engine::{Engine, Policies};
    use leeward_placement::Explain;
    use leeward_testing::clusters::{cluster, ledger};

    use super::*;
    use crate::actor::Channels;
    use crate::core::{Coordinator, Limits, PolicyLabels};
    use leeward_readings::Reading;

    /// A snapshot of hosts with one disk each.
    fn snapshot(racks: u32) -> NetworkSnapshot {
        let text = format!(
            "racks: {racks}\nhosts_per_rack: 100\nnic: 1Gbps\noversubscription: 1\ndevices: [{{read: 1GB/s, write: 1GB/s}}]\n"
        );
        let ledger = ledger(&cluster(&text));
        let labels = PolicyLabels {
            replicas: "none".into(),
            tasks: "none".into(),
            moves: None,
            ..PolicyLabels::default()
        };
        Coordinator::<Channels>::new(
            Engine::new(ledger, Policies::default(), 1, Explain::Off),
            labels,
            Limits::default(),
        )
        .snapshot()
    }

    /// A device with this utilization and queue.
    fn device(device: ResourceId, busy: f64, queue: Option<f64>) -> DeviceState {
        let reading = Some(Reading { queue, ..Reading::default() });
        let (until, reserved, residual, hot_since) = (None, 0.0, 0.0, None);
        DeviceState { device, busy: Some(busy), until, reserved, residual, hot_since, reading }
    }

    #[test]
    fn history_covers_a_bounded_number_of_devices_and_consecutive_steps_share_ids() {
        let (mut snapshot, history, mut sums) = (snapshot(400), History::default(), BucketSums::default());
        let links = snapshot.links.len() as u32;
        let at = |number: usize| ResourceId(links + number as u32);
        snapshot.devices = (0..40_000).map(|number| device(at(number), 0.25, Some(number as f64))).collect();
        snapshot.links[3].queue = Some(7.0);
        for second in 0..41 {
            snapshot.at = Nanos(second * Nanos::SECOND.0);
            // In the third step, half of the devices disappear, and one has more load.
            if second == 25 {
                snapshot.devices.truncate(20_000);
                snapshot.devices[1] = device(at(1), 0.75, None);
            }
            history.begin(&mut sums, &snapshot, |_| {});
            sums.add(&snapshot.links, &snapshot.devices);
        }
        let buckets = history.since(Nanos(0), 1);
        let busy = |device| buckets.busy(&snapshot.fabric, device);
        let queue = |resource| buckets.queue(&snapshot.fabric, resource);
        assert_eq!(busy(at(1)), [Some(0.25), Some(0.25), Some(0.5), Some(0.75)]);
        assert_eq!(queue(at(1)), [Some(1.0), Some(1.0), Some(1.0), None]);
        assert_eq!(busy(at(MAX_DEVICES - 1)), [Some(0.25), Some(0.25), Some(0.25), None]);
        assert_eq!(queue(at(MAX_DEVICES - 1)), [Some(32_767.0), Some(32_767.0), Some(32_767.0), None]);
        for beyond in [busy(at(MAX_DEVICES)), queue(at(MAX_DEVICES)), queue(ResourceId(2))] {
            assert_eq!(beyond, [None; 4]);
        }
        assert_eq!(queue(ResourceId(3)), [Some(7.0); 4]);
        // For each device and step, the utilization takes four bytes, the queue four bytes, and the id none.
        let shares_list = |means: fn(&Step) -> &Means| {
            let pairs = buckets.steps.iter().zip(&buckets.steps[1..]);
            pairs
                .map(|(step, next)| Arc::ptr_eq(&means(step).resources, &means(next).resources))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (shares_list(|step| &step.busy), shares_list(|step| &step.queues)),
            (vec![true, true, false], vec![true, true, false])
        );
    }
}
