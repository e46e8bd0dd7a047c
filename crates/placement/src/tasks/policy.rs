//! The trait of policies for tasks.

use leeward_fabric::{Fabric, HostId, Load, ResourceId};

use super::{AppRequest, Balance, host_scores};
use crate::{Constraint, Context, Policy};

/// A policy for tasks. Besides decisions, a policy gives its cost in advance, and scores of single hosts.
pub trait TaskPolicy: Policy<AppRequest> {
    /// Estimated number of host and link lookups to decide `request`, about ten nanoseconds each. Callers that block
    /// others during a decision check this number first.
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64;

    /// Rule by which the policy ranks single hosts; `None` if it ranks none.
    fn host_balance(&self) -> Option<Balance> {
        None
    }

    /// Scores each of `hosts` for the single task of a request that also communicates with `peers`. `None` if the
    /// policy does not rank single hosts, or the request has several tasks. The method decides nothing, and ignores
    /// objectives that span several requests.
    fn score_hosts(
        &self,
        request: &AppRequest,
        peers: &[Peer],
        hosts: &[HostId],
        context: &Context<'_, '_>,
    ) -> Option<Vec<HostRating>> {
        let balance = self.host_balance().filter(|_| request.tasks.len() == 1)?;
        Some(host_scores::score_hosts(balance, request, peers, hosts, context))
    }

    /// Name of the move policy (in the registry of crate `moves`) that belongs to this policy; `None` if its tasks stay where
    /// they are.
    fn move_policy(&self) -> Option<&'static str> {
        None
    }

    /// True if the capacity that racks' links lost without an announcement should be learned from their loads.
    fn learns_capacity(&self) -> bool {
        false
    }
}

/// Running work that the request to place will communicate with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Host of the peer.
    pub host: HostId,
    /// Traffic from the request to the peer, in bit/s.
    pub egress_bps: u64,
    /// Traffic from the peer to the request, in bit/s.
    pub ingress_bps: u64,
}

/// Score of a host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostRating {
    /// The host.
    pub host: HostId,
    /// Largest load of the host or its links with the request, as a share: less is better, and above 1 is
    /// overload. Infinite without capacity.
    pub loaded: f64,
    /// The limiting link, if the policy uses links.
    pub limit: Option<ResourceId>,
    /// Capacity left on that link, in bit/s; negative for an overload.
    pub left: Option<Load>,
    /// Reason for which the host cannot take the request.
    pub refused: Option<Constraint>,
}
