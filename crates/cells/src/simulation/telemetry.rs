//! Ends of telemetry windows, and digests.

use std::sync::Arc;

use leeward_fabric::Nanos;

use super::Simulation;
use crate::agenda::{Event, Message};
use crate::plan::Arm;
use crate::records::{Sample, Sides};

impl Simulation<'_> {
    /// Ends a window: records it, reports it to the controllers, and begins step `step`.
    pub(super) fn tick(&mut self, now: Nanos, step: u64) {
        let mut means = std::mem::take(&mut self.means);
        let window = self.truth.end_window(now, &mut means);
        if window.0 >= self.plan.warmup {
            let (racks, hot) = (self.geometry.rack_links(), self.plan.ledger.hot);
            let truth = &self.truth;
            let capacities = |from: usize| (from..).map(move |link| truth.capacity(link));
            let of_racks = means[..racks].iter().copied().zip(capacities(0));
            let of_core = means[racks..].iter().copied().zip(capacities(racks));
            self.record.samples.push(Sample {
                at: now,
                racks: Sides::of(of_racks, hot, &mut self.scratch),
                core: Sides::of(of_core, hot, &mut self.scratch),
                placed_up_bps: self.placed[0],
                placed_down_bps: self.placed[1],
                writes: self.writes.running(),
            });
        }
        for controller in &mut self.controllers {
            if controller.starts_again() {
                controller.come_back(now);
            }
            if controller.is_present() {
                controller.report(window, &means);
            }
        }
        self.means = means;
        if step == 1 {
            self.introduce(now);
        }
        self.background.advance(now, step, &mut self.truth);
        let next = now.plus(self.plan.ledger.interval);
        if next <= self.plan.horizon {
            self.agenda.add(next, Event::Tick(step + 1));
        }
    }

    /// Gives each cell a first digest of all others, as if they had run for long.
    fn introduce(&mut self, now: Nanos) {
        for from in 0..self.cells.len() as u32 {
            self.inform_all(now, from);
        }
    }

    /// Gives all other cells the present digest of a cell.
    fn inform_all(&mut self, now: Nanos, from: u32) {
        let digest = self.controllers[from as usize].digest(now);
        for (to, cell) in (0..).zip(&mut self.cells) {
            if to != from {
                cell.directory.update(from, &digest);
            }
        }
    }

    /// Without an interval of digests: gives a cell the present digests of all others that are there.
    pub(super) fn refresh(&mut self, now: Nanos, cell: u32) {
        if !matches!(self.arm, Arm::Cells { interval: Nanos(0), .. }) {
            return;
        }
        for other in (0..self.geometry.cells).filter(|&other| other != cell) {
            let controller = &mut self.controllers[other as usize];
            if controller.is_present() {
                let digest = controller.digest(now);
                self.cells[cell as usize].directory.update(other, &digest);
            }
        }
    }

    /// Sends the digest of a cell to the others.
    pub(super) fn publish(&mut self, now: Nanos, from: u32) {
        let Arm::Cells { interval, .. } = self.arm else { return };
        if self.controllers[from as usize].is_present() {
            let digest = Arc::new(self.controllers[from as usize].digest(now));
            for to in (0..self.geometry.cells).filter(|&to| to != from) {
                self.send(now, from, to, Message::Digest(digest.clone()));
            }
        }
        let next = now.plus(interval);
        if next <= self.plan.horizon {
            self.agenda.add(next, Event::Publish(from));
        }
    }
}
