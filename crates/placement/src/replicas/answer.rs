//! Answers of policies outside of this crate, for the copies of a block or the chunks of a stripe.

use leeward_fabric::HostId;

use super::fault_domains::{copies_left, domains_besides_first, most_chunks};
use super::first_replica::{check_sources, filter, new_copies, no_candidate, objection, place_preferred};
use super::given::objections;
use super::{Chain, Layout, ReplicaRequest};
use crate::answer::{by_score, check_hosts, first_objection};
use crate::ties::Ties;
use crate::{AnswerError, Pool, Refusal};

/// Checks that a request may have a placement, apart from free hosts.
///
/// # Errors
/// [`Refusal`] for an unknown writer, if no host with an existing copy can send it, if too few chunks of a stripe are
/// left, or if the copies are too few for the fault domains.
pub fn check_request(pool: &Pool, request: &ReplicaRequest) -> Result<(), Refusal> {
    let filter = filter(pool, request);
    check_sources(request, &filter)?;
    let faults = usize::from(request.fault_domains);
    let few = match request.layout {
        Layout::Chain => {
            // The first copy of a new block covers no further fault domain.
            let first = usize::from(filter.used.is_empty());
            let covered = domains_besides_first(pool.fabric(), &filter.used);
            covered + copies_left(request, &filter).saturating_sub(first) < faults
        }
        Layout::Stripe { .. } => most_chunks(request) == Some(0),
    };
    let refused = Refusal::TooFewCopies { replicas: request.replicas, fault_domains: request.fault_domains };
    if few { Err(refused) } else { Ok(()) }
}

/// Checks the hosts of an answer: their number, and the constraints of the request.
///
/// # Errors
/// [`AnswerError`] for the first wrong host.
pub fn check_answer(pool: &Pool, request: &ReplicaRequest, hosts: &[HostId]) -> Result<(), AnswerError> {
    check_hosts(pool.fabric(), hosts, usize::from(request.replicas))?;
    first_objection(hosts, objections(pool, request, hosts))
}

/// Hosts of the new copies by scores, one score for each host of the cluster; more is better. Preferred hosts come first.
/// The writer keeps the first copy if it can, as under the policies here. The other copies go to the hosts with the
/// highest scores which the constraints allow; scores of NaN and of minus infinity exclude a host. `seed` breaks ties.
///
/// # Errors
/// [`Refusal`] of [`check_request`], or if too few hosts are eligible.
pub fn best_by_scores(
    pool: &Pool,
    request: &ReplicaRequest,
    scores: &[f64],
    seed: u64,
) -> Result<Chain, Refusal> {
    check_request(pool, request)?;
    let scores = &scores[..scores.len().min(pool.fabric().host_count())];
    let mut filter = filter(pool, request);
    place_preferred(request, &mut filter);
    let is_scored = |host: &HostId| scores.get(host.index()).is_some_and(|score| *score > f64::NEG_INFINITY);
    if let Some(writer) = request.writer.filter(is_scored)
        && filter.used.is_empty()
        && objection(request, &filter, writer).is_none()
    {
        filter.used.push(writer);
    }
    // A host that is passed over here fits no later copy either: the constraints only become tighter.
    let mut hosts = by_score(scores, Ties::new(seed, request.id));
    while copies_left(request, &filter) > 0 {
        let host = hosts.next().ok_or_else(|| no_candidate(&filter))?;
        if objection(request, &filter, host).is_none() {
            filter.used.push(host);
        }
    }
    Ok(new_copies(request, filter.used))
}

/// For each host of the cluster, true if it may hold a copy of the block.
pub fn eligible(pool: &Pool, request: &ReplicaRequest) -> Vec<bool> {
    let filter = filter(pool, request);
    pool.fabric().all_hosts().map(|host| filter.refuses(host).is_none()).collect()
}
