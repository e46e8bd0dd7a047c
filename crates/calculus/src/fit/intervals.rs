//! The intervals of a trace.

use super::settings::Chain;

/// Intervals of equal length, except perhaps the last. Lengths are relative to a whole interval.
pub(super) struct Intervals {
    seconds: f64,
    count: usize,
    last: f64,
    in_trace: f64,
}

impl Intervals {
    /// Intervals of `seconds` for a trace whose last request comes at `end`. With [`Chain::Published`], the rest after
    /// the whole intervals is one more interval, and counts as a whole one. With [`Chain::Closed`], the rest belongs to
    /// the last whole interval, because the rate of a short interval would be random. Only a trace shorter than
    /// `seconds` has a shorter interval. A trace with all requests at time 0 has one whole interval.
    pub fn new(end: f64, seconds: f64, chain: Chain) -> Intervals {
        let in_trace = if end > 0.0 { end / seconds } else { 1.0 };
        let whole = (end / seconds) as usize;
        let (count, last) = match chain {
            Chain::Published => (whole + 1, 1.0),
            Chain::Closed => (whole.max(1), in_trace - (whole.max(1) - 1) as f64),
        };
        Intervals { seconds, count, last, in_trace }
    }

    /// Index of the interval at a time.
    pub fn index(&self, at: f64) -> usize {
        ((at / self.seconds) as usize).min(self.count - 1)
    }

    /// Length of a whole interval, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Length of each interval.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        let last = self.count - 1;
        (0..self.count).map(move |at| if at == last { self.last } else { 1.0 })
    }

    /// Length of the trace, relative to a whole interval.
    pub fn in_trace(&self) -> f64 {
        self.in_trace
    }

    /// Sum of the amounts in each interval, divided by the length of the interval. `amounts` has pairs of (time,
    /// amount).
    pub fn sums(&self, amounts: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (at, amount) in amounts {
            sums[self.index(at)] += amount;
        }
        sums[self.count - 1] /= self.last;
        sums
    }
}
