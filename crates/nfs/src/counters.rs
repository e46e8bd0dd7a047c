//! Counters of workloads, as the proxy sees their requests.

use leeward_fabric::Nanos;
use leeward_promises::Latency;
use leeward_requests::LatencyHistogram;
use leeward_slo::Slo;
use leeward_traces::Kind;
use serde::Serialize;

use crate::window::Window;

/// Percentiles of latencies for acknowledgements, in percent.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// A request that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answered {
    /// Direction of the payload.
    pub kind: Kind,
    /// Payload in bytes, as requested; 0 for a COMMIT.
    pub size: u64,
    /// Time from the whole call to its start towards the server.
    pub waited: Nanos,
    /// Time from the whole call to the whole reply.
    pub latency: Nanos,
    /// True if it was started although it was over its limits.
    pub was_over: bool,
}

/// Counters of the requests of one workload or client.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    reads: u64,
    writes: u64,
    commits: u64,
    read_bytes: u64,
    written_bytes: u64,
    over_limit: u64,
    late: u64,
    waited: u128,
    latency: LatencyHistogram,
    /// Latencies since the last summary.
    recent: LatencyHistogram,
    /// Latencies of the last time, for acknowledgements.
    window: Window,
}

/// Latencies of requests, in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latencies {
    /// Number of requests.
    pub requests: u64,
    /// Mean; `None` without requests.
    pub mean_s: Option<f64>,
    /// 50th percentile, at most 0.8 % too large.
    pub p50_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Percentile 99.9.
    pub p999_s: Option<f64>,
    /// Largest latency.
    pub max_s: Option<f64>,
}

impl Latencies {
    pub(crate) fn of(histogram: &LatencyHistogram) -> Latencies {
        let seconds = |percent| histogram.percentile(percent).map(|nanos| Nanos(nanos).as_secs_f64());
        Latencies {
            requests: histogram.count(),
            mean_s: histogram.mean(),
            p50_s: seconds(50.0),
            p99_s: seconds(99.0),
            p999_s: seconds(99.9),
            max_s: (histogram.count() > 0).then(|| histogram.largest().as_secs_f64()),
        }
    }
}

/// Promised latency of a workload.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Objective {
    /// Percentile of requests, in percent.
    pub percentile: f64,
    /// Latency in seconds.
    pub latency_s: f64,
}

/// Counters of a workload at one time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Name of the workload; of a client without a workload, its address and export.
    pub workload: String,
    /// Priority at the device, 0 first; `None` for best effort without a workload.
    pub priority: Option<u32>,
    /// Promised latency over all stages; `None` for best effort.
    pub slo: Option<Objective>,
    /// Answered READs.
    pub reads: u64,
    /// Answered WRITEs.
    pub writes: u64,
    /// Answered COMMITs.
    pub commits: u64,
    /// Bytes of the READs, as requested.
    pub read_bytes: u64,
    /// Bytes of the WRITEs.
    pub written_bytes: u64,
    /// Requests that were started although they were over the limits.
    pub over_limit: u64,
    /// Requests above the latency of the SLO, and requests without an answer.
    pub late: u64,
    /// Sum of the times in the queue, in seconds.
    pub waited_s: f64,
    /// Latencies since the start.
    pub latency: Latencies,
    /// Latencies since the previous summary.
    pub recent: Latencies,
}

