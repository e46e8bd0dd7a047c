//! reTCP: Reno with a window that is scaled when a circuit comes up or goes down. The ECN echo signals both (Etalon,
//! section 4.4).

use super::reno::Reno;
use super::{Acked, Algorithm, Cause, Window};

#[derive(Clone, Debug)]
pub(crate) struct Retcp {
    reno: Reno,
    alpha: f64,
    beta: f64,
    /// Last ECN echo.
    circuit: bool,
}

impl Retcp {
    pub(super) fn new(alpha: f64, beta: f64) -> Retcp {
        Retcp { reno: Reno::default(), alpha, beta, circuit: false }
    }
}

impl Algorithm for Retcp {
    fn rescale(&mut self, acked: &Acked) -> Option<f64> {
        let before = std::mem::replace(&mut self.circuit, acked.ece);
        match (before, acked.ece) {
            (false, true) => Some(self.alpha),
            (true, false) => Some(self.beta),
            _ => None,
        }
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        self.reno.grow(window, acked);
    }

    fn reduce(&mut self, window: &Window, cause: Cause) -> u64 {
        self.reno.reduce(window, cause)
    }
}
