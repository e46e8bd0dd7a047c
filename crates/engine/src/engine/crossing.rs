//! Blocks that cross the border of the engine's network, whose other side is the network of another engine.
//!
//! One host of the fabric stands for everything outside. It takes no copies, and a path to or from it crosses the
//! links of this network up to the core. Its own links, and those of its rack and pod, are no links of this network:
//! the ledger has no load there.

use std::slice::from_ref;

use leeward_fabric::{Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, EntryId, Transaction};
use leeward_placement::replicas::{ReplicaRequest, traffic};

use super::{BEST_EFFORT, Engine};
use crate::message::{Decider, Output, ReplicasAnswer};

impl Engine {
    /// Places copies of a block that comes from outside, and commits the part of its load that is on this network. The
    /// writer of the request is the host that stands for the outside, and also its only existing copy. The policy
    /// decides at once, without its batching delay. Appends the outputs of batches that are due.
    pub fn place_inbound(
        &mut self,
        now: Nanos,
        request: &ReplicaRequest,
        out: &mut Vec<Output>,
    ) -> ReplicasAnswer {
        self.advance(now);
        let answer = self.place(Decider::Own, from_ref(request)).remove(0).map(|mut decision| {
            if let Some(outside) = request.writer {
                keep_own_links(self.ledger.fabric(), outside, &mut decision.change.add);
            }
            self.commit(decision, request.size, None)
        });
        self.finish(out);
        answer
    }

    /// Commits the load of a block on its way out of this network. `outside` is the host that stands for the outside.
    /// Returns the entries; release them when the write ends. Appends the outputs of batches that are due.
    pub fn commit_outbound(
        &mut self,
        now: Nanos,
        request: &ReplicaRequest,
        outside: HostId,
        out: &mut Vec<Output>,
    ) -> Vec<EntryId> {
        let now = self.advance(now);
        let mut add = traffic(self.ledger.fabric(), request, from_ref(&outside), now);
        keep_own_links(self.ledger.fabric(), outside, &mut add);
        let fastest = self.pool.write_rate().map(|rate| rate.0);
        for entry in &mut add {
            // As in the decisions of policies, no disk writes faster than the fastest one.
            if let Demand::Elastic { cap_bps, .. } = &mut entry.demand {
                *cap_bps = fastest;
            }
        }
        let entries = self.ledger.commit(Transaction { add, ..Transaction::default() }, now);
        self.finish(out);
        entries.expect(BEST_EFFORT)
    }

    /// Capacity left on a link for best-effort work; zero where the load is unknown.
    pub fn residual(&mut self, now: Nanos, link: ResourceId) -> Load {
        let now = self.advance(now);
        self.ledger.view(now, &mut self.scratch).residual(link)
    }
}

/// Removes the links of the host that stands for the outside, and of its rack and pod, from entries.
fn keep_own_links(fabric: &Fabric, outside: HostId, entries: &mut [Entry]) {
    let rack = fabric.rack_of(outside);
    let is_own = |link: ResourceId| match fabric.domain_of_link(link) {
        Some(domain) => domain != rack && Some(domain) != fabric.parent(rack),
        None => fabric.host_of(link) != Some(outside),
    };
    entries.iter_mut().for_each(|entry| entry.hops.retain(|hop| is_own(hop.resource)));
}
