//! Reads of stored data beside the writes, on a connection of their own: a long search does not delay a decision.

use leeward_fabric::Nanos;
use leeward_records::{ClusterVersion, DecisionRecord, Period, PeriodLength};

use super::StoreError;
use super::search::Search;

/// A range of times, from its start up to but without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Start.
    pub since: Nanos,
    /// End.
    pub until: Nanos,
}

/// A connection that only reads.
pub trait Reader: Send {
    /// The newest decisions that meet the conditions, in descending order of their ids, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn search(&mut self, search: &Search, limit: usize) -> Result<Vec<DecisionRecord>, StoreError>;

    /// Decisions of the range in which the choices of both policies differ most, the largest difference first, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn largest_gains(&mut self, range: TimeRange, limit: usize) -> Result<Vec<DecisionRecord>, StoreError>;

    /// Periods of a length of which a part is in the range, in order. Without `links`, their lists of links are empty.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn periods(
        &mut self,
        length: PeriodLength,
        range: TimeRange,
        links: bool,
    ) -> Result<Vec<Period>, StoreError>;

    /// Names of the links of a version of the cluster, in order of ids; empty for a version without periods.
    ///
    /// # Errors
    /// [`StoreError`] if the store is unavailable or a row is invalid.
    fn link_names(&mut self, cluster: ClusterVersion) -> Result<Vec<String>, StoreError>;
}
