//! The intervals that a trace is cut into.

use super::fit::Chain;

/// Intervals of one length, of which the last may have another. Lengths are counted in that of a whole one.
pub(super) struct Intervals {
    seconds: f64,
    count: usize,
    last: f64,
    in_trace: f64,
}

impl Intervals {
    /// For a trace whose last request comes at `end`, in intervals of `seconds`. As released, what is left after whole intervals is
    /// one more, and counts as whole; else it belongs to the last whole one, because a short one would make a rate of a chance:
    /// there is a shorter one only if the whole trace is. One instant takes a whole interval.
    pub fn new(end: f64, seconds: f64, chain: Chain) -> Intervals {
        let in_trace = if end > 0.0 { end / seconds } else { 1.0 };
        let whole = (end / seconds) as usize;
        let (count, last) = match chain {
            Chain::Published => (whole + 1, 1.0),
            Chain::Closed => (whole.max(1), in_trace - (whole.max(1) - 1) as f64),
        };
        Intervals { seconds, count, last, in_trace }
    }

    /// Which one a time is in.
    pub fn of(&self, at: f64) -> usize {
        ((at / self.seconds) as usize).min(self.count - 1)
    }

    /// The length of each.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        let last = self.count - 1;
        (0..self.count).map(move |at| if at == last { self.last } else { 1.0 })
    }

    /// How long the trace is.
    pub fn in_trace(&self) -> f64 {
        self.in_trace
    }

    /// What comes in each, over its length: (time, amount).
    pub fn sums(&self, amounts: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (at, amount) in amounts {
            sums[self.of(at)] += amount;
        }
        sums[self.count - 1] /= self.last;
        sums
    }
}
