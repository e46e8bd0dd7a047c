//! Tasks whose hosts the caller chose. The choice is a fact, so nothing is refused: the checks of the policies only say
//! which hosts they would have refused.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::Epoch;

use super::capacity_check::CapacityCheck;
use super::transaction::change;
use super::{AppRequest, Assignment};
use crate::{Basis, Considered, Constraint, Decision, Pool};

/// Decision for hosts that the caller chose, one for each task. The traffic of the tasks started at `started`.
pub fn given(
    policy: &'static str,
    request: &AppRequest,
    hosts: &[HostId],
    started: Nanos,
    epoch: Epoch,
    pool: &Pool,
) -> Decision<Assignment> {
    Decision {
        change: change(pool.fabric(), request, hosts, started),
        basis: Basis { epoch, oldest: None, policy, note: None, gaps: None, estimate: None, source: None },
        why: hosts.iter().copied().map(Considered::chosen).collect(),
        choice: hosts.to_vec(),
    }
}

/// For each task, the reason for which a policy would refuse its host; `None` if none would.
pub fn objections(pool: &Pool, request: &AppRequest, hosts: &[HostId]) -> Vec<Option<Constraint>> {
    let mut capacity = CapacityCheck::new(pool, request);
    (0..)
        .zip(hosts)
        .map(|(task, &host)| {
            let objection = capacity.refuses(host, task);
            capacity.take(task, host);
            objection
        })
        .collect()
}
