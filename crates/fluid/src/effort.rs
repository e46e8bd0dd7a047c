//! Counters of the work that solutions need.

/// Cost of the solutions so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Effort {
    /// Number of solutions.
    pub solutions: u64,
    /// Number of visits to resources.
    pub settled: u64,
    /// Number of resources that got a level; each counts once per solution.
    pub changed: u64,
    /// Number of changes of an entry's limit.
    pub transfers: u64,
    /// Number of raised allowances.
    pub raises: u64,
    /// Number of recounts of watched resources.
    pub reviews: u64,
    /// Number of cascades that took too long, so that the affected resources were filled from zero.
    pub fillings: u64,
}
