//! Answers of policies outside of this crate: hosts, or scores of all hosts. [`crate::replicas::check_answer`] and
//! [`crate::tasks::check_answer`] check hosts by the constraints of the policies here, and
//! [`crate::replicas::best_by_scores`] and [`crate::tasks::best_by_scores`] turn scores into hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_fabric::{Fabric, HostId};

use crate::Constraint;
use crate::ties::Ties;

/// Reason for which an answer is not a placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerError {
    /// The answer has another number of hosts than the request needs.
    Count {
        /// Number of hosts that the request needs.
        needed: usize,
        /// Number of hosts in the answer.
        given: usize,
    },
    /// The answer names a host that the cluster does not have.
    NoHost {
        /// Position in the answer.
        position: usize,
        /// Number of hosts of the cluster.
        hosts: usize,
    },
    /// A constraint excludes a host.
    Refused {
        /// Position in the answer.
        position: usize,
        /// The host.
        host: HostId,
        /// The constraint.
        constraint: Constraint,
    },
}

impl AnswerError {
    /// The reason as text, with the name of the host.
    pub fn text(self, fabric: &Fabric) -> String {
        match self {
            AnswerError::Count { needed, given } => {
                let hosts = if given == 1 { "host" } else { "hosts" };
                format!("{given} {hosts}: expected {needed}")
            }
            AnswerError::NoHost { position, hosts } => {
                format!("position {position}: expected a host from 0 to {}", hosts.saturating_sub(1))
            }
            AnswerError::Refused { position, host, constraint } => {
                format!("position {position}: {}: {}", fabric.host_name(host), constraint.text())
            }
        }
    }
}

/// Checks the number of hosts, and that the cluster has each of them.
pub(crate) fn check_hosts(fabric: &Fabric, hosts: &[HostId], needed: usize) -> Result<(), AnswerError> {
    if hosts.len() != needed {
        return Err(AnswerError::Count { needed, given: hosts.len() });
    }
    let unknown = hosts.iter().position(|host| host.index() >= fabric.host_count());
    unknown.map_or(Ok(()), |position| Err(AnswerError::NoHost { position, hosts: fabric.host_count() }))
}

/// The first objection to hosts, as an error.
pub(crate) fn first_objection(
    hosts: &[HostId],
    objections: Vec<Option<Constraint>>,
) -> Result<(), AnswerError> {
    let objection = hosts.iter().zip(objections).enumerate().find_map(|(position, (&host, objection))| {
        objection.map(|constraint| AnswerError::Refused { position, host, constraint })
    });
    objection.map_or(Ok(()), Err)
}

/// Hosts with a score, the highest first. A seeded hash is the order of equal scores. Hosts with a score of NaN or of
/// minus infinity are left out.
pub(crate) fn by_score(scores: &[f64], ties: Ties) -> impl Iterator<Item = HostId> + use<> {
    let scored = (0u32..).zip(scores).filter(|(_, score)| **score > f64::NEG_INFINITY);
    // Most requests need few hosts, so the hosts are not sorted.
    let mut best: BinaryHeap<(u64, u64, Reverse<u32>)> =
        scored.map(|(host, &score)| (rank(score), ties.rank(u64::from(host)), Reverse(host))).collect();
    std::iter::from_fn(move || best.pop().map(|(.., Reverse(host))| HostId(host)))
}

/// A whole number in the order of the scores. Both zeros are equal.
fn rank(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_ranked_as_numbers_and_equal_scores_by_a_hash() {
        let scores = [-1.0, f64::NAN, 2.5, 0.0, -0.0, f64::NEG_INFINITY, f64::INFINITY, -1e300];
        let order = |seed| by_score(&scores, Ties::new(seed, 1)).map(|host| host.0).collect::<Vec<_>>();
        let orders: Vec<Vec<u32>> = (0..20).map(order).collect();
        for order in &orders {
            assert_eq!((order[..2].to_vec(), order[4..].to_vec()), (vec![6, 2], vec![0, 7]), "{order:?}");
        }
        let zeros: std::collections::BTreeSet<u32> = orders.iter().map(|order| order[2]).collect();
        assert_eq!(zeros.into_iter().collect::<Vec<_>>(), [3, 4], "the hash decides between both zeros");
    }
}
