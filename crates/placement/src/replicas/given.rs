//! Copies whose hosts the caller chose. The choice is a fact, so nothing is refused: the checks of the policies only say
//! which hosts they would have refused.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::{Epoch, Fade};

use super::fault_domains::{domains_besides_first, has_most_chunks};
use super::first_replica::filter;
use super::source::source;
use super::{Chain, Layout, ReplicaRequest, transfers};
use crate::{Basis, Considered, Constraint, Decision, Pool};

/// Decision for hosts that the caller chose. The transfer of the block started at `started`.
pub fn given(
    policy: &'static str,
    request: &ReplicaRequest,
    hosts: &[HostId],
    started: Nanos,
    epoch: Epoch,
    pool: &Pool,
) -> Decision<Chain> {
    Decision {
        change: transfers(pool.fabric(), request, hosts, pool.write_rate(), Fade::WithEstimator, started),
        basis: Basis {
            epoch,
            oldest: None,
            policy,
            note: None,
            gaps: None,
            estimate: None,
            source: source(request),
        },
        why: hosts.iter().copied().map(Considered::chosen).collect(),
        choice: hosts.to_vec(),
    }
}

/// For each chosen host, the reason for which a policy would refuse it; `None` if none would. The last host also has
/// [`Constraint::FaultDomain`] if all copies together are in too few fault domains, and the host of a chunk if its fault
/// domain has too many chunks.
pub fn objections(pool: &Pool, request: &ReplicaRequest, hosts: &[HostId]) -> Vec<Option<Constraint>> {
    let mut filter = filter(pool, request);
    let mut objections: Vec<Option<Constraint>> = hosts
        .iter()
        .map(|&host| {
            let crowded = has_most_chunks(request, pool.fabric(), &filter.used, host);
            let objection = filter.refuses(host).or(crowded.then_some(Constraint::FaultDomain));
            filter.used.push(host);
            objection
        })
        .collect();
    if request.layout == Layout::Chain
        && domains_besides_first(pool.fabric(), &filter.used) < usize::from(request.fault_domains)
        && let Some(last) = objections.last_mut()
    {
        last.get_or_insert(Constraint::FaultDomain);
    }
    objections
}
