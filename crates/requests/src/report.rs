//! Measurements of a run.

use leeward_fabric::Nanos;

use super::latency_histogram::{LatencyHistogram, rank};
use super::live::Live;
use super::setup::Setup;

/// Result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Reports by workload.
    pub workloads: Vec<WorkloadReport>,
    /// Reports by server.
    pub servers: Vec<ServerReport>,
    /// A row for each request, in order of completion; `None` unless [`Setup::rows`] is set.
    pub rows: Option<Rows>,
    /// Completion time of the last request.
    pub end: Nanos,
    /// Number of requests in progress, integrated over the run, in nanoseconds. It equals the sum of all latencies
    /// (Little's law).
    pub time_in_system: u128,
}

/// Measurements of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadReport {
    /// Latencies of requests, from sending to completion.
    pub latency: LatencyHistogram,
    /// For each of [`leeward_traces::Stage::ALL`], the time that requests spent there, including the wait behind a
    /// limiter: the sum in nanoseconds, and the largest.
    pub stages: [(u128, Nanos); 3],
    /// Number of requests that were served while over their limits at any stage.
    pub demoted: u64,
    /// Number of requests with a latency above the SLO.
    pub late: u64,
    /// Windows in which requests ended, in order.
    pub windows: Vec<Window>,
    /// Intervals in which requests ended, in order.
    pub intervals: Vec<Interval>,
    /// Latency of the SLO, in nanoseconds.
    objective: Option<u64>,
}

/// Measurements of a workload in a window of time (SLO section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Start of the window; windows are adjacent, from 0 on.
    pub start: Nanos,
    /// Number of requests that ended in the window.
    pub requests: u64,
    /// Latency at the SLO's percentile, as [`LatencyHistogram::percentile`] returns it. Without an SLO, the percentile
    /// is the 99.9th.
    pub tail: Nanos,
    /// Largest latency.
    pub largest: Nanos,
}

/// Measurements of a workload in an interval of time (SLO figure 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Start of the interval; intervals are adjacent, from 0 on.
    pub start: Nanos,
    /// Number of requests that ended in the interval.
    pub requests: u64,
    /// Number of these requests with a latency above the SLO.
    pub late: u64,
}

/// Activity of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerReport {
    /// Name of the server.
    pub name: String,
    /// Number of requests served.
    pub served: u64,
    /// Time in which the server was busy.
    pub busy: Nanos,
    /// Time in which requests waited, but the caps of its device kept it idle. The device did not provide its capacity
    /// then, so bounds that assume the capacity do not hold.
    pub starved: Nanos,
}

/// Rows of requests, stored as columns for Arrow. Times are in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rows {
    /// Index of the workload.
    pub workload: Vec<u32>,
    /// Send time.
    pub arrival: Vec<u64>,
    /// Latency, from sending to completion.
    pub latency: Vec<u64>,
    /// Time spent at each of [`leeward_traces::Stage::ALL`].
    pub stages: [Vec<u64>; 3],
    /// True if the request was over its limits at any stage.
    pub demoted: Vec<bool>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.workload.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.workload.is_empty()
    }

    /// Returns the smallest latency that `percent` of a workload's requests do not exceed. The result is exact; it is
    /// `None` without requests.
    pub fn percentile(&self, workload: usize, percent: f64) -> Option<Nanos> {
        let rows = self.workload.iter().zip(&self.latency);
        let mut latencies: Vec<u64> =
            rows.filter(|(row, _)| **row as usize == workload).map(|(_, latency)| *latency).collect();
        let rank = rank(percent, latencies.len() as u64)? as usize;
        Some(Nanos(*latencies.select_nth_unstable(rank - 1).1))
    }
}

