//! Weekly schedules from the demand, samples of queues, and reports of loads to the policy of copies.

use leeward_circuits::estimate;
use leeward_circuits::switch::{Event, Via};
use leeward_fabric::Nanos;
use leeward_packets::{Demand, Plan, Sample, SimulatorError};

use super::{NEVER, SwitchLoop};
use crate::error::LabError;

impl SwitchLoop<'_> {
    /// Requests the schedule of the next week.
    pub(super) fn plan_week(&mut self, now: Nanos) -> Result<(), LabError> {
        if !self.shared.is_written() {
            return Ok(());
        }
        let Plan::Weekly { demand, ahead, planner } = &mut self.plan else { return Ok(()) };
        let bytes = match demand {
            Demand::Queues => estimate::of_queues(&self.switch),
            other => self.shared.demand(*other).map_err(SimulatorError::from)?,
        };
        let at = now.since(self.began.unwrap_or_default());
        let schedule = planner(&bytes).map_err(|problem| SimulatorError::Planner { at, problem })?;
        let (length, ahead) = (schedule.length().0, ahead.0.max(1));
        let ready = self.clock.now();
        self.timing.schedules.add(ready.since(now));
        // Frames have left their hosts since the computation began.
        self.enter_until(ready)?;
        self.switch.step(ready, Event::NewWeek(schedule), &mut self.out)?;
        let begins = self.week_ends.max(ready.0);
        self.week_ends = begins + length;
        self.next_plan = self.week_ends.saturating_sub(ahead).max(begins);
        self.handle_outputs()
    }

    /// Samples the configured pairs of racks.
    pub(super) fn sample(&mut self, now: Nanos) {
        let racks = self.settings.switch.racks;
        let at = now.since(self.began.unwrap_or_default());
        for &(source, destination) in &self.settings.sampled {
            let (packets, bytes) = self.switch.queued(source, destination);
            self.records.samples.push(Sample {
                at,
                source,
                destination,
                packets,
                bytes,
                capacity: self.switch.capacity(source, destination),
                delivered: self.shared.arrived(source * racks + destination),
            });
        }
        let every = self.settings.sample_every.map_or(0, |every| every.0.max(1));
        // Samples that the lab missed are left out.
        self.next_sample = match every {
            0 => NEVER,
            every => self.next_sample + every * ((now.0 - self.next_sample) / every + 1),
        };
    }

    /// Reports loads to the policy of copies.
    pub(super) fn report(&mut self, now: Nanos) {
        let Some(mut placer) = self.shared.placer() else { return };
        let switch = &self.switch;
        let carried =
            |from, to| switch.sent_bytes(from, to, Via::Packet) + switch.sent_bytes(from, to, Via::Circuit);
        placer.report(now.since(self.began.unwrap_or_default()), carried);
        self.next_report += placer.every().0;
    }
}
