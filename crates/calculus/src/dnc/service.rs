//! Service curves: the maximum of several rate-latency pieces.

/// A service of no work for `latency` seconds, and of `rate` work per second from then on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateLatency {
    rate: f64,
    latency: f64,
}

/// An invalid rate or latency.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error(
    "service of rate {rate} after {latency} seconds: the rate must be finite and above 0, the latency finite and not negative"
)]
pub struct ServiceError {
    /// The rejected rate.
    pub rate: f64,
    /// The rejected latency, in seconds.
    pub latency: f64,
}

impl RateLatency {
    /// A piece with `rate` in work per second, and `latency` in seconds.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not finite and above 0, or the latency not finite or negative.
    pub fn new(rate: f64, latency: f64) -> Result<RateLatency, ServiceError> {
        let valid = rate.is_finite() && rate > 0.0 && latency.is_finite() && latency >= 0.0;
        if valid { Ok(RateLatency { rate, latency }) } else { Err(ServiceError { rate, latency }) }
    }

    /// Rate, in work per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Seconds before the first work.
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// Guaranteed work after `seconds`.
    pub fn work(&self, seconds: f64) -> f64 {
        self.rate * (seconds - self.latency).max(0.0)
    }
}

/// A convex service guarantee, beta(t) = max over i of R_i (t - T_i), and at least 0. During any backlog of t seconds,
/// at least beta(t) of work is served.
///
/// Pieces are in order of increasing rate and latency, and each piece is the maximum for some t.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceCurve {
    pieces: Vec<RateLatency>,
}

impl From<RateLatency> for ServiceCurve {
    fn from(piece: RateLatency) -> ServiceCurve {
        ServiceCurve { pieces: vec![piece] }
    }
}

impl ServiceCurve {
    /// The maximum of `pieces`; `None` without pieces, because nothing is then guaranteed. Pieces that are nowhere the
    /// maximum are dropped.
    pub fn new(pieces: &[RateLatency]) -> Option<ServiceCurve> {
        let mut sorted = pieces.to_vec();
        sorted.sort_by(|a, b| a.rate.total_cmp(&b.rate).then(b.latency.total_cmp(&a.latency)));
        let mut envelope: Vec<RateLatency> = Vec::new();
        for piece in sorted {
            while let Some(&last) = envelope.last() {
                let redundant = piece.latency <= last.latency
                    || envelope.len() > 1 && meet(last, piece) <= meet(envelope[envelope.len() - 2], last);
                if !redundant {
                    break;
                }
                envelope.pop();
            }
            envelope.push(piece);
        }
        (!envelope.is_empty()).then_some(ServiceCurve { pieces: envelope })
    }

    /// The pieces, in order of increasing rate and latency.
    pub fn pieces(&self) -> &[RateLatency] {
        &self.pieces
    }

    /// Guaranteed work after `seconds`: beta(t).
    pub fn work(&self, seconds: f64) -> f64 {
        self.pieces.iter().map(|piece| piece.work(seconds)).fold(0.0, f64::max)
    }

    /// The long-run rate: the rate of the last piece.
    pub fn rate(&self) -> f64 {
        self.pieces[self.pieces.len() - 1].rate
    }

    /// Seconds before any guaranteed work.
    pub fn latency(&self) -> f64 {
        self.pieces[0].latency
    }

    /// Latest time at which `work` is done, in seconds; for zero work, the latency.
    pub fn seconds_for(&self, work: f64) -> f64 {
        self.pieces.iter().map(|piece| piece.latency + work / piece.rate).fold(f64::INFINITY, f64::min)
    }

    /// The linear segments of the curve: (start in seconds, slope), the first from 0 on with slope 0.
    pub(crate) fn segments(&self) -> Vec<(f64, f64)> {
        let mut segments = vec![(0.0, 0.0), (self.latency(), self.pieces[0].rate)];
        segments.extend(self.pieces.windows(2).map(|pair| (meet(pair[0], pair[1]), pair[1].rate)));
        segments
    }
}

/// Time, in seconds, at which `after`, with a higher rate and latency, overtakes `before`.
fn meet(before: RateLatency, after: RateLatency) -> f64 {
    // The later start, plus the time to catch up from that start. This avoids a difference of large products.
    after.latency + before.work(after.latency) / (after.rate - before.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(rate: f64, latency: f64) -> RateLatency {
        RateLatency::new(rate, latency).unwrap()
    }

    #[test]
    fn pieces_that_are_nowhere_the_maximum_are_dropped() {
        let curve = ServiceCurve::new(&[piece(5.0, 3.0), piece(1.0, 1.0), piece(4.9, 3.0), piece(1.0, 2.0)]);
        assert_eq!(curve.unwrap().pieces(), [piece(1.0, 1.0), piece(5.0, 3.0)]);
        assert_eq!(
            ServiceCurve::new(&[piece(1.0, 3.0), piece(2.0, 3.0)]).unwrap().pieces(),
            [piece(2.0, 3.0)]
        );
        assert_eq!(ServiceCurve::new(&[]), None);
    }

    #[test]
    fn an_invalid_piece_is_rejected() {
        for (rate, latency) in [(0.0, 0.0), (-1.0, 0.0), (f64::NAN, 0.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
            assert!(RateLatency::new(rate, latency).is_err());
        }
    }
}
