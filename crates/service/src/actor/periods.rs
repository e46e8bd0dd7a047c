//! Sums over periods of ten minutes and of an hour, for the history in the store and for the summary. A step of the
//! history adds to the running periods, and each ten minutes the sums are stored.

use std::sync::Arc;

use leeward_fabric::{Fabric, Nanos, ResourceId};
use leeward_records::{Change, ClusterVersion, Counts, HotTimes, LinkMean, Period, PeriodLength};

use super::history::StepLoads;
use crate::core::StepCounts;

/// The running periods of both lengths.
#[derive(Default)]
pub(super) struct Periods {
    running: [Option<PeriodSums>; 2],
    /// Counts that the next step adds.
    carried: Counts,
    /// Version whose link names were stored last.
    named: Option<ClusterVersion>,
}

/// Sums of a running period.
struct PeriodSums {
    began: Nanos,
    ends: Nanos,
    length: PeriodLength,
    fabric: Arc<Fabric>,
    cluster: ClusterVersion,
    counts: Counts,
    hot: HotTimes,
    /// For each link, in order of ids, the sum and the number of means.
    links: Vec<(f32, u32)>,
}

impl Periods {
    /// Adds a step. Returns the changes to store at the end of ten minutes; otherwise none.
    pub fn add(&mut self, step: &StepLoads, cluster: ClusterVersion, counts: &StepCounts) -> Vec<Change> {
        let mut changes = Vec::new();
        for (running, length) in self.running.iter_mut().zip(PeriodLength::ALL) {
            let nanos = length.length().0;
            let ends = Nanos(step.ends.0.div_ceil(nanos) * nanos);
            let is_same = |sums: &PeriodSums| sums.ends == ends && Arc::ptr_eq(&sums.fabric, step.fabric);
            // The clock was stepped, or the cluster changed: the sums so far are a row of their own.
            if let Some(ended) = running.take_if(|sums| !is_same(sums)) {
                changes.push(Change::Period(Arc::new(ended.period())));
            }
            let began = Nanos(step.ends.0.saturating_sub(step.length.0));
            let sums = running.get_or_insert_with(|| PeriodSums {
                began,
                ends,
                length,
                fabric: step.fabric.clone(),
                cluster,
                counts: Counts::default(),
                hot: HotTimes::default(),
                links: Vec::new(),
            });
            sums.add(step, counts);
            sums.counts.add(&self.carried);
            let ten_minutes = PeriodLength::TenMinutes.length().0;
            if step.ends.0.is_multiple_of(ten_minutes) {
                changes.push(Change::Period(Arc::new(sums.period())));
            }
            if step.ends == ends {
                *running = None;
            }
        }
        self.carried = Counts::default();
        self.add_names(&mut changes, step.fabric, cluster);
        changes
    }

    /// Drops the running periods: the next step begins new ones. Names of links are stored again.
    pub fn restart(&mut self) {
        *self = Periods::default();
    }

    /// Stores the names of links again with the next period.
    pub fn forget_names(&mut self) {
        self.named = None;
    }

    /// Adds counts to the next step.
    pub fn carry(&mut self, counts: &Counts) {
        self.carried.add(counts);
    }

    /// The sums of the running ten minutes, without links.
    pub fn running(&self) -> Option<Period> {
        let [ten_minutes, _] = &self.running;
        ten_minutes.as_ref().map(|sums| Period { links: Vec::new(), ..sums.period() })
    }

    /// The sums of the running periods, to be stored at the end of the service.
    pub fn flush(&mut self) -> Vec<Change> {
        let running = self.running.iter_mut().filter_map(Option::take);
        let changes = running.map(|sums| (sums.fabric.clone(), sums.cluster, sums.period()));
        let (mut periods, mut last) = (Vec::new(), None);
        for (fabric, cluster, period) in changes {
            last = Some((fabric, cluster));
            periods.push(Change::Period(Arc::new(period)));
        }
        if let Some((fabric, cluster)) = last {
            self.add_names(&mut periods, &fabric, cluster);
        }
        periods
    }

    /// Adds the names of the links before the first stored period of a version.
    fn add_names(&mut self, changes: &mut Vec<Change>, fabric: &Fabric, cluster: ClusterVersion) {
        if changes.is_empty() || self.named == Some(cluster) {
            return;
        }
        self.named = Some(cluster);
        let names = (0..fabric.link_count()).map(|id| fabric.resource_name(ResourceId(id as u32)));
        changes.push(Change::LinkNames(cluster, names.collect()));
    }
}

impl PeriodSums {
    fn add(
        &mut self,
        step: &StepLoads,
        StepCounts { counts, with_leeward, without_leeward, compared }: &StepCounts,
    ) {
        self.counts.add(counts);
        self.hot.compared += compared.compared;
        self.hot.uncompared += compared.uncompared;
        let seconds = step.length.as_secs_f64();
        if self.links.len() < step.means.len() {
            self.links.resize(step.means.len(), (0.0, 0));
        }
        let hot = |utilization: f64| if utilization > step.hot_above { seconds } else { 0.0 };
        for (index, (&mean, &capacity)) in step.means.iter().zip(step.capacities).enumerate() {
            if mean.is_nan() {
                continue;
            }
            let (sum, count) = &mut self.links[index];
            (*sum, *count) = (*sum + mean, *count + 1);
            let mean = f64::from(mean);
            let besides = |differences: &[f64]| {
                let bits = differences.get(index).copied().unwrap_or(0.0);
                if capacity > 0.0 { mean + bits / (capacity * seconds) } else { mean }
            };
            self.hot.observed += seconds;
            self.hot.seen += hot(mean);
            self.hot.with_leeward += hot(besides(with_leeward));
            self.hot.without_leeward += hot(besides(without_leeward));
        }
    }

    fn period(&self) -> Period {
        let mean =
            |&(sum, count): &(f32, u32)| LinkMean::of((count > 0).then(|| f64::from(sum) / f64::from(count)));
        Period {
            began: self.began,
            ends: self.ends,
            length: self.length,
            counts: self.counts.clone(),
            hot: self.hot,
            cluster: self.cluster,
            links: self.links.iter().map(mean).collect(),
        }
    }
}
