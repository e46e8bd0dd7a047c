//! Summary of a cell's tasks: the values of the tables about UTP (Hotspots section 5.1).

use serde::Serialize;

use super::Times;
use crate::record::{CellInterval, CellTasks, Record, Task};

const DAY: f64 = 86_400.0;

/// Summary of a cell's run. Counts of tasks leave out tasks that arrived before the end of the warm-up. Values over
/// time leave out intervals before it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskSummary {
    /// Number of tasks.
    pub count: u64,
    /// Number of tasks that finished their work within the run.
    pub finished: u64,
    /// Number of tasks that never had a host.
    pub unplaced: u64,
    /// Time from arrival to the first host.
    pub wait_s: Times,
    /// Time of a finished tolerant task after it got its first host, relative to its undisturbed run time.
    pub stretch: Times,
    /// The same ratio for network-intensive tolerant tasks.
    pub intensive_stretch: Times,
    /// Number of moves.
    pub moves: u64,
    /// Number of moves per day (Hotspots table 3).
    pub moves_per_day: f64,
    /// Number of placements, moves included.
    pub scheduled: u64,
    /// Number of placements of network-intensive tasks.
    pub scheduled_intensive: u64,
    /// Number of these placements on a rack with a hot link in the previous interval (Hotspots table 3).
    pub intensive_on_hot: u64,
    /// Number of racks with a hot link, in either direction, summed over intervals (Hotspots table 2).
    pub hot_tor_intervals: u64,
    /// Share of racks and intervals with a hot link.
    pub hot_tor_share: f64,
    /// 98th percentile over racks of the utilization of uplinks, mean over intervals (Hotspots table 2).
    pub tor_p98: f64,
    /// Load of all uplinks over their capacity, mean over intervals (Hotspots table 2).
    pub utilization: f64,
    /// Share of processors in use, mean over intervals.
    pub processors: f64,
    /// Largest number of waiting tasks at the end of an interval.
    pub most_waiting: u32,
}

impl TaskSummary {
    /// Summarizes a run of a cell; `None` for other runs.
    pub fn of(record: &Record, warmup: f64) -> Option<TaskSummary> {
        if record.cell.is_empty() && record.tasks.is_empty() {
            return None;
        }
        let counted = || record.tasks.iter().filter(|task| task.arrived >= warmup);
        let tolerant = || counted().filter(|task| task.tolerant);
        let intervals: Vec<&CellInterval> =
            record.cell.iter().filter(|interval| interval.start >= warmup).collect();
        let count = intervals.len().max(1) as f64;
        let mean = |value: fn(&CellInterval) -> f64| {
            intervals.iter().map(|interval| value(interval)).sum::<f64>() / count
        };
        let sum = |value: fn(&CellTasks) -> u32| {
            intervals.iter().map(|interval| u64::from(value(&interval.tasks))).sum::<u64>()
        };
        let moves = sum(|tasks| tasks.moved);
        let hot: u64 = intervals.iter().map(|interval| u64::from(interval.hot_tors)).sum();
        let tors = intervals.iter().map(|interval| u64::from(interval.tors)).sum::<u64>().max(1);
        let seconds = intervals.iter().map(|interval| interval.length).sum::<f64>();
        Some(TaskSummary {
            count: counted().count() as u64,
            finished: counted().filter(|task| task.finished.is_some()).count() as u64,
            unplaced: counted().filter(|task| task.placed.is_none()).count() as u64,
            wait_s: Times::of(counted().filter_map(Task::wait_time)),
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
