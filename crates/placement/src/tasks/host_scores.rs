//! Scores of hosts for a single task, for schedulers that choose the hosts to score. The score is the load-balance
//! objective of `borg` and its variants, as a share.
//!
//! `borg` itself uses the host's processors and memory. The link-balancing variants use the fullest link that the
//! task's traffic would cross at its peak. These are the two links of the host's rack, and the links on the paths to
//! and from its peers.

use std::collections::BTreeMap;

use leeward_fabric::{Endpoint, Hop, HostId, Load, ResourceId};

use super::capacity_check::CapacityCheck;
use super::score::{Balance, Racks, rack_links};
use super::{AppRequest, HostRating, Peer};
use crate::{Constraint, Context};

/// Scores hosts for the single task of a request, in order.
pub(super) fn score_hosts(
    rule: Balance,
    request: &AppRequest,
    peers: &[Peer],
    hosts: &[HostId],
    context: &Context<'_, '_>,
) -> Vec<HostRating> {
    let capacity = CapacityCheck::new(context.pool, request);
    let in_racks = context.pool.racks_of(request.job);
    let mut racks = Racks::new(rule, (request, 0), context, in_racks, 1);
    let score_host = |host: HostId| {
        let refused = |constraint| HostRating {
            host,
            loaded: f64::INFINITY,
            limit: None,
            left: None,
            refused: Some(constraint),
        };
        if let Some(constraint) = capacity.refuses(host, 0) {
            return refused(constraint);
        }
        if rule.proactive && !peers.is_empty() {
            return score_with_peers(host, request, peers, context).unwrap_or_else(refused);
        }
        match racks.score(host, &capacity, None) {
            Some(score) if score.unseen.is_none() => {
                let loaded = score.objectives.balance;
                let left = score.limit().map(|limit| capacity_left(context, limit, loaded));
                HostRating { host, loaded, limit: score.limit(), left, refused: None }
            }
            // `score` returns `None` only with `beat`, so the load is unknown here.
            _ => refused(Constraint::Unknown),
        }
    };
    hosts.iter().copied().map(score_host).collect()
}

/// Score by all links that the traffic of the task and its peers would cross.
fn score_with_peers(
    host: HostId,
    request: &AppRequest,
    peers: &[Peer],
    context: &Context<'_, '_>,
) -> Result<HostRating, Constraint> {
    let (fabric, task) = (context.view.fabric(), &request.tasks[0]);
    let mut extra = BTreeMap::<ResourceId, u64>::new();
    let mut add = |link: ResourceId, bps: u64| {
        let sum = extra.entry(link).or_default();
        *sum = sum.saturating_add(bps);
    };
    let own = [task.total_egress().peak_bps, task.total_ingress().peak_bps];
    rack_links(fabric, host).zip(own).for_each(|(link, bps)| add(link, bps));
    let mut hops = Vec::<Hop>::new();
    for peer in peers.iter().filter(|peer| peer.host != host) {
        for (from, to, bps) in [(host, peer.host, peer.egress_bps), (peer.host, host, peer.ingress_bps)] {
            hops.clear();
            fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
            hops.iter().filter(|_| bps > 0).for_each(|hop| add(hop.resource, bps));
        }
    }
    let mut fullest = HostRating { host, loaded: 0.0, limit: None, left: None, refused: None };
    for (link, bps) in extra {
        let bps = Load(i64::try_from(bps).unwrap_or(i64::MAX));
        let loaded = context.view.utilization_with(link, bps).ok_or(Constraint::Unknown)?;
        if fullest.limit.is_none() || loaded > fullest.loaded {
            let left = Some(capacity_left(context, link, loaded));
            fullest = HostRating { loaded, limit: Some(link), left, ..fullest };
        }
    }
    Ok(fullest)
}

/// Capacity left on a link at this load, as a share; 0 for a link without capacity.
fn capacity_left(context: &Context<'_, '_>, link: ResourceId, loaded: f64) -> Load {
    let capacity = context.view.capacity(link).0 as f64;
    Load(if loaded.is_finite() { ((1.0 - loaded) * capacity).round() as i64 } else { 0 })
}