impl Counters {
    /// Counts a request that ended at the time `now`; `slo` is the SLO of its workload.
    pub fn add(&mut self, now: Nanos, request: Answered, slo: Option<Slo>) {
        match (request.kind, request.size) {
            (Kind::Read, size) => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(size);
            }
            (Kind::Write, 0) => self.commits += 1,
            (Kind::Write, size) => {
                self.writes += 1;
                self.written_bytes = self.written_bytes.saturating_add(size);
            }
        }
        self.over_limit += u64::from(request.was_over);
        self.late += u64::from(slo.is_some_and(|slo| request.latency.as_secs_f64() > slo.latency));
        self.waited += u128::from(request.waited.0);
        self.latency.add(request.latency.0);
        self.recent.add(request.latency.0);
        self.window.add(now, request.latency.0);
    }

    /// Counts a request that has no answer at the time `now`, and has none after `latency`: whatever its SLO is, it is late.
    pub fn add_unanswered(&mut self, now: Nanos, latency: Nanos, was_over: bool, slo: Option<Slo>) {
        self.over_limit += u64::from(was_over);
        self.late += u64::from(slo.is_some());
        self.latency.add(latency.0);
        self.recent.add(latency.0);
        self.window.add(now, latency.0);
    }

    /// Counters and latencies for an acknowledgement: the usual percentiles, and that of the SLO.
    pub fn counted(
        &mut self,
        now: Nanos,
        slo: Option<Slo>,
    ) -> (leeward_promises::RequestCounters, Vec<Latency>) {
        let counters = leeward_promises::RequestCounters {
            bytes: self.read_bytes.saturating_add(self.written_bytes),
            requests: self.requests(),
            over_limit: self.over_limit,
            late: self.late,
        };
        let own = slo.map(|slo| slo.percentile).filter(|own| !PERCENTILES.contains(own));
        let percentiles: Vec<f64> = PERCENTILES.into_iter().chain(own).collect();
        (counters, self.window.latencies(now, &percentiles))
    }

    /// Number of requests, also of those without an answer.
    pub fn requests(&self) -> u64 {
        self.latency.count()
    }

    /// The counters of a workload with this name, priority and SLO.
    pub fn summary(&self, workload: &str, priority: Option<u32>, slo: Option<Slo>) -> Summary {
        Summary {
            workload: workload.to_owned(),
            priority,
            slo: slo.map(|slo| Objective { percentile: slo.percentile, latency_s: slo.latency }),
            reads: self.reads,
            writes: self.writes,
            commits: self.commits,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            over_limit: self.over_limit,
            late: self.late,
            waited_s: self.waited as f64 / 1e9,
            latency: Latencies::of(&self.latency),
            recent: Latencies::of(&self.recent),
        }
    }

    /// Begins a new interval: the latencies since the last summary are forgotten.
    pub fn begin_interval(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_sums_and_percentiles_of_all_requests_and_of_the_last_interval() {
        let slo = Slo { percentile: 99.0, latency: 0.01 };
        let mut counters = Counters::default();
        for millis in 1..=1000 {
            let latency = Nanos(millis * 20_000);
            let kind = if millis % 2 == 0 { Kind::Read } else { Kind::Write };
            let size = if millis % 10 == 1 { 0 } else { 4096 };
            let request = Answered { kind, size, waited: Nanos(1000), latency, was_over: millis % 4 == 0 };
            counters.add(Nanos(millis), request, Some(slo));
            if millis == 500 {
                counters.begin_interval();
            }
        }
        let summary = counters.summary("mail", Some(2), Some(slo));
        assert_eq!((summary.reads, summary.writes, summary.commits), (500, 400, 100));
        assert_eq!((summary.read_bytes, summary.written_bytes), (500 * 4096, 400 * 4096));
        assert_eq!((summary.over_limit, summary.late, counters.requests()), (250, 500, 1000));
        assert!((summary.waited_s - 1e-3).abs() < 1e-12);
        assert_eq!((summary.latency.requests, summary.recent.requests), (1000, 500));
        let close = |value: Option<f64>, exact: f64| {
            value.is_some_and(|value| value >= exact - 1e-12 && value <= exact * 1.01)
        };
        assert!(close(summary.latency.p50_s, 0.01) && close(summary.latency.p999_s, 0.01998), "{summary:?}");
        assert!(close(summary.recent.p50_s, 0.015) && close(summary.recent.max_s, 0.02), "{summary:?}");
        let (counted, latencies) = counters.counted(Nanos(1000), Some(Slo { percentile: 90.0, ..slo }));
        assert_eq!((counted.requests, counted.bytes, counted.late), (1000, 900 * 4096, 500));
        let percentiles: Vec<f64> = latencies.iter().map(|latency| latency.percentile).collect();
        assert_eq!(percentiles, [50.0, 99.0, 99.9, 90.0]);
        let idle = Counters::default().summary("web", None, None);
        assert_eq!((idle.latency.p50_s, idle.latency.max_s, idle.slo), (None, None, None));
    }
}
