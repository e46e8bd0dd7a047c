//! Workload files of arriving workloads: valid fields, and refusals.

use leeward_fabric::input::Text;
use leeward_slo::bound::bounds;
use leeward_slo::file::Workloads;
use leeward_testing::clusters::cluster;

use crate::support::workload_file::{CLUSTER, GOOD, files, one, read, trace};

#[test]
fn an_arriving_file_may_have_dependencies_but_no_priorities_or_limits() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let read_arrivals =
        |text: &str| Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing));
    let two = |fields: &str| one(fields).replace("name: a", "name: b");
    let mut system = existing.system(&cluster).unwrap().system;
    let elsewhere = read_arrivals(&one(&GOOD.replace("r1h1", "r1h0"))).unwrap();
    let elsewhere = elsewhere.arrivals(&cluster, &mut system).unwrap_err().to_string();
    assert!(
        elsewhere.contains("workloads[0].server: the workload exists with another client"),
        "{elsewhere}"
    );
    let queues = system.queues.len();
    for (field, given) in
        [("priority", "priority: 1"), ("limits", "limits: {storage: [{rate: 9%, burst: 1s}]}")]
    {
        let given = read_arrivals(&two(&format!("{GOOD}, {given}"))).unwrap();
        let refused = given.arrivals(&cluster, &mut system).unwrap_err().to_string();
        assert!(refused.contains(&format!("workloads[0].{field}: expected none")), "{refused}");
    }
    assert_eq!(system.queues.len(), queues);
    let arrivals = read_arrivals(&two(&format!("{GOOD}, depends_on: [a]")))
        .unwrap()
        .arrivals(&cluster, &mut system)
        .unwrap();
    assert_eq!(arrivals[0].route, system.promises[0].route);
    assert_eq!(system.queues.len(), queues);
}

#[test]
fn an_arrival_of_an_existing_name_is_a_change_decided_again() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let placed = existing.system(&cluster).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let read_arrivals =
        |text: &str| Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing));
    for policy in ["dnc", "none"] {
        let by = existing.admission(policy, "").unwrap();
        let same = existing.admit(&placed, &read_arrivals(&one(GOOD)).unwrap(), &cluster, &by).unwrap();
        assert_eq!((same.system, same.residents.len()), (placed.system.clone(), 0));
        assert!(same.arrivals[0].changed && same.arrivals[0].refused.is_none());
    }
    let by = existing.admission("dnc", "").unwrap();
    let heavy = read_arrivals(&format!("margin: 900000%\n{}", one(GOOD))).unwrap();
    let heavy = existing.admit(&placed, &heavy, &cluster, &by).unwrap();
    let [a] = &heavy.arrivals[..] else { panic!("one arrival") };
    assert!(a.changed && a.refused.is_some() && a.promise == Some(0), "{a:?}");
    assert_eq!(heavy.system.promises.len(), 1);
    assert_eq!(heavy.system.promises[0].workload.slo, None);
}

#[test]
fn a_refused_workload_runs_as_best_effort_or_not_at_all() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let placed = existing.system(&cluster).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let text = "device: ssd.json\nworkloads:\n\
        - {name: b, client: r0h1, server: r1h1, trace: t.csv, slo: {percentile: 99, latency: 1s}}\n\
        - {name: c, client: r0h1, server: r1h1, trace: t.csv, slo: {percentile: 99, latency: 1100us}}\n";
    let new = Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing)).unwrap();
    // The second arrival's SLO is below any bound on it.
    for name in ["dnc", "snc", "best", "none"] {
        let by = existing.admission(name, "").unwrap();
        let admitted = existing.admit(&placed, &new, &cluster, &by).unwrap();
        let [b, c] = &admitted.arrivals[..] else { panic!("two arrivals") };
        assert_eq!((b.promise, b.refused.is_none()), (Some(1), true), "{name}");
        assert_eq!(c.refused.is_none(), name == "none", "{name}: {c:?}");
        let system = &admitted.system;
        let kept = c.promise.is_none_or(|at| system.promises[at].workload.slo.is_some() == (name == "none"));
        assert!(kept, "{name}");
        assert_eq!(by.admission.by().is_none(), name == "none");
        assert_eq!(by.admission.needs_models(), ["snc", "best"].contains(&name), "{name}");
        if let Some((method, settings)) = by.admission.by() {
            assert_eq!(settings, existing.bounds, "{name}");
            for (promise, bound) in system.promises.iter().zip(bounds(system, method, settings)) {
                // Best effort has no percentile.
                let Some(slo) = promise.workload.slo else { continue };
                assert!(bound.unwrap().seconds <= slo.latency, "{name}: {}", promise.workload.name);
            }
        }
    }
    // Policies for networks refuse every workload with a device.
    for name in ["silo++", "qjump++"] {
        let by = existing.admission(name, "").unwrap();
        let admitted = existing.admit(&placed, &new, &cluster, &by).unwrap();
        assert!(admitted.arrivals.iter().all(|result| result.refused.is_some()), "{name}");
        assert_eq!(admitted.residents[0].refused.is_some(), by.admission.sets_rates(), "{name}");
    }
    let unknown = existing.admission("first", "").err().unwrap().to_string();
    assert!(unknown.contains("unknown policy `first` for admission"), "{unknown}");
    let error = existing.admission("dnc", "{serch: false}").err().unwrap().to_string();
    assert!(error.contains("serch: unknown field"), "{error}");
}
