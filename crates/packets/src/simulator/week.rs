//! Weekly planning from the demand estimate, and periodic samples.

use leeward_circuits::estimate::{self, Adus};
use leeward_circuits::switch::Event;
use leeward_fabric::Nanos;

use super::connections::{Connection, Flow};
use super::{Simulator, SimulatorError, Timer};
use crate::records::Sample;
use crate::settings::{Demand, Plan};

impl Simulator<'_> {
    /// Requests the next week.
    pub(super) fn plan_week(&mut self) -> Result<(), SimulatorError> {
        let racks = self.settings.switch.racks;
        let Plan::Weekly { demand, ahead, planner } = &mut self.plan else { return Ok(()) };
        let live = || {
            self.flows.iter().filter_map(|flow| match flow {
                Flow::Live(connection) => Some(connection),
                _ => None,
            })
        };
        let entry = |connection: &Connection, left: u64| {
            (connection.source_rack as usize, connection.destination_rack as usize, left)
        };
        let bytes = match demand {
            Demand::Queues => estimate::of_queues(&self.switch),
            Demand::Adus => self.adus.as_ref().map_or_else(Vec::new, Adus::demand),
            Demand::Sockets => {
                let left = live().map(|c| entry(c, c.sender.written() - c.sender.acknowledged()));
                estimate::of_flows(racks, left)?
            }
            Demand::Oracle => {
                let left = live().map(|c| entry(c, c.sender.written() - c.receiver.delivered()));
                estimate::of_flows(racks, left)?
            }
        };
        let at = Nanos(self.now);
        let schedule = planner(&bytes).map_err(|problem| SimulatorError::Planner { at, problem })?;
        let (length, ahead) = (schedule.length().0, ahead.0.max(1));
        self.switch.step(at, Event::NewWeek(schedule), &mut self.out)?;
        self.handle_outputs()?;
        let begins = self.week_ends.max(self.now);
        self.week_ends = begins + length;
        self.schedule(self.week_ends.saturating_sub(ahead).max(begins), Timer::Plan);
        Ok(())
    }

    pub(super) fn sample(&mut self) {
        self.sample_pairs();
        if let Some(every) = self.settings.sample_every {
            self.schedule(self.now + every.0, Timer::Sample);
        }
    }

    /// Samples the configured pairs of racks.
    pub(super) fn sample_pairs(&mut self) {
        let racks = self.settings.switch.racks;
        for &(source, destination) in &self.settings.sampled {
            let (packets, bytes) = self.switch.queued(source, destination);
            self.records.samples.push(Sample {
                at: Nanos(self.now),
                source,
                destination,
                packets,
                bytes,
                capacity: self.switch.capacity(source, destination),
                delivered: self.arrived[source * racks + destination],
            });
        }
    }
}
