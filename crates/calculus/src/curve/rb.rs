//! The r-b curve of a trace, exact for every rate.

use super::arrival::ArrivalCurve;
use super::envelope::Envelope;
use super::error::{CurveError, TraceError};
use super::hull::{Hull, Point, slope};
use crate::token_bucket::TokenBucket;

/// Largest work that arrived within an interval of some length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Length in seconds, from the first counted arrival to the last.
    pub seconds: f64,
    /// Work that arrived within the interval, both ends included.
    pub work: f64,
}

/// For each rate r, the smallest burst b(r) of a bucket that does not delay a workload. It is the largest content of a
/// bucket that leaks at r and receives each request on its arrival (SLO algorithm 2.1).
///
/// b(r) = max over k of (w_k - r t_k), over the [intervals](RbCurve::intervals) that matter for some rate. The curve is
/// therefore convex and piecewise linear, and falls from the total work at r = 0 to the largest work at one moment. The
/// curve is exact, not sampled at a list of rates. Rounding errors are a few units in the last place of the trace's
/// total work.
///
/// Rates are in work per second, bursts in work.
#[derive(Clone, PartialEq, Debug)]
pub struct RbCurve {
    /// The hull starts at 0 seconds; slopes are above 0 and strictly decrease.
    hull: Hull,
    mean: Option<f64>,
}

impl RbCurve {
    /// The curve of arrivals (seconds, work) in order of time; several arrivals may have the same time. The origin of
    /// time is arbitrary: only gaps matter.
    ///
    /// # Errors
    /// Fails at the first arrival that has an invalid time or work (negative or not finite), or comes before the
    /// previous one.
    pub fn from_arrivals(arrivals: impl IntoIterator<Item = (f64, f64)>) -> Result<RbCurve, TraceError> {
        let mut envelope = Envelope::default();
        let (mut first, mut last) = (None, f64::NEG_INFINITY);
        for (index, (at, work)) in arrivals.into_iter().enumerate() {
            if at < last {
                return Err(TraceError::Order { index, at, previous: last });
            }
            if !at.is_finite() || at < 0.0 {
                return Err(TraceError::Time { index, at });
            }
            if !work.is_finite() || work < 0.0 {
                return Err(TraceError::Work { index, work });
            }
            first = first.or(Some(at));
            last = at;
            envelope.push(at, work);
            if !envelope.total().is_finite() {
                return Err(TraceError::Total { index });
            }
        }
        let first = first.ok_or(TraceError::Empty)?;
        let mean = envelope.total() / (last - first);
        Ok(RbCurve { hull: envelope.finish(), mean: (last > first && mean.is_finite()).then_some(mean) })
    }

    /// The curve of arrivals of (nanoseconds, work). Times are relative to the first arrival, so times since 1970
    /// lose no precision.
    ///
    /// # Errors
    /// As [`RbCurve::from_arrivals`]; times in the message count from the first arrival.
    pub fn from_nanos(arrivals: impl IntoIterator<Item = (u64, f64)>) -> Result<RbCurve, TraceError> {
        let mut first = None;
        RbCurve::from_arrivals(arrivals.into_iter().map(|(at, work)| {
            let gap = i128::from(at) - i128::from(*first.get_or_insert(at));
            (gap as f64 / 1e9, work)
        }))
    }

