//! Operations on arrival and service curves. Arrivals are concave, service is convex; results are exact, not sampled.
//!
//! Sources: the operators of SLO sections 4.2.1 and A.2 in their deterministic form; Le Boudec and Thiran, *Network
//! Calculus*, chapters 1 and 6, for curves of several pieces.

use super::service::{RateLatency, ServiceCurve};
use crate::curve::ArrivalCurve;
use crate::number_format::format_number;
use crate::token_bucket::TokenBucket;

/// Long-run arrivals exceed the service, so no bound exists.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("overload: {} work/s arrive, {} work/s are served", format_number(*.load), format_number(*.service))]
pub struct Overload {
    /// Long-run arrivals, in work per second.
    pub load: f64,
    /// Long-run service, in work per second.
    pub service: f64,
}

impl ServiceCurve {
    /// The largest delay of `arrivals` served in order: the horizontal deviation, in seconds. Zero without arrivals.
    ///
    /// # Errors
    /// The arrivals exceed the service.
    pub fn delay(&self, arrivals: &ArrivalCurve) -> Result<f64, Overload> {
        self.must_serve(arrivals)?;
        if arrivals.rate() == 0.0 && arrivals.buckets()[arrivals.buckets().len() - 1].burst() == 0.0 {
            return Ok(0.0);
        }
        // The delay is concave in the time of arrival, so its maximum is at a vertex of one of the two curves.
        let of_arrivals = arrivals.vertices().map(|(at, work)| self.seconds_for(work) - at);
        let of_service = self.segments().into_iter().skip(1).filter_map(|(done, _)| {
            let at = arrivals.seconds_until(self.work(done))?;
            (at > 0.0).then_some(done - at)
        });
        // NaN stays NaN, and is rejected together with infinity.
        let larger = |most: f64, delay: f64| if delay <= most { most } else { delay };
        let delay = of_arrivals.chain(of_service).fold(0.0, larger);
        if delay.is_finite() { Ok(delay) } else { Err(self.overload(arrivals)) }
    }

    /// Service left for other flows when `arrivals` are served first: the service minus the arrivals, at least 0. The
    /// result holds for strict service, such as a queue of constant rate. `arrivals` and the other flows may be served
    /// in any order (blind multiplexing), so the result covers higher and equal priorities.
    ///
    /// # Errors
    /// No service is left.
    pub fn leftover(&self, arrivals: &ArrivalCurve) -> Result<ServiceCurve, Overload> {
        // The maximum over pieces, minus the minimum over buckets, is the maximum of the differences over all pairs.
        let pairs = self.pieces().iter().flat_map(|piece| {
            arrivals.buckets().iter().filter_map(|bucket| {
                let rate = piece.rate() - bucket.rate();
                let late = (piece.rate() * piece.latency() + bucket.burst()) / rate;
                RateLatency::new(rate, late).ok()
            })
        });
        let pieces: Vec<RateLatency> = pairs.collect();
        ServiceCurve::new(&pieces).ok_or(self.overload(arrivals))
    }

    /// Service left for one flow of a queue that serves its flows in order of arrival. `arrivals` are the arrivals of
    /// the other flows (Le Boudec and Thiran, *Network Calculus*, proposition 6.2.1). For any theta, the result is zero
    /// until theta, and then the service minus the `arrivals` until theta seconds earlier. Here theta is the delay of
    /// `arrivals` alone. For one bucket and one piece, theta is the latency plus the burst over the rate.
    ///
    /// # Errors
    /// No service is left.
    pub fn leftover_in_order(&self, arrivals: &ArrivalCurve) -> Result<ServiceCurve, Overload> {
        let theta = self.delay(arrivals)?;
        let pairs = self.pieces().iter().flat_map(|piece| {
            arrivals.buckets().iter().filter_map(move |bucket| {
                let rate = piece.rate() - bucket.rate();
                let late = piece.rate() * piece.latency() + bucket.burst() - bucket.rate() * theta;
                RateLatency::new(rate, (late / rate).max(theta)).ok()
            })
        });
        ServiceCurve::new(&pairs.collect::<Vec<_>>()).ok_or(self.overload(arrivals))
    }

