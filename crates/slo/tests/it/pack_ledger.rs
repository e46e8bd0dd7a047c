//! Packings of a cluster become promises in a ledger, completely or not at all.

use std::sync::Arc;

use crate::support::loads::{bucket, demand};
use leeward_calculus::ArrivalCurve;
use leeward_fabric::{Cluster, HostId, Load, Nanos};
use leeward_ledger::{CommitError, Ledger, LedgerSettings, Scratch};
use leeward_slo::pack::{BridgeError, PackSettings, Packing, PromisedEntries, Request, Site, transaction};
use leeward_slo::{Slo, Workload};
use leeward_traces::Stage;

const TREE: &str = "racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2\n\
                    devices: [{read: 500MB/s, write: 500MB/s}]\n";

fn workload(name: &str, latency: f64) -> Request {
    let curve = |capacity: f64| {
        ArrivalCurve::new(&[bucket(0.3 * capacity, 0.01 * capacity), bucket(0.05 * capacity, 0.2 * capacity)])
            .unwrap()
    };
    let workload = Workload {
        name: name.to_owned(),
        slo: Some(Slo { percentile: 99.9, latency }),
        demands: vec![
            demand(Stage::NetworkIn, curve(125e6 / 4.0), 0.0),
            demand(Stage::Storage, curve(1.0), 0.001),
            demand(Stage::NetworkOut, curve(125e6 / 4.0), 0.0),
        ],
        dependencies: Vec::new(),
    };
    Request { workload: Arc::new(workload), client: Some(0) }
}

fn ledger_and_packing(text: &str, levels: Vec<f64>) -> (Ledger, Packing) {
    let cluster = Cluster::from_text("test", text).unwrap();
    let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, LedgerSettings::default()).unwrap();
    let site = Site::of_fabric(cluster.fabric, &cluster.capacities, &[HostId(3)]).unwrap();
    let packing = Packing::new(site, PackSettings { levels, ..PackSettings::default() }, "").unwrap();
    (ledger, packing)
}

fn owner(name: &str) -> u64 {
    name.bytes().map(u64::from).sum()
}

#[test]
fn promises_commit_with_their_changes_and_conflict_on_a_stale_ledger() {
    let (mut ledger, mut packing) = ledger_and_packing(&format!("{TREE}priorities: 4\n"), vec![0.2, 0.5]);
    let (now, mut scratch) = (Nanos(1), Scratch::default());
    let mut promised = PromisedEntries::new();
    let mut released = 0;
    for (at, latency) in [0.45, 0.9, 0.2, 0.8, 0.4].into_iter().enumerate() {
        let request = workload(&format!("w{at}"), latency);
        let plan = packing.plan(&request).unwrap();
        let stale = transaction(&packing, &plan, &promised, &ledger.view(now, &mut scratch), owner).unwrap();
        // The ledger changes first: the capacity of a link that the plan depends on.
        let (link, _) = stale.0.expect[0];
        let before = ledger.view(now, &mut scratch).capacity(link);
        ledger.set_capacity(link, Load(before.0 - 1000), now);
        let refused = ledger.commit(stale.0, now);
        assert!(matches!(refused, Err(CommitError::Conflict { resource, .. }) if resource == link));
        ledger.set_capacity(link, before, now);
        let view = ledger.view(now, &mut scratch);
        let (transaction, names) = transaction(&packing, &plan, &promised, &view, owner).unwrap();
        released += transaction.release.len();
        let ids = ledger.commit(transaction, now).unwrap();
        assert_eq!(ids.len(), names.len());
        for name in &names {
            promised.insert(name.clone(), Vec::new());
        }
        for (name, id) in names.into_iter().zip(ids) {
            promised.get_mut(&name).unwrap().push(id);
        }
        let earlier = packing.plan(&request).unwrap();
        assert!(packing.apply(plan));
        assert!(!packing.apply(earlier), "the plan is stale");
    }
    assert!(released > 0, "existing workloads get new limits");
    // The ledger's reservations equal the packing's configured rates.
    let system = packing.system();
    let view = ledger.view(now, &mut scratch);
    for (index, queue) in system.queues.iter().enumerate() {
        let resource = queue.resource.unwrap();
        let at = |(path, limit): (&Vec<usize>, &ArrivalCurve)| path.contains(&index).then(|| limit.rate());
        let rates = system.promises.iter().flat_map(|p| p.route.iter().zip(&p.limits).filter_map(at));
        let rates: f64 = rates.sum();
        let native = if queue.name.contains("disk") || queue.capacity < 10.0 { 1e9 } else { 8.0 };
        let reserved = view.reserved(resource).0 as f64;
        assert!(
            (reserved - rates * native).abs() <= 20.0 + 1e-6 * reserved,
            "{}: {reserved}, {}",
            queue.name,
            rates * native
        );
        assert!(view.unreserved(resource).unwrap().0 >= 0 || reserved == 0.0, "{}", queue.name);
    }
}

#[test]
fn a_refused_promise_names_the_remedy() {
    let refused = |text: &str, levels: Vec<f64>| {
        let (ledger, packing) = ledger_and_packing(text, levels);
        let plan = packing.plan(&workload("w", 0.9)).unwrap();
        let mut scratch = Scratch::default();
        let view = ledger.view(Nanos(1), &mut scratch);
        transaction(&packing, &plan, &PromisedEntries::new(), &view, owner).unwrap_err()
    };
    let fifo = refused(TREE, vec![0.2]);
    assert!(fifo.to_string().contains("give the cluster `priorities`"), "{fifo}");
    let classes = format!("{TREE}priorities: 2\n");
    assert_eq!(refused(&classes, Vec::new()), BridgeError::NoLevels);
    let priority = refused(&classes, vec![0.2]);
    assert!(matches!(priority, BridgeError::Priority { priority: 1, classes: 2, .. }), "{priority}");
}
