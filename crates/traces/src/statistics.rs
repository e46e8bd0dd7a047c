//! Numbers that describe a trace, from one pass over it.
//!
//! A number that a trace does not have (the rate of a single request, say) is None.

use std::num::NonZeroU64;

use leeward_fabric::Nanos;

use crate::{Kind, Request, Stage, StageWork};

/// Takes in the requests of a trace, in order of time, and keeps sums.
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
    /// Which window the last request was in, from that of the first.
    at: u64,
    in_windows: Peak,
    work: [Stages; Stage::ALL.len()],
}

/// What a trace is like.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// How many requests.
    pub requests: u64,
    /// From the first request to the last, in seconds.
    pub seconds: f64,
    /// Requests a second, over that time; None if they all come at one moment.
    pub rate: Option<f64>,
    /// C^2, the squared coefficient of variation of the gaps between requests: variance over squared mean, 1 for a Poisson stream and 0
    /// for a constant gap. None for fewer than two gaps, or if all are 0.
    pub gap_c2: Option<f64>,
    /// Requests of the busiest window over the mean of a window, at least 1. Windows follow one another from the first request on. None
    /// for a trace shorter than one.
    pub peak_over_mean: Option<f64>,
    /// Reads, of all requests.
    pub read_share: Option<f64>,
    /// All payload.
    pub bytes: u128,
    /// Payload of a request, in bytes.
    pub mean_size: Option<f64>,
    /// The largest payload, in bytes.
    pub largest_size: Option<u64>,
    /// For each stage, in the order of [`Stage::ALL`], its work; None where a request had none.
    pub work: [Option<WorkSummary>; Stage::ALL.len()],
}

/// The work of a trace at one stage: bytes, or seconds of service.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkSummary {
    /// All of it.
    pub total: f64,
    /// A second, from the first request to the last: its mean load. None if they all come at one moment.
    pub rate: Option<f64>,
    /// Of the largest request.
    pub largest: f64,
    /// Of the busiest window over the mean of a window, at least 1.
    pub peak_over_mean: Option<f64>,
}

impl Statistics {
    /// Of no request yet. `window` is what peaks are taken over.
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
            at: 0,
            in_windows: Peak::default(),
            work: [Stages::default(); Stage::ALL.len()],
        }
    }

    /// Takes in a request, not before the last, and its work.
    pub fn push(&mut self, request: &Request, work: StageWork) {
        let first = *self.first.get_or_insert(request.at);
        if self.requests > 0 {
            self.gaps.push(request.at.since(self.last).0 as f64);
        }
        let window = request.at.since(first).0 / self.window;
        let next = window != self.at;
        self.at = window;
        self.last = request.at;
        self.requests += 1;
        self.reads += u64::from(request.kind == Kind::Read);
        self.bytes += u128::from(request.size);
        self.largest = self.largest.max(request.size);
        self.in_windows.add(1.0, next);
        for (stage, sums) in Stage::ALL.into_iter().zip(&mut self.work) {
            match work.at(stage) {
                Some(work) => sums.add(work, next),
                None => sums.unknown = true,
            }
        }
    }

    /// What the trace is like so far.
    pub fn summary(&self) -> Summary {
        let nanos = self.first.map_or(0, |first| self.last.since(first).0);
        let seconds = Nanos(nanos).as_secs_f64();
        let count = self.requests as f64;
        let over = |total: f64, of: f64| (of > 0.0).then(|| total / of);
        let windows = if nanos >= self.window.get() { nanos as f64 / self.window.get() as f64 } else { 0.0 };
        // The mean is over the time, and what comes last may be in a window that the time has no part of.
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
            peak_over_mean: peak_over_mean(self.in_windows.peak(), count),
            read_share: over(self.reads as f64, count),
            bytes: self.bytes,
            mean_size: over(self.bytes as f64, count),
            largest_size: (self.requests > 0).then_some(self.largest),
            work,
        }
    }
}

/// Sums of one stage.
#[derive(Clone, Copy, Debug, Default)]
struct Stages {
    unknown: bool,
    total: f64,
    largest: f64,
    windows: Peak,
}

impl Stages {
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
    /// Adds to this window, or to the next.
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

/// Mean and squared deviations, updated so that nothing cancels (Welford).
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
