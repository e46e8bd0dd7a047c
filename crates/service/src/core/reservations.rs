//! Guarantees of workloads: their reservations, and their validity on another cluster.

use leeward_agreements::GrantedStage;
use leeward_fabric::{DomainId, ResourceId, ResourceKind};
use leeward_ledger::Demand;
use leeward_records::DecisionDetails;
use leeward_slo::pack::levels;

use super::reply::ReservationState;
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Rates reserved on the links of a rack and its hosts.
    pub(super) fn reservations(&self, rack: DomainId) -> Vec<ReservationState> {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric();
        let is_in_rack = |link: ResourceId| match fabric.kind(link) {
            ResourceKind::Device => false,
            _ => match fabric.host_of(link) {
                Some(host) => fabric.rack_of(host) == rack,
                None => [fabric.out_of_domain(rack), fabric.into_domain(rack)].contains(&Some(link)),
            },
        };
        let mut reservations = Vec::new();
        for (name, &id) in &self.promises.active {
            let entries = self.records.get(id).into_iter().flat_map(|record| &record.entries);
            for entry in entries.filter_map(|&entry| ledger.entry(entry)) {
                let Demand::Envelope { rate_bps, priority, .. } = entry.demand else { continue };
                let links = entry.hops.iter().map(|hop| hop.resource).filter(|&link| is_in_rack(link));
                reservations.extend(links.map(|link| {
                    let (workload, link) = (name.clone(), fabric.resource_name(link));
                    ReservationState { workload, link, rate_bps, priority }
                }));
            }
        }
        reservations
    }

    /// True if this cluster can keep a guarantee: its hosts and queues exist, and the queues have enough priorities.
    pub(super) fn can_keep(&self, details: &DecisionDetails) -> bool {
        let fabric = self.engine.ledger().fabric();
        if details.by_default {
            // It guarantees nothing.
            return true;
        }
        let Some(grant) = &details.promise else { return details.spec.workload().is_none() };
        let Some(levels) = *self.promises.levels.get_or_init(|| levels(fabric).ok()) else { return false };
        let hosts = [&grant.client, &grant.server];
        let is_possible = |stage: &GrantedStage| {
            stage.queues.iter().all(|name| {
                fabric.resource(name).is_some_and(|queue| {
                    fabric.kind(queue) == ResourceKind::Device || stage.priority < u32::from(levels)
                })
            })
        };
        hosts.into_iter().all(|name| fabric.host(name).is_some()) && grant.stages.iter().all(is_possible)
    }
}
