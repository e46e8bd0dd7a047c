//! What models were last found to be, so that none is evaluated twice at one theta.

use crate::mmpp::Bound;

/// How models are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Models {
    /// As they are.
    Exact,
    /// Nearly, and soon ([`crate::mmpp::Mmpp::nearly`]): to look for a theta, not for a bound there.
    Near,
}

/// What was found at a theta, by its bits; for models that stand in an expression more than once, and for what is
/// evaluated again with other parameters.
pub(super) type Last<T> = (u64, Option<T>);

/// The last bounds of each model.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    pub(super) exact: Vec<Last<Bound>>,
    pub(super) near: Vec<Last<(Bound, Bound)>>,
    pub(super) sloped: Vec<Last<(Bound, Bound)>>,
    pub(super) requests: [Vec<Last<f64>>; 2],
}

impl Memo {
    pub(super) fn grow(&mut self) {
        self.exact.push((0, None));
        self.near.push((0, None));
        self.sloped.push((0, None));
        self.requests.iter_mut().for_each(|requests| requests.push((0, None)));
    }
}

pub(super) fn last<T: Copy>(entry: &mut Last<T>, theta: f64, make: impl FnOnce() -> Option<T>) -> Option<T> {
    if entry.0 != theta.to_bits() {
        *entry = (theta.to_bits(), make());
    }
    entry.1
}
