//! What the tasks of a cell amount to: the numbers of the tables about UTP (Hotspots section 5.1).

use serde::Serialize;

use super::Times;
use crate::stage::record::{CellInterval, CellTasks, Record, Task};

const DAY: f64 = 86_400.0;

/// A cell's run in a few numbers. Tasks that arrived before the warm-up ended are left out of what is said of tasks,
/// and intervals before then of all that is counted in time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskSummary {
    /// Tasks that arrived.
    pub count: u64,
    /// Those that had done their work at the end of the run.
    pub finished: u64,
    /// Those that never had a host.
    pub unplaced: u64,
    /// From arrival to the first host.
    pub wait_s: Times,
    /// How many times as long as its work alone a tolerant task took, from its first host on; of those that finished.
    pub stretch: Times,
    /// The same of tolerant tasks that are network-intensive.
    pub intensive_stretch: Times,
    /// Tasks moved.
    pub moves: u64,
    /// Tasks moved, a day (Hotspots table 3).
    pub moves_per_day: f64,
    /// How often tasks were put anywhere, moves among them.
    pub scheduled: u64,
    /// How often those that are network-intensive were.
    pub scheduled_intensive: u64,
    /// How often these were put on a rack of which a link was hot in the interval before (Hotspots table 3).
    pub intensive_on_hot: u64,
    /// Racks with a hot link, in either direction, summed over intervals (Hotspots table 2).
    pub hot_tor_intervals: u64,
    /// The same as a share of racks and intervals.
    pub hot_tor_share: f64,
    /// 98th percentile over racks of the utilization of uplinks, mean over intervals (Hotspots table 2).
    pub tor_p98: f64,
    /// What all uplinks carry over what they can, mean over intervals (Hotspots table 2).
    pub utilization: f64,
    /// Share of processors that tasks have, mean over intervals.
    pub processors: f64,
    /// Tasks that wait, at the end of an interval, at most.
    pub most_waiting: u32,
}

impl TaskSummary {
    /// Sums up a run of a cell; `None` of any other.
    pub fn of(record: &Record, warmup: f64) -> Option<TaskSummary> {
        if record.cell.is_empty() && record.tasks.is_empty() {
            return None;
        }
        let counted = || record.tasks.iter().filter(|task| task.arrived >= warmup);
        let tolerant = || counted().filter(|task| task.tolerant);
        let intervals: Vec<&CellInterval> =
            record.cell.iter().filter(|interval| interval.start >= warmup).collect();
        let count = intervals.len().max(1) as f64;
        let mean = |of: fn(&CellInterval) -> f64| intervals.iter().map(|at| of(at)).sum::<f64>() / count;
        let sum =
            |of: fn(&CellTasks) -> u32| intervals.iter().map(|at| u64::from(of(&at.tasks))).sum::<u64>();
        let moves = sum(|tasks| tasks.moved);
        let hot: u64 = intervals.iter().map(|interval| u64::from(interval.hot_tors)).sum();
        let tors = intervals.iter().map(|interval| u64::from(interval.tors)).sum::<u64>().max(1);
        let seconds = intervals.iter().map(|interval| interval.length).sum::<f64>();
        Some(TaskSummary {
            count: counted().count() as u64,
            finished: counted().filter(|task| task.finished.is_some()).count() as u64,
            unplaced: counted().filter(|task| task.placed.is_none()).count() as u64,
            wait_s: Times::of(counted().filter_map(Task::waited)),
            stretch: Times::of(tolerant().filter_map(Task::stretch)),
            intensive_stretch: Times::of(tolerant().filter(|task| task.intensive).filter_map(Task::stretch)),
            moves,
            moves_per_day: if seconds > 0.0 { moves as f64 * DAY / seconds } else { 0.0 },
            scheduled: sum(|tasks| tasks.scheduled),
            scheduled_intensive: sum(|tasks| tasks.intensive),
            intensive_on_hot: sum(|tasks| tasks.intensive_on_hot),
            hot_tor_intervals: hot,
            hot_tor_share: hot as f64 / tors as f64,
            tor_p98: mean(|interval| interval.tor_p98),
            utilization: mean(|interval| interval.utilization),
            processors: mean(|interval| interval.tasks.processors),
            most_waiting: intervals.iter().map(|interval| interval.tasks.waiting).max().unwrap_or(0),
        })
    }
}
