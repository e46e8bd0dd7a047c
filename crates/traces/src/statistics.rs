//! Summary statistics of a trace, from one pass over it.
//!
//! Undefined statistics (the rate of a single request, for example) are `None`.

use std::num::NonZeroU64;

use leeward_fabric::Nanos;

use crate::{Kind, Request, Stage, StageWork};

/// Accepts the requests of a trace, in order of time, and maintains sums.
#[derive(Clone, Debug)]
pub struct Statistics {
    window: NonZeroU64,
    requests: u64,
    reads: u64,
    first: Option<Nanos>,
    last: Nanos,
    gaps: Moments,
    bytes: u128,
    largest: u64,
    /// Index of the window of the last request; the window of the first request has index 0.
    window_index: u64,
    peak: Peak,
    work: [StageSums; Stage::ALL.len()],
}

/// Statistics of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// Number of requests.
    pub requests: u64,
    /// Time from the first request to the last, in seconds.
    pub seconds: f64,
    /// Requests per second over that time; `None` if all requests have the same time.
    pub rate: Option<f64>,
    /// C^2, the squared coefficient of variation of the gaps between requests: variance divided by squared mean. It is
    /// 1 for a Poisson stream and 0 for a constant gap. `None` for fewer than two gaps, or if all are 0.
    pub gap_c2: Option<f64>,
    /// Number of requests of the busiest window divided by the mean of all windows, at least 1. Consecutive windows
    /// start at the first request. `None` for a trace shorter than one window.
    pub peak_over_mean: Option<f64>,
    /// Share of reads among all requests.
    pub read_share: Option<f64>,
    /// Total payload, in bytes.
    pub bytes: u128,
    /// Mean payload of a request, in bytes.
    pub mean_size: Option<f64>,
    /// The largest payload, in bytes.
    pub largest_size: Option<u64>,
    /// Work at each stage, in the order of [`Stage::ALL`]; `None` if a request has no known work at the stage.
    pub work: [Option<WorkSummary>; Stage::ALL.len()],
}

/// The work of a trace at one stage: bytes, or seconds of service.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkSummary {
    /// Total work.
    pub total: f64,
    /// Work per second, from the first request to the last: the mean load. `None` if all requests have the same time.
    pub rate: Option<f64>,
    /// Work of the largest request.
    pub largest: f64,
    /// Work of the busiest window divided by the mean of all windows, at least 1.
    pub peak_over_mean: Option<f64>,
}

impl Statistics {
    /// Empty statistics. `window` is the length of the windows for peaks.
    pub fn new(window: NonZeroU64) -> Statistics {
        Statistics {
            window,
            requests: 0,
            reads: 0,
            first: None,
            last: Nanos(0),
            gaps: Moments::default(),
            bytes: 0,
            largest: 0,
            window_index: 0,
            peak: Peak::default(),
            work: [StageSums::default(); Stage::ALL.len()],
        }
    }

    /// Adds a request with its work. Its time is not before the time of the last request.
    pub fn push(&mut self, request: &Request, work: StageWork) {
        let first = *self.first.get_or_insert(request.at);
        if self.requests > 0 {
            self.gaps.push(request.at.since(self.last).0 as f64);
        }
        let window = request.at.since(first).0 / self.window;
        let next = window != self.window_index;
        self.window_index = window;
        self.last = request.at;
        self.requests += 1;
        self.reads += u64::from(request.kind == Kind::Read);
        self.bytes += u128::from(request.size);
        self.largest = self.largest.max(request.size);
        self.peak.add(1.0, next);
        for (stage, sums) in Stage::ALL.into_iter().zip(&mut self.work) {
            match work.at(stage) {
                Some(work) => sums.add(work, next),
                None => sums.unknown = true,
            }
        }
    }

    /// The statistics so far.
    pub fn summary(&self) -> Summary {
        let nanos = self.first.map_or(0, |first| self.last.since(first).0);
        let seconds = Nanos(nanos).as_secs_f64();
        let count = self.requests as f64;
        let over = |total: f64, divisor: f64| (divisor > 0.0).then(|| total / divisor);
        let windows = if nanos >= self.window.get() { nanos as f64 / self.window.get() as f64 } else { 0.0 };
        // The mean is over the whole duration, although the last requests may be in a window that ends later.
        let peak_over_mean = |peak: f64, total: f64| {
            over(total, windows)
                .and_then(|mean| over(peak, mean))
                .filter(|ratio| ratio.is_finite())
                .map(|ratio| ratio.max(1.0))
        };
        let work = self.work.map(|sums| {
            (self.requests > 0 && !sums.unknown).then(|| WorkSummary {
                total: sums.total,
                rate: over(sums.total, seconds),
                largest: sums.largest,
                peak_over_mean: peak_over_mean(sums.windows.peak(), sums.total),
            })
        });
        Summary {
            requests: self.requests,
            seconds,
            rate: over(count, seconds),
            gap_c2: self.gaps.c2(),
            peak_over_mean: peak_over_mean(self.peak.peak(), count),
            read_share: over(self.reads as f64, count),
            bytes: self.bytes,
            mean_size: over(self.bytes as f64, count),
            largest_size: (self.requests > 0).then_some(self.largest),
            work,
        }
    }
}

/// Sums for one stage.
#[derive(Clone, Copy, Debug, Default)]
struct StageSums {
    unknown: bool,
    total: f64,
    largest: f64,
    windows: Peak,
}

impl StageSums {
    fn add(&mut self, work: f64, next: bool) {
        self.total += work;
        self.largest = self.largest.max(work);
        self.windows.add(work, next);
    }
}

/// The largest sum of one window.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    before: f64,
    now: f64,
}

impl Peak {
    /// Adds to the current window; if `next` is true, begins a new window first.
    fn add(&mut self, amount: f64, next: bool) {
        if next {
            self.before = self.peak();
            self.now = 0.0;
        }
        self.now += amount;
    }

    fn peak(&self) -> f64 {
        self.before.max(self.now)
    }
}

/// Mean and squared deviations, updated without cancellation (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn push(&mut self, number: f64) {
        self.count += 1.0;
        let before = number - self.mean;
        self.mean += before / self.count;
        self.squares += before * (number - self.mean);
    }

    fn c2(&self) -> Option<f64> {
        (self.count >= 2.0 && self.mean > 0.0).then(|| self.squares / self.count / (self.mean * self.mean))
    }
}
