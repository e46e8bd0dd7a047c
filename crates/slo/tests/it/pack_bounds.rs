//! Packing decides by the bounds of `leeward slo bound`: it places whatever they allow, first fit, and never more.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::HostId;
use leeward_slo::bound::{BoundSettings, Bounds, Method, Unit};
use leeward_slo::pack::{Client, Confirm, PackSettings, Packing, Request, Requests, Site};
use leeward_slo::{Promise, Slo, System, Workload, priorities};
use leeward_testing::clusters::cluster;
use leeward_traces::Stage;
use proptest::prelude::*;

use crate::support::loads::{self, LINK};

fn site() -> Site {
    let clients = (0..2).map(|at| Client { name: format!("c{at}"), slots: None }).collect();
    let servers = (0..3).map(|at| (format!("s{at}"), 1 + at % 2)).collect();
    Site::star(clients, servers, LINK).expect("a valid site")
}

fn settings(limits: &str, confirm: Confirm) -> PackSettings {
    let requests = if confirm.bounds.unit == Unit::Fluid { Requests::Fluid } else { Requests::Whole };
    PackSettings {
        limits: limits.to_owned(),
        margin: 0.0,
        pruning: 0.0,
        requests,
        confirm: Some(confirm),
        ..PackSettings::default()
    }
}

/// True if bounds keep every SLO of promises under their own curves, in the order of SLOs.
fn all_met(queues: &[leeward_slo::Queue], promises: &[Promise], confirm: Confirm) -> bool {
    let mut system = System { queues: queues.to_vec(), promises: promises.to_vec() };
    priorities::by_slo(&mut system);
    let mut bounds = Bounds::new(&system, confirm.bounds).expect("a valid system");
    bounds.misses(0..system.promises.len(), confirm.method).is_empty()
}

/// Server of each workload by first fit, where a place fits if `all_met`.
fn first_fit(workloads: &[Arc<Workload>], confirm: Confirm) -> Vec<Option<usize>> {
    let site = site();
    let mut placed: Vec<Promise> = Vec::new();
    let mut servers = Vec::new();
    for (at, workload) in workloads.iter().enumerate() {
        let places = (0..site.servers().len())
            .flat_map(|server| (0..site.servers()[server].devices.len()).map(move |device| (server, device)));
        let mut chosen = None;
        for (server, device) in places {
            let stages = workload.demands.iter().map(|demand| demand.stage);
            let route: Vec<Vec<usize>> =
                stages.map(|stage| site.path(at % 2, server, device, stage)).collect();
            let limits = workload.demands.iter().map(|demand| demand.arrivals.clone()).collect();
            let priorities = vec![0; route.len()];
            placed.push(Promise { workload: workload.clone(), route, priorities, limits });
            if all_met(site.queues(), &placed, confirm) {
                chosen = Some(server);
                break;
            }
            placed.pop();
        }
        servers.push(chosen);
    }
    servers
}

fn confirms() -> impl Strategy<Value = Confirm> {
    let method = prop::sample::select(vec![Method::Dnc, Method::Best]);
    let unit = prop::sample::select(vec![Unit::Fluid, Unit::Requests]);
    (method, unit).prop_map(|(method, unit)| Confirm {
        method,
        bounds: BoundSettings { unit, ..BoundSettings::default() },
    })
}

#[test]
fn a_workload_that_crosses_no_queue_is_packed_beside_others() {
    let cluster = cluster(
        "{racks: 1, hosts_per_rack: 2, nic: 1Gbps, rack_link: 1Gbps, devices: [{name: d, read: 1GB/s, write: 1GB/s}]}",
    );
    let site = Site::of_fabric(cluster.fabric, &cluster.capacities, &[HostId(0)]).expect("a valid site");
    let confirm = Confirm { method: Method::Dnc, bounds: BoundSettings::default() };
    let mut packing = Packing::new(site, settings("compactor", confirm), "").expect("valid settings");
    let mut place = |name: &str, stage: Stage| {
        let demand =
            loads::demand(stage, ArrivalCurve::new(&[loads::bucket(0.01, 0.001)]).expect("a bucket"), 0.0);
        let slo = Some(Slo { percentile: 99.9, latency: 1.0 });
        let workload =
            Workload { name: name.to_owned(), slo, demands: vec![demand], dependencies: Vec::new() };
        let request = Request { workload: Arc::new(workload), client: Some(0) };
        packing.place(&request).map(|(server, _)| server).map_err(|error| error.to_string())
    };
    // The client is the first server, so the first workload stays within its host.
    assert_eq!(place("local", Stage::NetworkIn), Ok(0));
    assert_eq!(place("stored", Stage::Storage), Ok(0));
    assert_eq!(place("again", Stage::Storage), Ok(0));
}

/// A workload of all stages or of storage alone, whose device has some number of requests at once.
fn workload(at: usize) -> impl Strategy<Value = Arc<Workload>> {
    let any = (loads::workload(format!("w{at}")), any::<bool>(), prop::option::of(1..4_u32));
    any.prop_map(|(mut workload, is_local, outstanding)| {
        workload.demands.retain(|demand| !is_local || demand.stage == Stage::Storage);
        for demand in workload.demands.iter_mut().filter(|demand| demand.stage == Stage::Storage) {
            demand.outstanding = outstanding;
        }
        Arc::new(workload)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn packing_places_whatever_bounds_allow_and_never_more(
        workloads in (3..9_usize).prop_flat_map(|count| (0..count).map(workload).collect::<Vec<_>>()),
        limits in prop::sample::select(vec!["compactor", "several", "average"]),
        confirm in confirms(),
    ) {
        let mut packing = Packing::new(site(), settings(limits, confirm), "").expect("valid settings");
        let found: Vec<Option<usize>> = workloads
            .iter()
            .enumerate()
            .map(|(at, workload)| {
                let request = Request { workload: workload.clone(), client: Some(at % 2) };
                packing.place(&request).ok().map(|(server, _)| server)
            })
            .collect();
        let system = packing.system();
        let mut bounds = Bounds::new(&system, confirm.bounds).expect("a valid system");
        prop_assert_eq!(bounds.misses(0..system.promises.len(), confirm.method), []);
        prop_assert_eq!(found, first_fit(&workloads, confirm));
    }
}
