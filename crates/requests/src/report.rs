//! Measurements of a run.

use leeward_fabric::Nanos;

use super::latency_histogram::{LatencyHistogram, rank};
use super::live::Live;
use super::setup::Setup;

/// Result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Measurements by workload.
    pub workloads: Vec<Measured>,
    /// Reports by server.
    pub servers: Vec<ServerReport>,
    /// A row for each request, in order of completion; `None` unless [`Setup::rows`] is set.
    pub rows: Option<Rows>,
    /// Completion time of the last request.
    pub end: Nanos,
    /// Number of requests in progress, summed over every nanosecond of the run: the sum of all latencies
    /// (Little's law).
    pub under_way: u128,
}

/// Measurements of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Latency from the sending of a request to its end.
    pub latency: LatencyHistogram,
    /// Time at each of [`leeward_traces::Stage::ALL`], including the wait behind a limiter: the sum over
    /// requests in nanoseconds, and the largest.
    pub stages: [(u128, Nanos); 3],
    /// Number of requests that were served over their limits at any stage.
    pub demoted: u64,
    /// Number of requests with a latency above the SLO.
    pub late: u64,
    /// Windows in which requests ended, in order.
    pub windows: Vec<Window>,
    /// Intervals in which requests ended, in order.
    pub intervals: Vec<Interval>,
    /// SLO in nanoseconds.
    objective: Option<u64>,
}

/// A workload in a window of time (SLO section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Start of the window; windows are adjacent, from 0 on.
    pub start: Nanos,
    /// Number of requests that ended in the window.
    pub requests: u64,
    /// Their latency at the SLO's percentile, as [`LatencyHistogram::percentile`] returns it; without an SLO, at the
    /// 99.9th percentile.
    pub tail: Nanos,
    /// Largest latency.
    pub largest: Nanos,
}

/// A workload in an interval of time (SLO figure 3.1).
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
    /// Time for which it served.
    pub busy: Nanos,
    /// Time for which it did not serve although requests waited, because of a device's caps. Such a device did not
    /// provide its capacity, so bounds that assume the capacity do not hold.
    pub starved: Nanos,
}

/// Columns of requests, ready for Arrow; times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rows {
    /// Index of the workload.
    pub workload: Vec<u32>,
    /// Send time.
    pub arrival: Vec<u64>,
    /// Latency from sending to end.
    pub latency: Vec<u64>,
    /// Time at each of [`leeward_traces::Stage::ALL`].
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

    /// Returns the least latency that `percent` of a workload's requests do not exceed, exactly; `None`
    /// without requests.
    pub fn percentile(&self, workload: usize, percent: f64) -> Option<Nanos> {
        let of = self.workload.iter().zip(&self.latency);
        let mut latencies: Vec<u64> =
            of.filter(|(of, _)| **of as usize == workload).map(|(_, latency)| *latency).collect();
        let rank = rank(percent, latencies.len() as u64)? as usize;
        Some(Nanos(*latencies.select_nth_unstable(rank - 1).1))
    }
}

/// Recorder of a run's measurements.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    workloads: Vec<Measured>,
    /// By workload: percentile of windows, and latencies in the current window.
    present: Vec<(f64, LatencyHistogram)>,
    /// By workload: ended and late requests in the current interval.
    counts: Vec<(u64, u64)>,
    window: u64,
    interval: u64,
    window_end: u64,
    interval_end: u64,
    rows: Option<Rows>,
}

impl Recorder {
    pub(super) fn new(setup: &Setup) -> Recorder {
        let slos = setup.workloads.iter().map(|workload| workload.slo);
        let measured = slos.clone().map(|slo| Measured {
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
            present: slos
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

    /// Closes the windows and intervals that end at or before `now`.
    #[inline]
    pub(super) fn until(&mut self, now: u64) {
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
        for (measured, (percentile, present)) in self.workloads.iter_mut().zip(&mut self.present) {
            if let Some(tail) = present.percentile(*percentile) {
                let (requests, largest) = (present.count(), present.largest());
                measured.windows.push(Window { start, requests, tail: Nanos(tail), largest });
                present.clear();
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
        self.present[workload].1.add(latency);
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

    pub(super) fn finish(mut self, servers: Vec<ServerReport>, end: Nanos, under_way: u128) -> Report {
        self.end_interval();
        self.end_window();
        Report { workloads: self.workloads, servers, rows: self.rows, end, under_way }
    }
}
