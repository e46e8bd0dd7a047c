//! The sender of copies of a block that has copies already: re-replication and decommissioning.

use leeward_fabric::HostId;
use leeward_ledger::View;

use super::ReplicaRequest;
use super::path_left::{PathLeft, outward};
use crate::Pool;
use crate::ties::Ties;

/// Host with an existing copy that can send it fastest: the one that is up and has the most capacity left on its disk and
/// on the links out of its racks and pods ([`PathLeft`]). Equal hosts are in the order of a hash. Returns `None` if no
/// host with a copy is up.
pub fn find_source(request: &ReplicaRequest, pool: &Pool, view: &View<'_>, seed: u64) -> Option<HostId> {
    let ties = Ties::new(seed, request.id);
    let up = request.constraints.existing.iter().copied().filter(|&host| pool.is_up(host));
    let left = |host| PathLeft::of(view, &outward(view.fabric(), host)).rank();
    up.max_by_key(|&host| (left(host), ties.rank(u64::from(host.0)), host))
}

/// Source of the copies, if the block has existing copies.
pub(super) fn source(request: &ReplicaRequest) -> Option<HostId> {
    request.writer.filter(|_| !request.constraints.existing.is_empty())
}
