//! Sums of the loads below the links of a domain.

use leeward_fabric::Nanos;

/// Sums of the resources below a domain's links.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainSums {
    pub sums: [Sum; 2],
    /// Time of the next change without a report.
    pub due: Option<Nanos>,
    /// End of the first window of accepted samples that are not yet in the sums.
    pub touched: Option<Nanos>,
}

/// Sum of the resources below a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub load: f64,
    /// Sum of the last reported loads.
    pub latest: i64,
    /// Common window of all visible resources, if there is one.
    pub window: Option<(Nanos, Nanos)>,
    /// True if any resource reported or is known to carry nothing.
    pub seen: bool,
}

impl Sum {
    pub fn add(&mut self, other: Sum) {
        self.load += other.load;
        self.latest = self.latest.saturating_add(other.latest);
        self.window = match (self.window, other.window) {
            (Some(a), Some(b)) => Some((a.0.max(b.0), a.1.min(b.1))),
            (one, None) | (None, one) => one,
        };
        self.seen |= other.seen;
    }
}
