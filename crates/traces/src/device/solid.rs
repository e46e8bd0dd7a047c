//! Devices without moving parts.

use super::Rates;
use crate::Kind;

/// A device whose work depends only on the kind and the size of requests (SLO section 2.3.2, figure 2.3).
#[derive(Clone, PartialEq, Debug)]
pub struct Solid {
    /// Rates of reads.
    pub reads: Rates,
    /// Rates of writes.
    pub writes: Rates,
}

impl Solid {
    /// Seconds of service of a request.
    pub fn seconds(&self, kind: Kind, size: u64) -> f64 {
        match kind {
            Kind::Read => self.reads.seconds(size),
            Kind::Write => self.writes.seconds(size),
        }
    }
}
