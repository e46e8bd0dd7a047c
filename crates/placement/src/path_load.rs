//! Load on the links that a choice's traffic crosses: one measure for the choices of all policies, so that they can be
//! compared on one view. Devices do not count: many clusters have no telemetry of them.

use leeward_fabric::{Load, ResourceId, ResourceKind};
use leeward_ledger::{Demand, Entry, View};

/// Load on the links that a choice's traffic crosses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathLoad {
    /// Link with the highest utilization, and the utilization with the choice's streams added. Transfers that use the
    /// rate they get add nothing. `None` if the choice crosses no link whose load is known.
    pub fullest: Option<(ResourceId, f64)>,
    /// Number of crossed links with a utilization above [`View::hot_above`].
    pub hot: u32,
    /// Number of crossed links whose load is unknown.
    pub unknown: u32,
    /// Rate of the slowest of the choice's transfers, in bit/s: the smallest of [`View::share`] along its path. `None`
    /// if the choice has no transfers over the network.
    pub rate: Option<Load>,
}

impl PathLoad {
    /// Measures the traffic of a choice, which the view does not contain yet. The view does not change.
    pub fn of(view: &mut View<'_>, traffic: &[Entry]) -> PathLoad {
        let checkpoint = view.checkpoint();
        let transfers = traffic.iter().filter_map(|entry| match entry.demand {
            Demand::Elastic { flows, cap_bps, .. } => Some((entry, flows, cap_bps)),
            Demand::Stream { .. } | Demand::Envelope { .. } => None,
        });
        let fabric = view.fabric();
        let links = |entry: &'_ Entry| {
            let crossed = entry.hops.iter().map(|hop| hop.resource);
            crossed.filter(|&resource| fabric.kind(resource) != ResourceKind::Device).collect::<Vec<_>>()
        };
        let rates = transfers.filter_map(|(entry, flows, cap)| {
            let known = links(entry).into_iter().filter(|&link| view.measured(link).is_some());
            let shares = known.map(|link| view.share(link, flows).0 / i64::from(flows.max(1)));
            shares.chain(cap.map(|cap| i64::try_from(cap).unwrap_or(i64::MAX))).min()
        });
        let rate = rates.min().map(Load);
        let is_stream = |entry: &&Entry| !matches!(entry.demand, Demand::Elastic { .. });
        traffic.iter().filter(is_stream).for_each(|entry| view.add(entry));
        let mut crossed: Vec<ResourceId> = traffic.iter().flat_map(links).collect();
        crossed.sort_unstable();
        crossed.dedup();
        let mut load = PathLoad { rate, ..PathLoad::default() };
        for link in crossed {
            match view.utilization_with(link, Load(0)) {
                None => load.unknown += 1,
                Some(utilization) => {
                    load.hot += u32::from(utilization > view.hot_above());
                    if load.fullest.is_none_or(|(_, fullest)| utilization > fullest) {
                        load.fullest = Some((link, utilization));
                    }
                }
            }
        }
        view.rollback(checkpoint);
        load
    }
}
