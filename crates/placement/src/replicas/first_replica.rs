//! The first copy, and random copies: the steps that every policy shares with HDFS's default.

use leeward_fabric::HostId;
use leeward_ledger::Fade;

use super::fault_domains::spreads;
use super::{Chain, ReplicaRequest, transfers};
use crate::constraints::{Constraint, Filter};
use crate::decision::count_refusals;
use crate::ties::RequestDraws;
use crate::{Basis, Considered, Context, Decision, Pool, Refusal};

/// Number of draws before a scan of all candidates.
const DRAWS: u32 = 16;

/// Filter for one request before the first copy is placed.
pub(super) fn filter<'a>(pool: &'a Pool, request: &'a ReplicaRequest) -> Filter<'a> {
    let (used, closed) = (Vec::with_capacity(4), Vec::with_capacity(4));
    Filter { pool, constraints: &request.constraints, size: request.size, used, closed }
}

/// Places the first copy: on the writer if eligible, else on a host of its rack, else on any host.
///
/// # Errors
/// [`Refusal`] for an unknown writer, or if no host is eligible.
pub(super) fn place_first(
    request: &ReplicaRequest,
    filter: &mut Filter<'_>,
    draws: &mut RequestDraws,
) -> Result<HostId, Refusal> {
    let fabric = filter.pool.fabric();
    if request.writer.is_some_and(|writer| writer.index() >= fabric.host_count()) {
        return Err(Refusal::UnknownWriter);
    }
    let near = request.writer.and_then(|writer| {
        if filter.refuses(writer).is_none() {
            return Some(writer);
        }
        at_random(fabric.hosts(fabric.rack_of(writer)), filter, draws)
    });
    let host = near.or_else(|| at_random(0..fabric.host_count() as u32, filter, draws));
    let host = host.ok_or_else(|| no_candidate(filter))?;
    filter.used.push(host);
    Ok(host)
}

/// A random eligible host of a range, with equal probabilities unless few are eligible.
pub(super) fn at_random(
    range: std::ops::Range<u32>,
    filter: &Filter<'_>,
    draws: &mut RequestDraws,
) -> Option<HostId> {
    let count = range.end - range.start;
    if count == 0 {
        return None;
    }
    let mut at = 0;
    for _ in 0..DRAWS {
        at = draws.below(count);
        let host = HostId(range.start + at);
        if filter.refuses(host).is_none() {
            return Some(host);
        }
    }
    // Few hosts are eligible: scan all, starting at the last draw.
    let turn = |i: u32| HostId(range.start + ((u64::from(at) + u64::from(i)) % u64::from(count)) as u32);
    (0..count).map(turn).find(|&host| filter.refuses(host).is_none())
}

/// Places the copies besides the first, group by group as in [`spreads`]. `place` puts the given number of copies on
/// hosts of one rack, or returns `None`.
///
/// # Errors
/// [`Refusal`] if no spread fits.
pub(super) fn place_groups(
    request: &ReplicaRequest,
    remote_racks: u8,
    filter: &mut Filter<'_>,
    mut place: impl FnMut(&mut Filter<'_>, usize) -> Option<()>,
) -> Result<(), Refusal> {
    for spread in spreads(request, remote_racks, filter.pool.fabric().shape())? {
        filter.used.truncate(1);
        let mut group = |&copies: &usize| {
            spread.close(filter);
            place(filter, copies).is_some()
        };
        if spread.groups.iter().all(&mut group) {
            return Ok(());
        }
    }
    Err(no_candidate(filter))
}

/// Explanation for copies that were chosen without a rate or rank.
pub(super) fn explain_chosen(copies: &[HostId], context: &Context<'_, '_>) -> Vec<Considered> {
    copies.iter().take(context.explain.limit()).map(|&host| Considered::chosen(host)).collect()
}

/// Decision of a policy without load information.
pub(super) fn by_rule(
    policy: &'static str,
    request: &ReplicaRequest,
    copies: Chain,
    context: &Context<'_, '_>,
) -> Decision<Chain> {
    let (fabric, now) = (context.pool.fabric(), context.view.now());
    Decision {
        change: transfers(fabric, request, &copies, None, Fade::WithEstimator, now),
        basis: Basis {
            epoch: context.view.epoch(),
            oldest: None,
            policy,
            note: None,
            gap: None,
            estimate: None,
        },
        why: explain_chosen(&copies, context),
        choice: copies,
    }
}

/// Refusal with the reasons counted over all hosts.
pub(super) fn no_candidate(filter: &Filter<'_>) -> Refusal {
    let hosts = filter.pool.fabric().all_hosts();
    Refusal::NoCandidate { by_constraint: count_refusals(hosts.filter_map(|host| filter.refuses(host))) }
}

/// Refusal with the reasons counted over all hosts; hosts with unknown load count as `Unknown`.
pub(super) fn no_known_candidate(filter: &Filter<'_>, unseen: impl Fn(HostId) -> bool) -> Refusal {
    let reason = |host| {
        let fallback = || if unseen(host) { Constraint::Unknown } else { Constraint::TooFew };
        filter.refuses(host).unwrap_or_else(fallback)
    };
    let hosts = filter.pool.fabric().all_hosts();
    Refusal::NoCandidate { by_constraint: count_refusals(hosts.map(reason)) }
}