/// Recorder of a run's measurements.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    workloads: Vec<WorkloadReport>,
    /// By workload: the percentile for [`Window::tail`], and the latencies in the current window.
    window_latencies: Vec<(f64, LatencyHistogram)>,
    /// By workload: numbers of ended and of late requests in the current interval.
    counts: Vec<(u64, u64)>,
    /// Length of a window.
    window: u64,
    /// Length of an interval.
    interval: u64,
    window_end: u64,
    interval_end: u64,
    rows: Option<Rows>,
}

impl Recorder {
    pub(super) fn new(setup: &Setup) -> Recorder {
        let slos = setup.workloads.iter().map(|workload| workload.slo);
        let measured = slos.clone().map(|slo| WorkloadReport {
            latency: LatencyHistogram::default(),
            stages: [(0, Nanos(0)); 3],
            demoted: 0,
            late: 0,
            windows: Vec::new(),
            intervals: Vec::new(),
            objective: slo.map(|slo| Nanos::from_secs_f64(slo.latency).0),
        });
        let count = setup.workloads.len();
        Recorder {
            workloads: measured.collect(),
            window_latencies: slos
                .map(|slo| (slo.map_or(99.9, |slo| slo.percentile), LatencyHistogram::default()))
                .collect(),
            counts: vec![(0, 0); count],
            window: setup.window.0,
            interval: setup.interval.0,
            window_end: setup.window.0,
            interval_end: setup.interval.0,
            rows: setup.rows.then(Rows::default),
        }
    }

    /// Closes the window and the interval that end at or before `now`, and opens those that contain `now`.
    #[inline]
    pub(super) fn advance_to(&mut self, now: u64) {
        if now >= self.interval_end {
            self.end_interval();
            self.interval_end = (now / self.interval).saturating_add(1).saturating_mul(self.interval);
        }
        if now >= self.window_end {
            self.end_window();
            self.window_end = (now / self.window).saturating_add(1).saturating_mul(self.window);
        }
    }

    fn end_interval(&mut self) {
        let start = Nanos(self.interval_end - self.interval);
        for (measured, counts) in self.workloads.iter_mut().zip(&mut self.counts) {
            let (requests, late) = std::mem::take(counts);
            if requests > 0 {
                measured.intervals.push(Interval { start, requests, late });
            }
        }
    }

    fn end_window(&mut self) {
        let start = Nanos(self.window_end - self.window);
        for (measured, (percentile, window_latencies)) in
            self.workloads.iter_mut().zip(&mut self.window_latencies)
        {
            if let Some(tail) = window_latencies.percentile(*percentile) {
                let (requests, largest) = (window_latencies.count(), window_latencies.largest());
                measured.windows.push(Window { start, requests, tail: Nanos(tail), largest });
                window_latencies.clear();
            }
        }
    }

    /// Records a finished request.
    #[inline]
    pub(super) fn record(&mut self, live: &Live, latency: u64) {
        let workload = live.workload as usize;
        let measured = &mut self.workloads[workload];
        measured.latency.add(latency);
        for ((sum, largest), spent) in measured.stages.iter_mut().zip(live.spent) {
            *sum += u128::from(spent);
            largest.0 = largest.0.max(spent);
        }
        measured.demoted += u64::from(live.was_demoted);
        let late = u64::from(measured.objective.is_some_and(|objective| latency > objective));
        measured.late += late;
        self.window_latencies[workload].1.add(latency);
        let counts = &mut self.counts[workload];
        *counts = (counts.0 + 1, counts.1 + late);
        if let Some(rows) = &mut self.rows {
            rows.workload.push(live.workload);
            rows.arrival.push(live.arrived);
            rows.latency.push(latency);
            for (column, spent) in rows.stages.iter_mut().zip(live.spent) {
                column.push(spent);
            }
            rows.demoted.push(live.was_demoted);
        }
    }

    pub(super) fn finish(mut self, servers: Vec<ServerReport>, end: Nanos, time_in_system: u128) -> Report {
        self.end_interval();
        self.end_window();
        Report { workloads: self.workloads, servers, rows: self.rows, end, time_in_system }
    }
}
