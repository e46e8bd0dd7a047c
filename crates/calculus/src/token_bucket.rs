//! Token buckets: in any interval of length t, at most `burst + rate * t` of work arrives.

use crate::number_format::format_number;

/// A limit on arrivals: a rate in work per second, and a burst in work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TokenBucket {
    rate: f64,
    burst: f64,
}

/// An invalid rate or burst.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("token bucket of rate {} and burst {}: both must be finite and not negative", format_number(*.rate), format_number(*.burst))]
pub struct BucketError {
    /// The rejected rate.
    pub rate: f64,
    /// The rejected burst.
    pub burst: f64,
}

impl TokenBucket {
    /// A bucket that leaks `rate` work per second and holds `burst`.
    ///
    /// # Errors
    ///
    /// Fails if the rate or the burst is negative or not finite.
    pub fn new(rate: f64, burst: f64) -> Result<TokenBucket, BucketError> {
        if rate.is_finite() && burst.is_finite() && rate >= 0.0 && burst >= 0.0 {
            Ok(TokenBucket { rate, burst })
        } else {
            Err(BucketError { rate, burst })
        }
    }

    /// A bucket from numbers that are known to be finite and non-negative.
    pub(crate) fn raw(rate: f64, burst: f64) -> TokenBucket {
        debug_assert!(rate.is_finite() && burst.is_finite() && rate >= 0.0 && burst >= 0.0);
        TokenBucket { rate, burst }
    }

    /// Rate, in work per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Burst, in work.
    pub fn burst(&self) -> f64 {
        self.burst
    }

    /// Largest work that can arrive in any interval of `seconds`.
    pub fn arrivals(&self, seconds: f64) -> f64 {
        self.burst + self.rate * seconds
    }
}

/// Largest work that can arrive in any interval of `seconds` under all of `buckets` together. It is the arrival curve
/// min over i of (r_i t + b_i) of Zhu's thesis, section 2.3.1. Infinite without buckets.
pub fn arrivals(buckets: &[TokenBucket], seconds: f64) -> f64 {
    buckets.iter().map(|bucket| bucket.arrivals(seconds)).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrival_curve_is_the_minimum_of_its_buckets() {
        let burst = TokenBucket::new(10.0, 100.0).unwrap();
        let steady = TokenBucket::new(30.0, 20.0).unwrap();
        assert_eq!(arrivals(&[burst, steady], 0.0), 20.0);
        assert_eq!(arrivals(&[burst, steady], 4.0), 140.0);
        assert_eq!(arrivals(&[burst, steady], 10.0), 200.0);
        assert_eq!(arrivals(&[], 1.0), f64::INFINITY);
    }

    #[test]
    fn an_invalid_bucket_is_rejected() {
        for (rate, burst) in [(-1.0, 0.0), (0.0, -1.0), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
            assert!(TokenBucket::new(rate, burst).is_err());
        }
    }
}
