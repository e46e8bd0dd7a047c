//! Records of a run.

use leeward_fabric::Nanos;

use crate::plan::Arm;
use crate::truth::Means;

/// Links of one kind in a telemetry window: those of the core, which are the links of pods, or those of racks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sides {
    /// Largest utilization. Above 1, work waits.
    pub fullest: f64,
    /// 98th percentile over links of the utilization.
    pub p98: f64,
    /// Share of links that are hot.
    pub hot: f64,
    /// Load beyond the capacity of its link, as a share of all load.
    pub excess: f64,
}

/// A telemetry window of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// End of the window.
    pub at: Nanos,
    /// Links between pods and the core.
    pub core: Sides,
    /// Links between racks and pods, or the core.
    pub racks: Sides,
    /// Load of placed writes out of pods, at the end of the window, in bit/s.
    pub placed_up_bps: i64,
    /// Load of placed writes into pods, at the end of the window, in bit/s.
    pub placed_down_bps: i64,
    /// Number of writes at the end of the window.
    pub writes: u64,
}

/// Numbers of a run after its warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Blocks whose copies were placed, by a controller or without one.
    pub placed: u64,
    /// Placed blocks whose copies are in another cell.
    pub crossed: u64,
    /// Placed blocks whose copies are behind a hot link from the core, of the rack or pod of a copy.
    pub hot: u64,
    /// Blocks that a controller refused for the reasons of its policy.
    pub refused: u64,
    /// Blocks for another cell that no cell took: none was known, or none answered in time.
    pub unplaced: u64,
    /// Blocks placed by their writers, because the controller was away.
    pub without_controller: u64,
    /// Blocks that the asking cell placed at home, because no other cell answered in time.
    pub stayed: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages that were lost, or came to a controller that was away.
    pub lost: u64,
    /// Requests that were sent again.
    pub repeated: u64,
    /// Grants whose writer went elsewhere.
    pub cancelled: u64,
    /// Grants that ended with their lease.
    pub expired: u64,
}

/// Load that is left when all writes have ended and all leases are over: nothing, if none was lost or counted twice.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Residue {
    /// Load of writes, summed over all links, in bit/s.
    pub load_bps: i64,
    /// Flows in the ledgers, summed over all links.
    pub flows: f64,
}

/// Records of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// Deciders of the run, and their knowledge.
    pub arm: Arm,
    /// Windows after the warm-up, in order of time.
    pub samples: Vec<Sample>,
    /// Numbers after the warm-up.
    pub counts: Counts,
    /// Times from the arrival of a block to the start of its write, of blocks that another cell placed, in seconds.
    pub waits: Vec<f32>,
    /// Load that is left at the end.
    pub residue: Residue,
}

impl Sides {
    /// Summarizes the links of one kind, with their capacities in bit/s. `scratch` is memory to use again.
    pub(crate) fn of(links: impl Iterator<Item = (Means, i64)>, hot: f64, scratch: &mut Vec<f64>) -> Sides {
        let (mut asked, mut excess) = (0_i128, 0_i128);
        scratch.clear();
        scratch.extend(links.map(|(Means { asked: load, .. }, capacity)| {
            asked += i128::from(load);
            excess += i128::from((load - capacity).max(0));
            load as f64 / (capacity.max(1)) as f64
        }));
        if scratch.is_empty() {
            return Sides::default();
        }
        let hot_links = scratch.iter().filter(|&&utilization| utilization > hot).count();
        Sides {
            fullest: scratch.iter().copied().fold(0.0, f64::max),
            hot: hot_links as f64 / scratch.len() as f64,
            p98: percentile(scratch, 0.98),
            excess: if asked > 0 { excess as f64 / asked as f64 } else { 0.0 },
        }
    }
}

/// The least value that at least a share `p` of the values do not exceed. Changes the order of the values.
pub(crate) fn percentile(values: &mut [f64], p: f64) -> f64 {
    let rank = (p * values.len() as f64).ceil() as usize;
    let at = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(loads: &[i64], capacity: i64) -> Sides {
        let means = loads.iter().map(|&asked| (Means { asked, carried: asked.min(capacity) }, capacity));
        Sides::of(means, 0.75, &mut Vec::new())
    }

    #[test]
    fn sides_summarize_utilizations() {
        let loads: Vec<i64> = (1..=100).collect();
        assert_eq!(sides(&loads, 100), Sides { fullest: 1.0, p98: 0.98, hot: 0.25, excess: 0.0 });
        // 60 of 150 are more than the capacity of 30.
        assert_eq!(sides(&[60, 60, 30], 30), Sides { fullest: 2.0, p98: 2.0, hot: 1.0, excess: 0.4 });
        assert_eq!(sides(&[0, 0], 30), Sides::default());
        assert_eq!(sides(&[], 30), Sides::default());
    }
}
