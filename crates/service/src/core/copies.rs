//! Choices among the copies of a block: the copy to read, and the copies to delete. They commit nothing.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::Epoch;
use leeward_placement::replicas::RatedCopy;

use super::{Addresses, Coordinator};

/// Query for the copy to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChooseRead {
    /// Hosts with a copy.
    pub copies: Vec<HostId>,
    /// Host of the reader; `None` for a reader outside the cluster.
    pub reader: Option<HostId>,
    /// Number that seeds the draw.
    pub request: u64,
}

/// Query for the copies to delete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChooseDelete {
    /// Hosts with a copy.
    pub copies: Vec<HostId>,
    /// Number of copies to delete.
    pub count: usize,
    /// Number that seeds the tie-breaks.
    pub request: u64,
}

/// Copies in the order of preference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankedCopies {
    /// The copies, each with the name of the resource that limits it.
    pub copies: Vec<(RatedCopy, Option<String>)>,
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// Age of the oldest telemetry used.
    pub age: Option<Nanos>,
}

impl<A: Addresses> Coordinator<A> {
    /// Copies in the order in which a reader tries them, without copies on hosts that are down.
    pub fn choose_read(&mut self, now: Nanos, query: &ChooseRead) -> RankedCopies {
        self.wake(now);
        let ChooseRead { copies, reader, request } = query;
        let ranked = self.engine.order_reads(self.now, copies, *reader, *request);
        self.ranked(ranked)
    }

    /// Copies to delete.
    pub fn choose_delete(&mut self, now: Nanos, query: &ChooseDelete) -> RankedCopies {
        self.wake(now);
        let ChooseDelete { copies, count, request } = query;
        let ranked = self.engine.choose_deletions(self.now, copies, *count, *request);
        self.ranked(ranked)
    }

    fn ranked(&self, copies: Vec<RatedCopy>) -> RankedCopies {
        let (fabric, epoch) = (self.fabric(), self.epoch());
        let oldest = copies.iter().filter_map(|copy| copy.path?.oldest).min();
        let limit = |copy: &RatedCopy| Some(fabric.resource_name(copy.path?.limit?));
        let copies = copies.into_iter().map(|copy| (copy, limit(&copy))).collect();
        RankedCopies { copies, epoch, age: oldest.map(|oldest| self.now.since(oldest)) }
    }
}
