//! Layouts of a block's copies over racks and fault domains: the preferred one, and alternatives. Alternatives keep
//! the required fault domains.
//!
//! Whole copies (Sinbad section 2.1): at least f fault domains besides the first copy's hold a copy. Chunks of a
//! stripe: after the loss of any f fault domains, enough chunks remain to rebuild the rest. So no fault domain holds
//! more than parity / f chunks.

use leeward_fabric::{Fabric, FaultDomainId, HostId, Shape};

use super::{Layout, ReplicaRequest};
use crate::Refusal;
use crate::constraints::Filter;

/// A layout of the copies besides those placed so far: group by group, each group on hosts of one rack.
pub(super) struct Spread {
    /// Sizes of the groups, in placement order.
    pub groups: Vec<usize>,
    rule: Rule,
}

/// Rule for the fault domains of a further group.
#[derive(Clone, Copy)]
enum Rule {
    /// Fault domains without a copy.
    New,
    /// Fault domains with fewer chunks than `most`, and at most `slack` above an even share.
    Even { most: usize, slack: usize },
    /// New fault domains until `others` of them, besides the first copy's, hold a copy. Afterwards all fault domains,
    /// with or without the first copy's.
    Then { others: usize, with_first: bool },
}

impl Spread {
    /// Closes the fault domains that may not take the next group.
    pub fn close(&self, filter: &mut Filter<'_>) {
        let fabric = filter.pool.fabric();
        let domain = |host: &HostId| fabric.fault_domain(fabric.rack_of(*host));
        let mut closed: Vec<FaultDomainId> = filter.used.iter().map(domain).collect();
        let Some(&first) = closed.first() else { return filter.closed.clear() };
        match self.rule {
            Rule::New => {}
            Rule::Even { most, slack } => {
                let held = closed.clone();
                let most = most.min(held.len() / fabric.fault_domain_count() + slack);
                closed.retain(|domain| held.iter().filter(|other| *other == domain).count() >= most);
            }
            Rule::Then { others, with_first } => {
                let mut besides: Vec<_> = closed.iter().filter(|&&domain| domain != first).collect();
                besides.sort_unstable();
                besides.dedup();
                if besides.len() >= others {
                    closed.clear();
                    closed.extend((!with_first).then_some(first));
                }
            }
        }
        filter.closed = closed;
    }
}

/// Most chunks of a stripe that a fault domain may hold: enough chunks remain after the loss of any `fault_domains`
/// of them. `None` for copies, and if no fault domain may be lost.
pub(super) fn most_chunks(request: &ReplicaRequest) -> Option<usize> {
    let Layout::Stripe { parity } = request.layout else { return None };
    usize::from(parity).checked_div(usize::from(request.fault_domains))
}

/// True if the fault domain of a host holds as many chunks of a stripe as it may.
pub(super) fn has_most_chunks(
    request: &ReplicaRequest,
    fabric: &Fabric,
    held: &[HostId],
    host: HostId,
) -> bool {
    let domain = |host: HostId| fabric.fault_domain(fabric.rack_of(host));
    let beside = || held.iter().filter(|&&other| domain(other) == domain(host)).count();
    most_chunks(request).is_some_and(|most| beside() >= most)
}

/// Number of copies that have no host yet.
pub(super) fn copies_left(request: &ReplicaRequest, filter: &Filter<'_>) -> usize {
    (request.constraints.existing.len() + usize::from(request.replicas)).saturating_sub(filter.used.len())
}

/// Number of fault domains with a copy, besides the first copy's.
pub(super) fn domains_besides_first(fabric: &Fabric, copies: &[HostId]) -> usize {
    let domain = |host: &HostId| fabric.fault_domain(fabric.rack_of(*host));
    let mut domains: Vec<FaultDomainId> = copies.iter().map(domain).collect();
    domains.sort_unstable();
    domains.dedup();
    domains.len().saturating_sub(1)
}

/// Layouts to try, the preferred one first.
///
/// For chains, the first layout has `remote_racks` groups, each in its own fault domain. If no rack takes a group, the
/// next layout places single copies. The layouts after it allow several copies in one fault domain; only the last one
/// allows the first copy's fault domain. For stripes, the layouts start with the most even spread of chunks.
///
/// `filter` has the copies placed so far: existing and preferred ones, or the first.
///
/// # Errors
/// [`Refusal::TooFewCopies`] if the copies cannot cover the fault domains.
pub(super) fn spreads(
    request: &ReplicaRequest,
    remote_racks: u8,
    filter: &Filter<'_>,
) -> Result<Vec<Spread>, Refusal> {
    let shape = filter.pool.fabric().shape();
    let copies = copies_left(request, filter);
    let faults = usize::from(request.fault_domains);
    let missing = faults.saturating_sub(domains_besides_first(filter.pool.fabric(), &filter.used));
    let refused = Refusal::TooFewCopies { replicas: request.replicas, fault_domains: request.fault_domains };
    let alone = || vec![1; copies];
    match request.layout {
        Layout::Chain if missing > copies => Err(refused),
        Layout::Chain => {
            let wanted = groups(copies, remote_racks.max(request.fault_domains), shape);
            let grouped = wanted != alone();
            let mut spreads = vec![Spread { groups: wanted, rule: Rule::New }];
            spreads.extend(grouped.then(|| Spread { groups: alone(), rule: Rule::New }));
            spreads.extend([false, true].map(|with_first| {
                let rule = Rule::Then { others: faults, with_first };
                Spread { groups: alone(), rule }
            }));
            Ok(spreads)
        }
        Layout::Stripe { .. } => {
            let chunks = filter.used.len() + copies;
            let most = most_chunks(request).unwrap_or(chunks).min(chunks);
            if most == 0 {
                return Err(refused);
            }
            let even = |slack| Spread { groups: alone(), rule: Rule::Even { most, slack } };
            Ok((1..=most).map(even).collect())
        }
    }
}

/// Sizes of the groups of copies, one group per rack, larger ones first: two copies in one rack are `[2]`, in two racks
/// `[1, 1]`. On a mesh no hosts are close to each other, so every copy is a group.
fn groups(copies: usize, racks: u8, shape: Shape) -> Vec<usize> {
    let racks = if shape == Shape::Tree { usize::from(racks.max(1)).min(copies) } else { copies };
    (0..racks).map(|i| copies / racks + usize::from(i < copies % racks)).collect()
}
