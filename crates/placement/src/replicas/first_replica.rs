//! The first copy, and random copies: the steps that every policy shares with HDFS's default.

use leeward_fabric::HostId;
use leeward_ledger::Fade;

use super::fault_domains::{copies_left, domains_besides_first, has_most_chunks, spreads};
use super::source::{data_chunks, source};
use super::{Chain, Layout, ReplicaRequest, transfers};
use crate::constraints::{Constraint, Filter};
use crate::decision::count_refusals;
use crate::ties::RequestDraws;
use crate::{Basis, Considered, Context, Decision, Pool, Refusal, Verdict};

/// Number of draws before a scan of all candidates.
const DRAWS: u32 = 16;

/// Filter for one request before any copy is placed. It has the existing copies.
pub(super) fn filter<'a>(pool: &'a Pool, request: &'a ReplicaRequest) -> Filter<'a> {
    let (mut used, closed) = (Vec::with_capacity(4), Vec::with_capacity(4));
    used.extend_from_slice(&request.constraints.existing);
    Filter { pool, constraints: &request.constraints, size: request.size, used, closed }
}

/// Places copies on the preferred hosts. Without these and without existing copies, places the first copy: on the writer
/// if eligible, else on a host of its rack, else on any host. Returns the host of the block's first copy.
///
/// # Errors
/// [`Refusal`] for an unknown writer, if no host is eligible, if no host with an existing copy can send it, or if too few
/// chunks of a stripe are left.
pub(super) fn place_first(
    request: &ReplicaRequest,
    filter: &mut Filter<'_>,
    draws: &mut RequestDraws,
) -> Result<HostId, Refusal> {
    let fabric = filter.pool.fabric();
    check_sources(request, filter)?;
    place_preferred(request, filter);
    if let Some(&first) = filter.used.first() {
        return Ok(first);
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

/// Checks the senders of a request: the writer, and the hosts with copies or chunks.
///
/// # Errors
/// [`Refusal`] for an unknown writer, if no host with an existing copy can send it, or if too few chunks of a stripe are
/// left.
pub(super) fn check_sources(request: &ReplicaRequest, filter: &Filter<'_>) -> Result<(), Refusal> {
    if request.writer.is_some_and(|writer| writer.index() >= filter.pool.fabric().host_count()) {
        return Err(Refusal::UnknownWriter);
    }
    let existing = &request.constraints.existing;
    let up = existing.iter().filter(|&&host| filter.pool.is_up(host)).count();
    match data_chunks(request).filter(|_| !existing.is_empty()) {
        Some(needed) if up < needed => Err(Refusal::TooFewChunks { up, needed }),
        None if request.writer.is_none() && !existing.is_empty() => Err(Refusal::NoSource),
        _ => Ok(()),
    }
}

/// Places copies on the preferred hosts, in their order, that are eligible and leave enough copies for further fault
/// domains.
pub(super) fn place_preferred(request: &ReplicaRequest, filter: &mut Filter<'_>) {
    for &host in &request.constraints.preferred {
        if copies_left(request, filter) > 0 && objection(request, filter, host).is_none() {
            filter.used.push(host);
        }
    }
}

/// Reason for which a preferred host takes no copy; `None` if it takes one.
pub(super) fn objection(request: &ReplicaRequest, filter: &Filter<'_>, host: HostId) -> Option<Constraint> {
    filter.refuses(host).or_else(|| {
        if matches!(request.layout, Layout::Stripe { .. }) {
            let full = has_most_chunks(request, filter.pool.fabric(), &filter.used, host);
            return full.then_some(Constraint::FaultDomain);
        }
        let held = [filter.used.as_slice(), &[host]].concat();
        let held_domains = domains_besides_first(filter.pool.fabric(), &held);
        let left = copies_left(request, filter).saturating_sub(1);
        (held_domains + left < usize::from(request.fault_domains)).then_some(Constraint::FaultDomain)
    })
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
    let placed = filter.used.len();
    for spread in spreads(request, remote_racks, filter)? {
        filter.used.truncate(placed);
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

/// New copies among all copies, which begin with the existing ones.
pub(super) fn new_copies(request: &ReplicaRequest, mut copies: Vec<HostId>) -> Chain {
    copies.drain(..request.constraints.existing.len().min(copies.len()));
    copies
}

/// Explanation for new copies that were chosen without a rate or rank, and for preferred hosts that got none.
pub(super) fn explain_chosen(
    request: &ReplicaRequest,
    copies: &[HostId],
    context: &Context<'_, '_>,
) -> Vec<Considered> {
    let preferred = &request.constraints.preferred;
    let chosen = copies.iter().map(|&host| match preferred.contains(&host) {
        true => Considered::unranked(host, Verdict::Preferred),
        false => Considered::chosen(host),
    });
    let mut filter = filter(context.pool, request);
    let mut passed_over = Vec::new();
    for &host in preferred {
        if copies.contains(&host) {
            filter.used.push(host);
        } else if let Some(reason) = objection(request, &filter, host) {
            passed_over.push(Considered::unranked(host, Verdict::Refused(reason)));
        }
    }
    chosen.chain(passed_over).take(context.explain.limit()).collect()
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
            gaps: None,
            estimate: None,
            source: source(request),
        },
        why: explain_chosen(request, &copies, context),
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
