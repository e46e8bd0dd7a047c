//! Rates of tasks and of disk servers over time: a level that is drawn every five minutes, and a swing over the day.

use leeward_fabric::Nanos;
use leeward_registry::random::{Draws, Kind};

const LEVEL: Kind = Kind::named("cell.level");
const DISK_LEVEL: Kind = Kind::named("cell.disks");

/// Time for which a rate stays constant, in seconds.
const LEVEL_SECONDS: f64 = 300.0;

const DAY: f64 = 86_400.0;

/// Current rates of tasks, or of disk servers, as multiples of their means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    draws: Draws,
    /// Number of steps for which a rate stays constant.
    steps: u64,
}

impl Levels {
    /// Creates the levels of tasks in a run with steps of this length.
    pub fn of_tasks(seed: u64, step: Nanos) -> Levels {
        Levels::new(Draws::new(seed, LEVEL), step)
    }

    /// Creates the levels of disk servers in a run with steps of this length.
    pub fn of_disk_servers(seed: u64, step: Nanos) -> Levels {
        Levels::new(Draws::new(seed, DISK_LEVEL), step)
    }

    fn new(draws: Draws, step: Nanos) -> Levels {
        let steps = (LEVEL_SECONDS / step.as_secs_f64()).round().max(1.0) as u64;
        Levels { draws, steps }
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.steps as usize
    }

    /// Returns a task's level at a step: from 0 to `peak`, with a mean of 1.
    #[inline]
    pub fn level(&self, task: u32, step: u64, peak: f64) -> f64 {
        if peak <= 1.0 {
            return 1.0;
        }
        let u = self.draws.draw(u64::from(task), (step + u64::from(task)) / self.steps);
        peak * (1.0 - (1.0 - u).powf(1.0 / (peak - 1.0)))
    }

    /// Returns the group whose rates change at a step.
    pub fn changing(&self, step: u64) -> usize {
        ((self.steps - step % self.steps) % self.steps) as usize
    }

    /// Returns the group of a task; rates of a group change at the same step.
    pub fn group(&self, task: u32) -> usize {
        (u64::from(task) % self.steps) as usize
    }
}

/// A time of the run, and the position in the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The time, in seconds.
    pub now: f64,
    /// Factor of the daily swing: a sine that is zero at the start of the run and has its maximum six hours later.
    pub swing: f64,
}

impl Moment {
    /// Creates the moment at this time.
    pub fn new(now: f64) -> Moment {
        Moment { now, swing: (std::f64::consts::TAU * now / DAY).sin() }
    }
}