    /// The output: arrivals behind a queue with this service, the min-plus deconvolution of both curves.
    ///
    /// # Errors
    /// The arrivals exceed the service.
    pub fn output(&self, arrivals: &ArrivalCurve) -> Result<ArrivalCurve, Overload> {
        self.must_serve(arrivals)?;
        let starts: Vec<f64> = arrivals.vertices().map(|vertex| vertex.0).collect();
        let segments = self.segments();
        let rate = |piece: usize| arrivals.buckets()[piece].rate();
        let next = |piece: usize| starts.get(piece + 1).copied().unwrap_or(f64::INFINITY);
        let end = |segment: usize| segments.get(segment + 1).map_or(f64::INFINITY, |segment| segment.0);
        // The backlog grows while the arrival rate exceeds the service rate.
        let (mut piece, mut segment, mut fullest) = (0, 0, 0.0);
        while rate(piece) > segments[segment].1 {
            let arrivals_turn = segment + 1 == segments.len() || next(piece) <= end(segment);
            if arrivals_turn && piece + 1 < starts.len() {
                fullest = next(piece);
                piece += 1;
            } else {
                fullest = end(segment);
                segment += 1;
            }
        }
        // From this point, the interval grows at the end that adds more work: at its later end by more arrivals, or at
        // its earlier end by less service.
        let (mut work, mut at) = (arrivals.arrivals(fullest) - self.work(fullest), 0.0);
        let (mut from, mut to) = (fullest, fullest);
        let mut buckets = Vec::new();
        loop {
            while segment > 0 && from <= segments[segment].0 {
                segment -= 1;
            }
            let (start, served) = segments[segment];
            let later = from <= start || rate(piece) >= served;
            let slope = if later { rate(piece) } else { served };
            let burst = work - slope * at;
            if !burst.is_finite() {
                return Err(self.overload(arrivals));
            }
            buckets.push(TokenBucket::raw(slope, burst.max(0.0)));
            let length = if later { next(piece) - to } else { from - start };
            if later && piece + 1 == starts.len() {
                return Ok(ArrivalCurve::new(&buckets).expect("at least the last piece of the arrivals"));
            }
            if later {
                to = next(piece);
                piece += 1;
            } else {
                from = start;
            }
            at += length;
            work += slope * length;
        }
    }

    /// Two queues in sequence as one: the min-plus convolution. The latencies add up, and the lowest rates come
    /// first. `None` if the latencies together overflow.
    pub fn then(&self, after: &ServiceCurve) -> Option<ServiceCurve> {
        let lengths = |curve: &ServiceCurve| -> Vec<(f64, f64)> {
            let segments = curve.segments();
            let end = |index: usize| segments.get(index + 1).map_or(f64::INFINITY, |next| next.0);
            segments
                .iter()
                .enumerate()
                .skip(1)
                .map(|(index, &(from, slope))| (slope, end(index) - from))
                .collect()
        };
        let mut segments = lengths(self);
        segments.extend(lengths(after));
        segments.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut at, mut work, mut pieces) = (self.latency() + after.latency(), 0.0, Vec::new());
        for (slope, length) in segments {
            let late = at - work / slope;
            // Rounding may make a latency of zero negative.
            pieces.extend(RateLatency::new(slope, if late < 0.0 { 0.0 } else { late }));
            if length == f64::INFINITY {
                break;
            }
            at += length;
            work += slope * length;
        }
        ServiceCurve::new(&pieces)
    }

    fn must_serve(&self, arrivals: &ArrivalCurve) -> Result<(), Overload> {
        if arrivals.rate() > self.rate() { Err(self.overload(arrivals)) } else { Ok(()) }
    }

    fn overload(&self, arrivals: &ArrivalCurve) -> Overload {
        Overload { load: arrivals.rate(), service: self.rate() }
    }
}

impl ArrivalCurve {
    /// Longest delay of these arrivals at a shaper with the bucket `shaper`, in seconds: 0 for a pair on or above the
    /// r-b curve. For several buckets at once it is the maximum over the buckets.
    ///
    /// # Errors
    /// The long-run arrivals exceed the shaper's rate.
    pub fn shaper_delay(&self, shaper: TokenBucket) -> Result<f64, Overload> {
        let overload = Overload { load: self.rate(), service: shaper.rate() };
        if self.rate() > shaper.rate() {
            return Err(overload);
        }
        let late = |(at, work): (f64, f64)| match work - shaper.burst() {
            excess if excess > 0.0 => excess / shaper.rate() - at,
            _ => 0.0,
        };
        let delay = self.vertices().map(late).fold(0.0, f64::max);
        if delay.is_finite() { Ok(delay) } else { Err(overload) }
    }
}
