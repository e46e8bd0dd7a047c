//! A run in numbers.

use crate::plan::Arm;
use crate::records::{Counts, RunRecord, Sides, percentile};

/// A run in numbers: means over windows, and shares of blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Deciders of the run, and their knowledge.
    pub arm: Arm,
    /// Links of the core: means over windows.
    pub core: Sides,
    /// Largest utilization of a link of the core in any window.
    pub core_most: f64,
    /// Links of racks: means over windows.
    pub racks: Sides,
    /// Share of placed blocks whose copies are behind a hot link.
    pub hot: f64,
    /// Share of blocks that no controller placed: refused, or taken by no cell.
    pub rejected: f64,
    /// Share of placed blocks whose copies are in another cell.
    pub crossed: f64,
    /// Mean time from the arrival of a block to its start, of blocks that another cell placed, in seconds.
    pub wait_mean: f64,
    /// 99th percentile of this time, in seconds.
    pub wait_p99: f64,
    /// Numbers of the run.
    pub counts: Counts,
}

impl Summary {
    /// Summarizes a run.
    pub fn of(run: &RunRecord) -> Summary {
        let Counts { placed, crossed, hot, refused, unplaced, .. } = run.counts;
        let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let rejected = refused + unplaced;
        let mut waits: Vec<f64> = run.waits.iter().map(|&wait| f64::from(wait)).collect();
        let waited: f64 = waits.iter().sum();
        Summary {
            arm: run.arm,
            core: mean(run.samples.iter().map(|sample| sample.core)),
            core_most: run.samples.iter().map(|sample| sample.core.fullest).fold(0.0, f64::max),
            racks: mean(run.samples.iter().map(|sample| sample.racks)),
            hot: share(hot, placed),
            rejected: share(rejected, placed + rejected),
            crossed: share(crossed, placed),
            wait_mean: if waits.is_empty() { 0.0 } else { waited / waits.len() as f64 },
            wait_p99: if waits.is_empty() { 0.0 } else { percentile(&mut waits, 0.99) },
            counts: run.counts,
        }
    }
}

/// Means over windows; zero without windows.
fn mean(windows: impl ExactSizeIterator<Item = Sides>) -> Sides {
    let count = windows.len().max(1) as f64;
    let sum = windows.fold(Sides::default(), |sum, window| Sides {
        fullest: sum.fullest + window.fullest,
        p98: sum.p98 + window.p98,
        hot: sum.hot + window.hot,
        excess: sum.excess + window.excess,
    });
    Sides {
        fullest: sum.fullest / count,
        p98: sum.p98 / count,
        hot: sum.hot / count,
        excess: sum.excess / count,
    }
}
