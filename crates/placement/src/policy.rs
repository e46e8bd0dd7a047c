//! The policy trait, and creation of policies by name.

use leeward_fabric::{Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::View;

use crate::{Constraint, Decision, Pool, Refusal};

/// A kind of request that policies decide.
pub trait Request {
    /// Choice in an answer.
    type Choice;
    /// Name of the kind, as in `leeward place KIND`.
    const KIND: &'static str;
}

/// A placement algorithm. Holds settings and no state.
pub trait Policy<Q: Request>: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Decides a batch. Returns one answer per request, in the order of requests, whatever order the policy
    /// serves them in.
    fn place(&self, batch: &[Q], context: &mut Context<'_, '_>) -> Vec<Result<Decision<Q::Choice>, Refusal>>;

    /// Time for which a request waits to be decided together with others; 0 for an immediate decision.
    fn waits(&self, _request: &Q) -> Nanos {
        Nanos(0)
    }

    /// Estimated number of host and link lookups to decide `request`, about ten nanoseconds each. 0 stands
    /// for a negligible number. Callers that block others while they decide check it first.
    fn looks(&self, _request: &Q, _fabric: &Fabric) -> u64 {
        0
    }

    /// Scores each of `hosts` by this policy's objectives, for a request that also communicates with `peers`;
    /// `None` if the policy does not rank single hosts. The method decides nothing, and ignores objectives
    /// that span several requests.
    fn rate(
        &self,
        _request: &Q,
        _peers: &[Peer],
        _hosts: &[HostId],
        _context: &Context<'_, '_>,
    ) -> Option<Vec<Rating>> {
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
pub struct Rating {
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

/// Input of a decision.
pub struct Context<'a, 'l> {
    /// Load of the network; the policy's trial changes go here.
    pub view: &'a mut View<'l>,
    /// Eligible hosts.
    pub pool: &'a Pool,
    /// Seed of tie-breaking and random choices.
    pub seed: u64,
    /// Size of the explanation.
    pub explain: Explain,
}

/// Size of a decision's explanation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Explain {
    /// None: for hot loops.
    #[default]
    Off,
    /// The best few candidates at each level.
    Top(u16),
    /// Every candidate.
    All,
}

impl Explain {
    /// Number of candidates of a level to keep.
    pub(crate) fn limit(self) -> usize {
        match self {
            Explain::Off => 0,
            Explain::Top(limit) => usize::from(limit),
            Explain::All => usize::MAX,
        }
    }
}
