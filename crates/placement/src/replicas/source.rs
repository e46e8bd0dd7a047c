//! The senders of copies of a block that has copies already, and of the chunks of a damaged stripe: re-replication and
//! decommissioning.

use std::cmp::Reverse;

use leeward_fabric::HostId;
use leeward_ledger::View;

use super::path_left::{PathLeft, outward};
use super::{Layout, ReplicaRequest};
use crate::Pool;
use crate::ties::Ties;

/// Sets the writer of a request with existing copies and without a writer: the host with a copy that can send it
/// fastest. It is up and has the most capacity left on its disk and on the links out of its racks and pods
/// ([`PathLeft`]). Equal hosts are in the order of a hash. If no host with a copy is up, there is no writer.
///
/// Every chunk of a stripe differs, so the order of its hosts has no meaning. They are sorted: those that can send
/// fastest come first, and those that are down last.
pub fn set_source(request: &mut ReplicaRequest, pool: &Pool, view: &View<'_>, seed: u64) {
    if request.writer.is_some() {
        return;
    }
    let ties = Ties::new(seed, request.id);
    let rank = |&host: &HostId| {
        let left = PathLeft::of(view, &outward(view.fabric(), host)).rank();
        Reverse((pool.is_up(host), left, ties.rank(u64::from(host.0)), host))
    };
    let existing = &mut request.constraints.existing;
    request.writer = match request.layout {
        Layout::Chain => existing.iter().copied().min_by_key(rank),
        Layout::Stripe { .. } => {
            existing.sort_by_cached_key(rank);
            existing.first().copied()
        }
    };
    request.writer = request.writer.filter(|&host| pool.is_up(host));
}

/// Source of the copies, if the block has existing copies. A stripe has several sources.
pub(super) fn source(request: &ReplicaRequest) -> Option<HostId> {
    request.writer.filter(|_| request.layout == Layout::Chain && !request.constraints.existing.is_empty())
}

/// Number of chunks that are enough to rebuild the others; `None` for copies.
pub(super) fn data_chunks(request: &ReplicaRequest) -> Option<usize> {
    let Layout::Stripe { parity } = request.layout else { return None };
    let chunks = request.constraints.existing.len() + usize::from(request.replicas);
    Some(chunks.saturating_sub(usize::from(parity)))
}

/// Hosts whose chunks are read to rebuild the missing ones; none for copies and new stripes.
pub(super) fn sources_of_chunks(request: &ReplicaRequest) -> &[HostId] {
    let existing = &request.constraints.existing;
    &existing[..data_chunks(request).unwrap_or(0).min(existing.len())]
}
