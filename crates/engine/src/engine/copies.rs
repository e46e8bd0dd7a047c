//! Choices among the copies of a block. They commit nothing.

use leeward_fabric::{HostId, Nanos};
use leeward_placement::replicas::{self, RatedCopy};

use super::Engine;

impl Engine {
    /// Copies in the order in which a reader tries them ([`replicas::order_reads`]).
    pub fn order_reads(
        &mut self,
        now: Nanos,
        copies: &[HostId],
        reader: Option<HostId>,
        request: u64,
    ) -> Vec<RatedCopy> {
        let now = self.advance(now);
        let view = self.ledger.view(now, &mut self.scratch);
        replicas::order_reads(copies, reader, request, &self.pool, &view, self.seed)
    }

    /// Copies to delete, `count` of them ([`replicas::choose_deletions`]).
    pub fn choose_deletions(
        &mut self,
        now: Nanos,
        copies: &[HostId],
        count: usize,
        request: u64,
    ) -> Vec<RatedCopy> {
        let now = self.advance(now);
        let view = self.ledger.view(now, &mut self.scratch);
        replicas::choose_deletions(copies, count, request, &self.pool, &view, self.seed)
    }
}