    /// b(r): the smallest burst of a bucket of `rate` that does not delay the workload.
    ///
    /// # Errors
    /// A rate that is negative or not finite.
    pub fn burst(&self, rate: f64) -> Result<f64, CurveError> {
        if !rate.is_finite() || rate < 0.0 {
            return Err(CurveError::Rate(rate));
        }
        // The first vertex whose next edge is not steeper.
        let (mut low, mut high) = (0, self.points().len() - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if slope(self.points()[middle], self.points()[middle + 1]) > rate {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let Point { x, y } = self.points()[low];
        Ok((y - rate * x).max(self.largest()))
    }

    /// The intervals that matter for some rate, from 0 seconds on, with increasing lengths and work. A pair (r, b) is
    /// feasible if and only if b >= w - r t for each interval; these are the rows of a linear program (SLO section
    /// 5.2.2).
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = Interval> + '_ {
        self.points().iter().map(|point| Interval { seconds: point.x, work: point.y })
    }

    /// The vertices of the curve as buckets (r, b(r)), in order of decreasing rate; between two vertices the curve is a
    /// straight line. The last vertex has rate 0 and holds all work; above the first rate, b is the largest work at one
    /// moment.
    pub fn vertices(&self) -> impl Iterator<Item = TokenBucket> + '_ {
        let rising = self.points().windows(2).filter_map(|pair| {
            let rate = slope(pair[0], pair[1]);
            // If two points are so close in time that the rate overflows, the next bucket covers them.
            rate.is_finite()
                .then(|| TokenBucket::raw(rate, (pair[0].y - rate * pair[0].x).max(self.largest())))
        });
        rising.chain(std::iter::once(TokenBucket::raw(0.0, self.total())))
    }

    /// Mean rate: total work over the time from the first arrival to the last. It is the lowest sensible long-run rate.
    /// `None` if all arrivals come at one moment.
    pub fn mean_rate(&self) -> Option<f64> {
        self.mean
    }

    /// The largest work at one moment: b(r) for large r.
    pub fn largest(&self) -> f64 {
        self.points()[0].y
    }

    /// Total work of the trace: b(0).
    pub fn total(&self) -> f64 {
        self.points()[self.points().len() - 1].y
    }

    /// The arrival curve alpha(t) = min over r of (r t + b(r)), over all rates from the mean up; the curve's vertices
    /// are its buckets. Rates below the mean are left out: a trace ends, but the workload continues. For a trace
    /// without a mean rate the curve is the single bucket of rate 0 that holds all work.
    pub fn arrival_curve(&self) -> ArrivalCurve {
        let mean = self.floor();
        let mut buckets: Vec<TokenBucket> = self.vertices().filter(|bucket| bucket.rate() > mean).collect();
        buckets.push(TokenBucket::raw(mean, self.burst_from(mean)));
        ArrivalCurve::new(&buckets).expect("at least the bucket of the mean")
    }

    /// The curve with the work of each request multiplied by `factor`: a safety margin of 10 % is 1.1 (SLO section
    /// 5.4.2). The factor scales the arrival curve, so it scales both rates and bursts.
    ///
    /// # Errors
    /// A factor that is not above 0 or not finite, or that makes the work overflow.
    pub fn scaled(&self, factor: f64) -> Result<RbCurve, CurveError> {
        self.map_work(|work| work * factor)
            .filter(|_| factor > 0.0 && factor.is_finite())
            .ok_or(CurveError::Factor(factor))
    }

    /// A bound on two workloads together, whose bursts may coincide. Its arrival curve is the sum of the two arrival
    /// curves, and its mean rate is the sum of the two mean rates.
    pub fn plus(&self, other: &RbCurve) -> RbCurve {
        let mut lengths: Vec<f64> = self.points().iter().chain(other.points()).map(|point| point.x).collect();
        lengths.sort_by(f64::total_cmp);
        lengths.dedup();
        let sum = lengths.into_iter().map(|x| Point { x, y: self.hull.at(x) + other.hull.at(x) });
        let mean = match (self.mean, other.mean) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        RbCurve { hull: Hull::of(sum), mean }
    }

    fn points(&self) -> &[Point] {
        self.hull.points()
    }

    /// The mean rate, or 0 without one.
    pub(super) fn floor(&self) -> f64 {
        self.mean.unwrap_or(0.0)
    }

    /// b at a rate that is known to be valid.
    pub(super) fn burst_from(&self, rate: f64) -> f64 {
        self.burst(rate).expect("a rate of the curve is finite and not negative")
    }

    fn map_work(&self, f: impl Fn(f64) -> f64) -> Option<RbCurve> {
        let hull = Hull::of(self.points().iter().map(|point| Point { x: point.x, y: f(point.y) }));
        let mean = self.mean.map(&f);
        let finite = hull.points().iter().all(|point| point.y.is_finite()) && mean.is_none_or(f64::is_finite);
        finite.then_some(RbCurve { hull, mean })
    }
}
