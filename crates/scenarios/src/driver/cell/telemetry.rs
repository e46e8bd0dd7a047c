//! Telemetry of the cell for the engine, and the moves that the engine advises.

use leeward_engine::{Advice, Input, Output, Rates};
use leeward_fabric::{DomainId, Nanos};
use leeward_ledger::Sample;
use leeward_placement::tasks::TaskId;

use super::Driver;
use crate::record::Move;

impl Driver<'_> {
    /// Delivers reports in transit, reads all counters, and delivers reports without delay.
    pub(super) fn read_counters(&mut self, now: Nanos) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let samples = entry.remove();
            self.report(now, &samples);
        }
        let (loads, outages) = (&self.loads, &self.outages);
        let carried = |link| loads.carried(link, 0.0);
        let messages = self.reporters.read(now, carried, |source| outages.can_report(source));
        for (arrives, samples) in messages {
            if arrives <= now {
                self.report(now, &samples);
            } else {
                self.sequence += 1;
                self.late.insert((arrives, self.sequence), samples);
            }
        }
    }

    /// Delivers a report, and carries out the engine's advice. Before the report, the engine gets the changed traffic
    /// of tolerant tasks in racks that the report shows as hot.
    fn report(&mut self, now: Nanos, samples: &[Sample]) {
        if self.moves {
            let (engine, threshold) = (&mut self.engine, self.scenario.ledger.hot);
            let hot = |sample: &&Sample| {
                sample.load.0 as f64 > threshold * engine.capacity(sample.resource).0 as f64
            };
            let hot =
                samples.iter().filter(hot).filter_map(|sample| self.fabric.domain_of_link(sample.resource));
            let is_rack = |domain: &DomainId| domain.index() < self.fabric.rack_count();
            let mut racks: Vec<DomainId> = hot.filter(is_rack).collect();
            racks.sort_unstable();
            racks.dedup();
            let mut changed = Vec::new();
            racks.iter().for_each(|&rack| self.running.changed_traffic(rack, &self.loads, &mut changed));
            self.send_rates(now, &changed);
        }
        self.record.discarded += self.engine.report(now, samples, &mut self.outputs).total();
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::MovesAdvised(advice) => {
                    advice.into_iter().for_each(|advice| self.relocate(now, advice))
                }
                Output::ReplicasPlaced(..) | Output::MovesConsidered(_) | Output::WakeAt(_) => {}
            }
        }
    }

    /// Reports the traffic of tasks whose rates change now, if demands are estimated from traffic. Hosts know the
    /// traffic of their own tasks, independently of the telemetry of links.
    pub(super) fn report_rates(&mut self, now: Nanos) {
        if self.workload.history.is_some() {
            let mut ending = Vec::new();
            self.running.ending_traffic(self.step, &self.loads, &mut ending);
            self.send_rates(now, &ending);
        }
    }

    fn send_rates(&mut self, now: Nanos, tasks: &[(u32, [u64; 2])]) {
        let rates = |&(task, [egress_bps, ingress_bps]): &(u32, [u64; 2])| {
            (TaskId { app: u64::from(task), index: 0 }, Rates { egress_bps, ingress_bps })
        };
        let rates: Vec<(TaskId, Rates)> = tasks.iter().map(rates).collect();
        if !rates.is_empty() {
            self.notify(now, Input::Rates(&rates));
        }
    }

    /// Moves a task; the engine has already recorded the move.
    fn relocate(&mut self, now: Nanos, Advice { task, from, to, link }: Advice) {
        let task = task.app as u32;
        let rack = self.fabric.rack_of(to);
        let record = &mut self.record.tasks[task as usize];
        let (intensive, at) = (record.intensive, now.as_secs_f64());
        record.moves += 1;
        record.host = Some(to);
        self.record.moves.push(Move { at, task, from, to, link });
        self.activity.moved += 1;
        self.count_scheduled(intensive, self.loads.is_hot(rack));
        self.running.relocate(&self.fabric, task, to, &mut self.loads);
        if self.outages.is_up(to) {
            self.stop_for_restart(now, task);
        } else {
            self.detect_failure(now, to);
            self.requeue(now, task);
        }
    }
}
