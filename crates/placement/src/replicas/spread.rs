//! How the copies of a block lie over racks and fault domains: what is wanted, and what is tried when that cannot be
//! had. A demand for fault domains is never given up.
//!
//! Whole copies (Sinbad section 2.1): at least f fault domains besides the first copy's hold one. Chunks of a stripe:
//! the loss of any f fault domains leaves enough chunks to rebuild the rest, so none holds more than parity / f.

use leeward_fabric::{FaultDomainId, Shape};

use super::{Layout, ReplicaRequest};
use crate::Refusal;
use crate::constraints::Filter;

/// One way to lay out the copies besides the first: group by group, each group on hosts of one rack.
pub(super) struct Spread {
    /// Sizes of the groups, in the order they are placed.
    pub groups: Vec<usize>,
    rule: Rule,
}

/// Which fault domains take a further group.
#[derive(Clone, Copy)]
enum Rule {
    /// Those that hold none yet.
    New,
    /// Those with fewer chunks than `most`, and no more than `slack` above an even share.
    Even { most: usize, slack: usize },
    /// New ones until this many besides the first copy's hold a copy; then all, or all but the first copy's.
    Then { others: usize, with_first: bool },
}

impl Spread {
    /// Closes the fault domains that may not take the next group.
    pub fn close(&self, filter: &mut Filter<'_>) {
        let fabric = filter.pool.fabric();
        let domain = |host: &leeward_fabric::HostId| fabric.fault_domain(fabric.rack_of(*host));
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

/// What may be tried, most wanted first. Chains: `remote_racks` groups, in a fault domain each; each copy by itself,
/// where no rack takes a group; near each other; and, rather than nowhere, near the first copy. Stripes: as evenly as
/// can be had.
pub(super) fn spreads(
    request: &ReplicaRequest,
    remote_racks: u8,
    shape: Shape,
) -> Result<Vec<Spread>, Refusal> {
    let copies = usize::from(request.replicas.saturating_sub(1));
    let faults = usize::from(request.fault_domains);
    let refused = Refusal::TooFewCopies { replicas: request.replicas, fault_domains: request.fault_domains };
    let alone = || vec![1; copies];
    match request.layout {
        Layout::Chain if faults > copies => Err(refused),
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
        Layout::Stripe { parity } => {
            let most = usize::from(parity).checked_div(faults).unwrap_or(copies + 1).min(copies + 1);
            if most == 0 {
                return Err(refused);
            }
            let even = |slack| Spread { groups: alone(), rule: Rule::Even { most, slack } };
            Ok((1..=most).map(even).collect())
        }
    }
}

/// How copies are grouped, one group a rack, the larger first: two in one rack are `[2]`, in two racks `[1, 1]`. On a
/// mesh nothing is near, and every copy is by itself.
fn groups(copies: usize, racks: u8, shape: Shape) -> Vec<usize> {
    let racks = if shape == Shape::Tree { usize::from(racks.max(1)).min(copies) } else { copies };
    (0..racks).map(|i| copies / racks + usize::from(i < copies % racks)).collect()
}
