//! Cross traffic: load of links from other sources than the apps (Choreo section 3.2).
//!
//! The paper sends a bulk transfer along a path with capacity c1, and measures c2. It attributes the rest to c = c1 /
//! c2 - 1 backlogged flows. Here nothing is sent: hosts know the traffic of their own apps, and counters show the load
//! of links. The difference F is the traffic of others. One more flow would get C - F of the capacity C, and so
//!
//! ```text
//! c = C / (C - F) - 1
//! ```
//!
//! The ledger's factor smooths F, as it smooths other measurements. If F is nearly all of C, counters cannot
//! distinguish one greedy flow from many, so c is at most 99.

use leeward_engine::Input;
use leeward_fabric::{Endpoint, HostId, Nanos, ResourceId};
use leeward_fluid::FlowId;
use leeward_ledger::{Sample, Scratch};

use super::Driver;
use super::running::Stage;

/// Smallest share of a capacity that one more flow gets.
const LEAST: f64 = 0.01;

/// Traffic of apps and of others on links.
pub(super) struct Cross {
    /// Work that flows of apps have brought to each resource, as counted so far.
    own: Vec<f64>,
    /// The value of `own` at the last reading of counters.
    last: Vec<f64>,
    /// F, in native units per second; NaN before the first report.
    others: Vec<f64>,
}

impl Cross {
    pub fn new(resources: usize) -> Cross {
        let (own, last) = (vec![0.0; resources], vec![0.0; resources]);
        Cross { own, last, others: vec![f64::NAN; resources] }
    }
}

impl Driver<'_> {
    /// Counts the bytes that a flow of an app has carried; `left` bytes remain.
    pub(super) fn count(&mut self, flow: FlowId, left: f64) {
        let Some(purpose) = self.purposes.get_mut(&flow) else { return };
        let carried = (purpose.bytes - left).max(purpose.counted);
        let more = carried - std::mem::replace(&mut purpose.counted, carried);
        let (from, to): (HostId, HostId) = purpose.ends;
        self.world.hops.clear();
        self.world.fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut self.world.hops);
        for hop in &self.world.hops {
            self.cross.own[hop.resource.index()] += more * hop.work;
        }
    }

    /// Counts the bytes that all flows of apps have carried.
    fn count_all(&mut self, now: f64) {
        let flows = self.running.values().flat_map(|running| match &running.stage {
            Stage::Sending(flows) | Stage::Moving(flows) => flows.values().copied().collect(),
            Stage::Paused(_) => Vec::new(),
        });
        let flows: Vec<FlowId> = flows.collect();
        for flow in flows {
            if let Some(left) = self.world.network.remaining(flow, now) {
                self.count(flow, left);
            }
        }
    }

    /// Returns the traffic of apps on each resource since the last call, in native units per second over
    /// `seconds`.
    pub(super) fn own_rates(&mut self, now: f64, seconds: f64) -> Vec<f64> {
        self.count_all(now);
        let Cross { own, last, .. } = &mut self.cross;
        let rates = own.iter().zip(last.iter()).map(|(now, before)| (now - before) / seconds.max(1e-9));
        let rates = rates.collect();
        last.clone_from(own);
        rates
    }

    /// Updates the traffic of others from a report, and informs the engine.
    pub(super) fn update_cross_traffic(&mut self, now: f64, samples: &[Sample], own: &[f64]) {
        let alpha = self.scenario.ledger.alpha;
        let mut scratch = Scratch::default();
        let view = self.engine.ledger().view(Nanos::from_secs_f64(now), &mut scratch);
        let mut backlogs: Vec<(ResourceId, f64)> = Vec::with_capacity(samples.len());
        for (sample, own) in samples.iter().zip(own) {
            // Counters are whole numbers, so a rounding remainder is not traffic.
            let others = sample.load.0 as f64 - own;
            let others = if others > 1.0 { others } else { 0.0 };
            let smooth = &mut self.cross.others[sample.resource.index()];
            *smooth = if smooth.is_nan() { others } else { (1.0 - alpha) * *smooth + alpha * others };
            let capacity = view.capacity(sample.resource).0 as f64;
            let left = (capacity - *smooth).max(LEAST * capacity);
            backlogs.push((sample.resource, if capacity > 0.0 { capacity / left - 1.0 } else { 0.0 }));
        }
        self.notify(now, Input::CrossTraffic(&backlogs));
    }
}
