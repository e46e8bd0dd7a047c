//! Background: traffic that no placement moves, and that controllers see by telemetry alone.
//!
//! The level of a link of a rack is the mean share of its capacity times three log-normal factors of mean 1: of the
//! link itself, of its pod and of its cell, each for one direction. Factors are drawn again every `period`, those of
//! different racks, pods and cells at different steps. A share of a rack's background crosses its pod's link too.

use leeward_fabric::Nanos;
use leeward_registry::random::{Draws, Kind};

use crate::geometry::{Direction, Geometry};
use crate::truth::Truth;

const RACK: Kind = Kind::named("cells.background.rack");
const POD: Kind = Kind::named("cells.background.pod");
const CELL: Kind = Kind::named("cells.background.cell");

/// Settings of the background.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Levels {
    /// Mean share of the capacity of racks' links.
    pub mean: f64,
    /// Largest share of the capacity of a rack's link.
    pub ceiling: f64,
    /// Share of the background of racks that crosses pods' links.
    pub core: f64,
    /// Standard deviations of the logarithm of the factors of racks' links, of pods and of cells.
    pub spread: [f64; 3],
    /// Number of steps for which a factor stays.
    pub steps: u64,
}

/// Background of all links.
#[derive(Debug)]
pub(crate) struct Background {
    levels: Levels,
    geometry: Geometry,
    draws: [Draws; 3],
    /// Current background of each rack's link, in bit/s.
    current: Vec<i64>,
    /// Racks whose background changes at a step; empty between steps.
    changing: Vec<u32>,
}

impl Background {
    /// Creates an idle background.
    pub fn new(levels: Levels, geometry: Geometry, seed: u64) -> Background {
        let draws = [RACK, POD, CELL].map(|kind| Draws::new(seed, kind));
        let current = vec![0; geometry.rack_links()];
        Background { levels, geometry, draws, current, changing: Vec::new() }
    }

    /// Draws the levels that change at a step. Step 0 draws all of them.
    pub fn advance(&mut self, now: Nanos, step: u64, truth: &mut Truth) {
        if self.levels.mean == 0.0 {
            return;
        }
        let mut racks = std::mem::take(&mut self.changing);
        self.collect(step, &mut racks);
        for &rack in &racks {
            for direction in [Direction::Up, Direction::Down] {
                self.set(now, step, rack, direction, truth);
            }
        }
        racks.clear();
        self.changing = racks;
    }

    /// Collects the racks with a factor that changes at a step.
    fn collect(&self, step: u64, racks: &mut Vec<u32>) {
        let geometry = &self.geometry;
        if step == 0 {
            racks.extend(0..geometry.all_racks());
            return;
        }
        racks.extend(self.due(step, geometry.all_racks()));
        for pod in self.due(step, geometry.all_pods()) {
            racks.extend(pod * geometry.racks..(pod + 1) * geometry.racks);
        }
        for cell in self.due(step, geometry.cells) {
            racks.extend(cell * geometry.racks_of_cell()..(cell + 1) * geometry.racks_of_cell());
        }
        racks.sort_unstable();
        racks.dedup();
    }

    /// Numbers below `count` whose factor changes at a step.
    fn due(&self, step: u64, count: u32) -> impl Iterator<Item = u32> + use<> {
        let steps = self.levels.steps;
        let first = ((steps - step % steps) % steps).min(u64::from(count)) as u32;
        (first..count).step_by(steps.min(u64::from(u32::MAX)) as usize)
    }

    fn set(&mut self, now: Nanos, step: u64, rack: u32, direction: Direction, truth: &mut Truth) {
        let Levels { mean, ceiling, core, .. } = self.levels;
        let pod = self.geometry.pod_of(rack);
        let numbers = [rack, pod, self.geometry.cell_of_pod(pod)];
        let factors = (0..3).map(|level| self.factor(level, numbers[level], direction, step));
        let share = factors.fold(mean, |share, factor| share * factor).min(ceiling);
        let link = self.geometry.rack_link(rack, direction);
        let after = (share * truth.capacity(link) as f64) as i64;
        let before = std::mem::replace(&mut self.current[link], after);
        truth.add(now, link, after - before);
        let crosses = |background: i64| (background as f64 * core) as i64;
        truth.add(now, self.geometry.pod_link(pod, direction), crosses(after) - crosses(before));
    }

    /// Factor of a rack's link (level 0), of a pod (1) or of a cell (2) in one direction at a step.
    fn factor(&self, level: usize, number: u32, direction: Direction, step: u64) -> f64 {
        let spread = self.levels.spread[level];
        if spread == 0.0 {
            return 1.0;
        }
        let index = 2 * u64::from(number) + direction as u64;
        let drawn = (step + u64::from(number)) / self.levels.steps;
        let [u, v] = [0, 1].map(|part| self.draws[level].draw(index, 2 * drawn + part));
        // Box and Muller's transform; 1 - u is above zero.
        let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (spread * normal - spread * spread / 2.0).exp()
    }

    /// Current background of the link of a rack, and its part on the link of the pod, in bit/s.
    pub fn of_rack(&self, link: usize) -> [i64; 2] {
        let background = self.current[link];
        [background, (background as f64 * self.levels.core) as i64]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { cells: 3, pods: 2, racks: 5, hosts: 4 };

    fn levels(steps: u64) -> Levels {
        Levels { mean: 0.3, ceiling: 0.95, core: 0.4, spread: [0.5, 0.3, 0.2], steps }
    }

    /// Levels at a step, drawn step by step from the beginning.
    fn stepwise(steps: u64, last: u64) -> (Background, Truth) {
        let mut truth = Truth::new((0..SMALL.links()).map(|_| 1_000_000_000));
        let mut background = Background::new(levels(steps), SMALL, 7);
        (0..=last).for_each(|step| background.advance(Nanos(step), step, &mut truth));
        (background, truth)
    }

    #[test]
    fn a_step_changes_exactly_the_levels_with_a_new_factor() {
        for (steps, last) in [(1, 3), (4, 9), (7, 30), (1000, 5)] {
            let (background, truth) = stepwise(steps, last);
            for rack in 0..SMALL.all_racks() {
                for direction in [Direction::Up, Direction::Down] {
                    let pod = SMALL.pod_of(rack);
                    let numbers = [rack, pod, SMALL.cell_of_pod(pod)];
                    let factors = (0..3).map(|at| background.factor(at, numbers[at], direction, last));
                    let share = factors.fold(0.3, |share, factor| share * factor).min(0.95);
                    let link = SMALL.rack_link(rack, direction);
                    assert_eq!(truth.load(link), (share * 1e9) as i64, "rack {rack}, step {last} of {steps}");
                }
            }
        }
    }

    #[test]
    fn the_core_carries_its_share_of_every_rack() {
        let (background, truth) = stepwise(3, 20);
        for pod in 0..SMALL.all_pods() {
            for direction in [Direction::Up, Direction::Down] {
                let racks = pod * SMALL.racks..(pod + 1) * SMALL.racks;
                let links = racks.map(|rack| SMALL.rack_link(rack, direction));
                let sum: i64 = links.map(|link| background.of_rack(link)[1]).sum();
                assert_eq!(truth.load(SMALL.pod_link(pod, direction)), sum);
            }
        }
    }

    #[test]
    fn factors_have_a_mean_of_one() {
        let background = Background::new(levels(1), SMALL, 3);
        let draws = (0..40_000).map(|step| background.factor(0, 2, Direction::Up, step));
        let mean = draws.sum::<f64>() / 40_000.0;
        // The standard deviation of the mean is 0.003.
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
    }
}
