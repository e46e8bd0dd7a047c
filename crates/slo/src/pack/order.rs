//! Order in which servers are tried. First fit tries them in their own order; the thesis compared it with other orders,
//! and none needed fewer servers by much (SLO section 5.2.3, footnote 2).

use leeward_registry::splitmix;

use super::packing::PlacedWorkload;
use super::search::Search;
use super::settings::ServerOrder;

impl Search<'_> {
    /// Open servers in the order of trials.
    pub fn servers(&self) -> Vec<usize> {
        let packing = self.packing;
        let open = (0..packing.site.servers().len()).filter(|&server| !packing.closed[server]);
        let order = packing.settings.order;
        if order == ServerOrder::First {
            return open.collect();
        }
        let mut keys: Vec<(f64, usize)> = open.map(|server| (self.key(server, order), server)).collect();
        keys.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        keys.into_iter().map(|(_, server)| server).collect()
    }

    /// Key of a server; servers with a lower key come first.
    fn key(&self, server: usize, order: ServerOrder) -> f64 {
        let packing = self.packing;
        if packing.on_server[server].is_empty() {
            return f64::INFINITY;
        }
        let placed = packing.on_server[server].iter().map(|id| &packing.placed[id]);
        // Seconds of the slowest queue of each stage: per second for a rate, at once for a burst.
        let seconds = |placed: &PlacedWorkload, burst: bool| -> f64 {
            let stages = placed.workload.demands.iter().zip(&placed.route);
            let stage = stages.map(|(demand, route)| {
                let capacities = route.iter().map(|&queue| packing.site.queues()[queue].capacity);
                let slowest = capacities.fold(f64::INFINITY, f64::min);
                (if burst { demand.arrivals.burst() } else { demand.arrivals.rate() }) / slowest
            });
            stage.sum()
        };
        match order {
            ServerOrder::First => 0.0,
            ServerOrder::FewestWorkloads => placed.count() as f64,
            ServerOrder::LeastLoad => placed.map(|placed| seconds(placed, false)).sum(),
            ServerOrder::LeastBursts => placed.map(|placed| seconds(placed, true)).sum(),
            ServerOrder::SameSlos => placed.filter(|placed| placed.level != self.level).count() as f64,
            ServerOrder::Random => {
                let mixed = splitmix(splitmix(packing.placed.len() as u64) ^ server as u64);
                (mixed >> 11) as f64
            }
        }
    }
}
