//! Cache of each model's last bound, so that no model is evaluated twice at the same theta.

use crate::mmpp::Bound;

/// Accuracy of a model's evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Accuracy {
    /// Exact values.
    Exact,
    /// Fast approximations ([`crate::mmpp::Mmpp::approximate_bound`]): they serve to search for a theta, and not as a
    /// bound.
    Approximate,
}

/// Value at a theta, with the bits of the theta. The value is used again for models that occur more than once in an
/// expression, and for evaluations with other parameters at the same theta.
pub(super) type Last<T> = (u64, Option<T>);

/// The last bounds of each model.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    pub(super) exact: Vec<Last<Bound>>,
    pub(super) approximate: Vec<Last<(Bound, Bound)>>,
    pub(super) bound_with_slope: Vec<Last<(Bound, Bound)>>,
    pub(super) requests: [Vec<Last<f64>>; 2],
}

impl Memo {
    pub(super) fn grow(&mut self) {
        self.exact.push((0, None));
        self.approximate.push((0, None));
        self.bound_with_slope.push((0, None));
        self.requests.iter_mut().for_each(|requests| requests.push((0, None)));
    }
}

/// Returns the last value if its theta is the same; otherwise computes the value and stores it.
pub(super) fn last<T: Copy>(
    entry: &mut Last<T>,
    theta: f64,
    compute: impl FnOnce() -> Option<T>,
) -> Option<T> {
    if entry.0 != theta.to_bits() {
        *entry = (theta.to_bits(), compute());
    }
    entry.1
}
