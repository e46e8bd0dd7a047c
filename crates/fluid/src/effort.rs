//! Counters of the work that solutions need.

/// Cost of the solutions so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Effort {
    /// Number of solutions.
    pub solutions: u64,
    /// Visits to a resource.
    pub settled: u64,
    /// Number of resources that got a level; each counts once per solution.
    pub changed: u64,
    /// Entries whose limit changed.
    pub transfers: u64,
    /// Allowances raised.
    pub raises: u64,
    /// Recounts of watched resources.
    pub reviews: u64,
    /// Cascades that took too long; the affected resources were then filled from zero.
    pub fillings: u64,
}
