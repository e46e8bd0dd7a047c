//! Requests and work of a trace over time.

/// Shortest interval, in nanoseconds.
const SHORTEST: u64 = 10_000_000;
/// Most intervals of a trace. Each interval of a longer trace is twice as long.
const MOST_INTERVALS: usize = 4096;

/// Requests and work of a trace in intervals of equal length. Intervals of all traces begin at multiples of their length
/// on the clock of the traces.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activity {
    /// The length is the shortest one times two to this power.
    level: u32,
    /// Number of the first interval on the clock.
    first: u64,
    requests: Vec<f64>,
    work: Vec<f64>,
}

impl Activity {
    /// Adds a request: its time in nanoseconds on the clock of the traces, in order, and its work.
    pub fn push(&mut self, at: u64, work: f64) {
        let index = loop {
            let number = at / self.nanos();
            if self.requests.is_empty() {
                self.first = number;
            }
            let index = number.saturating_sub(self.first);
            match usize::try_from(index) {
                Ok(index) if index < MOST_INTERVALS => break index,
                _ => *self = self.coarser(),
            }
        };
        if index >= self.requests.len() {
            self.requests.resize(index + 1, 0.0);
            self.work.resize(index + 1, 0.0);
        }
        self.requests[index] += 1.0;
        self.work[index] += work;
    }

    /// Length of an interval, in seconds.
    pub fn interval(&self) -> f64 {
        self.nanos() as f64 / 1e9
    }

    /// Requests of each interval.
    pub fn requests(&self) -> &[f64] {
        &self.requests
    }

    /// Work of each interval.
    pub fn work(&self) -> &[f64] {
        &self.work
    }

    /// Number of the first interval on the clock, counted in intervals.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// The same trace without its work.
    pub(super) fn of_requests(&self) -> Activity {
        Activity { level: self.level, first: self.first, requests: self.requests.clone(), work: Vec::new() }
    }

    fn nanos(&self) -> u64 {
        SHORTEST << self.level
    }

    /// The same trace in intervals of twice the length.
    pub(super) fn coarser(&self) -> Activity {
        let half = |fine: &[f64]| {
            let odd = usize::from(self.first % 2 == 1);
            let mut sums = vec![0.0; (fine.len() + odd).div_ceil(2)];
            fine.iter().enumerate().for_each(|(at, amount)| sums[(at + odd) / 2] += amount);
            sums
        };
        Activity {
            level: self.level + 1,
            first: self.first / 2,
            requests: half(&self.requests),
            work: half(&self.work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_at_multiples_of_their_length_on_the_clock() {
        let mut activity = Activity::default();
        for at in [35_000_000, 39_000_000, 40_000_000, 61_000_000] {
            activity.push(at, 2.0);
        }
        assert_eq!((activity.first(), activity.requests()), (3, &[2.0, 1.0, 0.0, 1.0][..]));
        let coarser = activity.coarser();
        assert_eq!((coarser.first(), coarser.work()), (1, &[4.0, 2.0, 2.0][..]));
        assert_eq!(coarser.interval(), 0.02);
    }

    #[test]
    fn a_long_trace_has_longer_intervals_and_loses_nothing() {
        let mut activity = Activity::default();
        let times = [1, 1 << 40, 1 << 50, u64::MAX / 2, u64::MAX];
        for at in times {
            activity.push(at, 1.0);
        }
        assert!(activity.requests().len() <= MOST_INTERVALS);
        assert_eq!(activity.requests().iter().sum::<f64>(), times.len() as f64);
    }
}
