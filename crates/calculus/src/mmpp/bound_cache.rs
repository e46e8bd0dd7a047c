//! Cache of a model's bounds at the thetas that every search visits, shared by a model and its copies.
//!
//! There are two grids. The *coarse* grid has 1 and 1.5 times powers of two, where searches begin. The *fine* grid has
//! eighths, from 8/8 to 15/8 times powers of two, and slopes. Between two fine points, a cubic is very close to the
//! bound. A search may follow the cubic, and compute the bound itself only at the end.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::bound::Bound;

/// Number of cached thetas per grid: 32 octaves of the coarse grid, 8 octaves of the fine grid. Values at other thetas
/// are computed each time.
const SLOTS: usize = 64;
/// Numbers of low bits of a mantissa: all bits after the first, which are zero on the coarse grid, and all bits after
/// the third, which are zero on the fine grid.
const BELOW_HALVES: u32 = 51;
const BELOW_EIGHTHS: u32 = 49;

/// Entries of a grid: the bits of a theta, and the value there.
type Slots<T> = OnceLock<Box<[OnceLock<(u64, Option<T>)>; SLOTS]>>;

/// Cached bounds of a model. Copies share the cache; it does not affect equality.
#[derive(Clone, Default)]
pub(super) struct BoundCache(Arc<Grids>);

#[derive(Default)]
struct Grids {
    coarse: Slots<Bound>,
    fine: Slots<(Bound, Bound)>,
    coarse_requests: Slots<f64>,
    fine_requests: Slots<(f64, f64)>,
}

impl BoundCache {
    /// The bound at a theta; cached for thetas of the coarse grid.
    pub(super) fn bound(&self, theta: f64, compute: impl FnOnce() -> Option<Bound>) -> Option<Bound> {
        get_or_compute(&self.0.coarse, BELOW_HALVES, theta, compute)
    }

    /// The bound at a theta with its slope; cached for thetas of the fine grid.
    pub(super) fn bound_with_slope(
        &self,
        theta: f64,
        compute: impl FnOnce() -> Option<(Bound, Bound)>,
    ) -> Option<(Bound, Bound)> {
        get_or_compute(&self.0.fine, BELOW_EIGHTHS, theta, compute)
    }

    /// As `bound`, for the additional work of a step with requests.
    pub(super) fn requests(&self, theta: f64, compute: impl FnOnce() -> Option<f64>) -> Option<f64> {
        get_or_compute(&self.0.coarse_requests, BELOW_HALVES, theta, compute)
    }

    /// As `bound_with_slope`, for the additional work of a step with requests.
    pub(super) fn requests_with_slope(
        &self,
        theta: f64,
        compute: impl FnOnce() -> Option<(f64, f64)>,
    ) -> Option<(f64, f64)> {
        get_or_compute(&self.0.fine_requests, BELOW_EIGHTHS, theta, compute)
    }
}

impl fmt::Debug for BoundCache {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("BoundCache")
    }
}

/// The cache does not affect equality of models.
impl PartialEq for BoundCache {
    fn eq(&self, _: &BoundCache) -> bool {
        true
    }
}

fn get_or_compute<T: Copy>(
    slots: &Slots<T>,
    below: u32,
    theta: f64,
    compute: impl FnOnce() -> Option<T>,
) -> Option<T> {
    if !is_on_grid(below, theta) {
        return compute();
    }
    let bits = theta.to_bits();
    let slots = slots.get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
    let slot = &slots[(bits >> below) as usize % SLOTS];
    match slot.get() {
        Some(&(stored, value)) if stored == bits => value,
        // Another theta has the slot and keeps it.
        Some(_) => compute(),
        None => {
            let value = compute();
            // A concurrent call stored the same value, or another theta.
            let _ = slot.set((bits, value));
            value
        }
    }
}

/// True for thetas of the coarse grid.
pub(super) fn is_coarse(theta: f64) -> bool {
    is_on_grid(BELOW_HALVES, theta)
}

fn is_on_grid(below: u32, theta: f64) -> bool {
    theta.to_bits() & ((1 << below) - 1) == 0
}

/// The two thetas of the fine grid around a positive, finite theta.
pub(super) fn fine_neighbours(theta: f64) -> (f64, f64) {
    neighbours(BELOW_EIGHTHS, theta)
}

/// The two thetas of the coarse grid around a positive, finite theta.
pub(super) fn coarse_neighbours(theta: f64) -> (f64, f64) {
    neighbours(BELOW_HALVES, theta)
}

fn neighbours(below: u32, theta: f64) -> (f64, f64) {
    let low = theta.to_bits() >> below << below;
    (f64::from_bits(low), f64::from_bits(low + (1 << below)))
}

/// The cubic between two values with slopes: value and slope at `share` of the interval of length `width`.
pub(super) fn cubic(low: (f64, f64), high: (f64, f64), share: f64, width: f64) -> (f64, f64) {
    let rise = high.0 - low.0;
    // Difference between the end slopes and the slope of the chord.
    let (a, b) = (low.1 * width - rise, rise - high.1 * width);
    let rest = 1.0 - share;
    let value = low.0 + share * rise + share * rest * (a * rest + b * share);
    let slope = rise + (1.0 - 2.0 * share) * (a * rest + b * share) + share * rest * (b - a);
    (value, slope / width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cubic_is_reproduced_exactly(
            c in prop::array::uniform4(-3.0..3.0f64), low in -2.0..2.0f64, width in 0.1..3.0f64, share in 0.0..1.0f64,
        ) {
            let value = |x: f64| c[0] + x * (c[1] + x * (c[2] + x * c[3]));
            let slope = |x: f64| c[1] + x * (2.0 * c[2] + 3.0 * x * c[3]);
            let ends = [low, low + width].map(|x| (value(x), slope(x)));
            let result = cubic(ends[0], ends[1], share, width);
            let x = low + share * width;
            prop_assert!((result.0 - value(x)).abs() < 1e-9 * (1.0 + value(x).abs()) * 100.0);
            prop_assert!((result.1 - slope(x)).abs() < 1e-9 * (1.0 + slope(x).abs()) * 1000.0);
        }

        #[test]
        fn every_theta_lies_between_two_near_thetas_of_the_fine_grid(theta in 1e-30..1e30f64) {
            let (low, high) = fine_neighbours(theta);
            prop_assert!(low <= theta && theta < high && high <= 1.126 * low);
        }
    }

    #[test]
    fn the_cache_returns_the_first_computed_value() {
        let cache = BoundCache::default();
        let bound = |rho| Some(Bound { rho, sigma: 0.0 });
        assert_eq!(cache.bound(1.5, || bound(1.0)), bound(1.0));
        assert_eq!(cache.clone().bound(1.5, || bound(2.0)), bound(1.0));
        // Not on the grid.
        assert_eq!(cache.bound(1.25, || bound(3.0)), bound(3.0));
        assert_eq!(cache.bound(1.25, || bound(4.0)), bound(4.0));
        // On the grid, but its slot is taken by a theta 32 octaves away.
        let far = 1.5 * 2f64.powi(32);
        assert_eq!(cache.bound(far, || bound(5.0)), bound(5.0));
        assert_eq!(cache.bound(far, || bound(6.0)), bound(6.0));
        assert_eq!(cache.bound(1.5, || bound(7.0)), bound(1.0));
    }
}
