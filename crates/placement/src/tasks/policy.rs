//! The trait of policies for tasks.

use leeward_fabric::{Fabric, HostId, Load, ResourceId};

use super::AppRequest;
use crate::{Constraint, Context, Policy};

/// A policy for tasks. Besides decisions, a policy gives its cost in advance, and scores of single hosts.
pub trait TaskPolicy: Policy<AppRequest> {
    /// Estimated number of host and link lookups to decide `request`, about ten nanoseconds each. Callers that block
    /// others during a decision check this number first.
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64;

    /// Scores each of `hosts` by this policy's objectives, for a request that also communicates with `peers`. `None` if
    /// the policy does not rank single hosts. The method decides nothing, and ignores objectives that span several
    /// requests. By default, a policy does not rank single hosts.
    fn score_hosts(
        &self,
        _request: &AppRequest,
        _peers: &[Peer],
        _hosts: &[HostId],
        _context: &Context<'_, '_>,
    ) -> Option<Vec<HostRating>> {
        None
    }

    /// Name of the move policy ([`crate::moves::REGISTRY`]) that belongs to this policy; `None` if its tasks stay where
    /// they are.
    fn move_policy(&self) -> Option<&'static str> {
        None
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
