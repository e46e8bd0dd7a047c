//! Choices among the copies of a block: the copy to read, and the copies to delete. Neither changes the ledger.

use std::cmp::Reverse;

use leeward_fabric::{Fabric, FaultDomainId, HostId};
use leeward_ledger::View;

use super::path_left::{PathLeft, outward, to_reader};
use crate::Pool;
use crate::ties::{RequestDraws, Ties};

/// A copy, with the capacity left on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatedCopy {
    /// Host of the copy.
    pub host: HostId,
    /// Capacity left from its disk to the reader, or out of its racks and pods; `None` if it was not examined.
    pub path: Option<PathLeft>,
    /// Reason of its position.
    pub because: Because,
}

/// Reason for the position of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    /// The copy is on the host of the reader.
    Local,
    /// It has more capacity left than the other drawn copy, or is the only one.
    MoreLeft,
    /// It was drawn, and has less capacity left.
    LessLeft,
    /// It was not drawn.
    NotDrawn,
    /// Its host is down.
    Down,
    /// Its host is draining.
    Draining,
    /// Another copy is in its fault domain.
    SharedDomain,
    /// Its fault domain has no other copy.
    OwnDomain,
}

impl Because {
    /// Reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Because::Local => "on the host of the reader",
            Because::MoreLeft => "the most capacity left of the copies drawn",
            Because::LessLeft => "drawn, with less capacity left",
            Because::NotDrawn => "not drawn",
            Because::Down => "the host is down",
            Because::Draining => "the host is draining",
            Because::SharedDomain => "another copy is in its fault domain",
            Because::OwnDomain => "the only copy in its fault domain",
        }
    }
}

/// Copies in the order in which a reader tries them; copies on hosts that are down are left out. A copy on the reader's
/// own host is first. Otherwise two copies are drawn by a hash of `seed` and `request`, and the one with more capacity left
/// on the path to the reader is first: readers that see the same loads do not all choose the same copy.
pub fn order_reads(
    copies: &[HostId],
    reader: Option<HostId>,
    request: u64,
    pool: &Pool,
    view: &View<'_>,
    seed: u64,
) -> Vec<RatedCopy> {
    let fabric = view.fabric();
    let mut up: Vec<HostId> = copies.iter().copied().filter(|&host| pool.is_up(host)).collect();
    // The draw depends on the set of copies, and not on the order in which the caller names them.
    up.sort_unstable();
    let mut draws = RequestDraws::new(seed, request);
    for at in 0..up.len() {
        let drawn = at + draws.below((up.len() - at) as u32) as usize;
        up.swap(at, drawn);
    }
    let rate = |host, because| {
        let path = PathLeft::of(view, &to_reader(fabric, host, reader));
        RatedCopy { host, path: Some(path), because }
    };
    let mut order = Vec::with_capacity(up.len());
    if let Some(at) = up.iter().position(|&host| Some(host) == reader) {
        order.push(rate(up.remove(at), Because::Local));
    }
    let drawn = if order.is_empty() { 2.min(up.len()) } else { 0 };
    let mut rated: Vec<RatedCopy> = up.drain(..drawn).map(|host| rate(host, Because::LessLeft)).collect();
    rated.sort_by_key(|copy| Reverse(copy.path.map(PathLeft::rank)));
    if let Some(first) = rated.first_mut() {
        first.because = Because::MoreLeft;
    }
    order.extend(rated);
    order.extend(up.into_iter().map(|host| RatedCopy { host, path: None, because: Because::NotDrawn }));
    order
}

/// The copies to delete, `count` of them, in this order: first copies on hosts that are down or draining, then copies in a
/// fault domain with another copy, so that the rest stays as spread as it can. Among equal copies, the one with the least
/// capacity left on its disk and links out is first, then the one on the fuller host, then by a hash of `seed` and
/// `request`.
pub fn choose_deletions(
    copies: &[HostId],
    count: usize,
    request: u64,
    pool: &Pool,
    view: &View<'_>,
    seed: u64,
) -> Vec<RatedCopy> {
    let fabric = view.fabric();
    let ties = Ties::new(seed, request);
    let mut left: Vec<(HostId, PathLeft)> =
        copies.iter().map(|&host| (host, PathLeft::of(view, &outward(fabric, host)))).collect();
    let mut deleted = Vec::with_capacity(count);
    while deleted.len() < count && !left.is_empty() {
        let key = |&(host, path): &(HostId, PathLeft)| {
            let because = reason(fabric, pool, &left, host);
            // A load that is unknown is no reason to delete a copy, nor to keep it.
            let capacity = path.left.unwrap_or(i64::MAX);
            (urgency(because), capacity, pool.room(host).0, ties.rank(u64::from(host.0)))
        };
        let Some(at) = (0..left.len()).min_by_key(|&at| key(&left[at])) else { break };
        let because = reason(fabric, pool, &left, left[at].0);
        let (host, path) = left.remove(at);
        deleted.push(RatedCopy { host, path: Some(path), because });
    }
    deleted
}

/// Reason to delete the copy of a host, among the copies that are left.
fn reason(fabric: &Fabric, pool: &Pool, left: &[(HostId, PathLeft)], host: HostId) -> Because {
    let domain = |host: HostId| -> FaultDomainId { fabric.fault_domain(fabric.rack_of(host)) };
    if !pool.is_up(host) {
        Because::Down
    } else if pool.is_draining(host) {
        Because::Draining
    } else if left.iter().filter(|&&(other, _)| domain(other) == domain(host)).count() > 1 {
        Because::SharedDomain
    } else {
        Because::OwnDomain
    }
}

/// Order of the reasons to delete a copy.
fn urgency(because: Because) -> u8 {
    match because {
        Because::Down => 0,
        Because::Draining => 1,
        Because::SharedDomain => 2,
        _ => 3,
    }
}
