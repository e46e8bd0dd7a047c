//! Online admission and packing: workloads that arrive one by one beside the active ones.

use std::collections::BTreeMap;

use leeward_fabric::{Cluster, HostId, Nanos, ResourceId};
use leeward_ledger::{Ledger, LedgerSettings, Scratch, Transaction};
use leeward_registry::PolicySpec;
use leeward_slo::bound::{Bounds, Method};
use leeward_slo::file::Workloads;
use leeward_slo::online::{ActiveWorkload, Agreement, Form, Grant, Rejected, admit, check, pack};
use leeward_testing::rows::{check_rows, equal};
use proptest::prelude::*;
use serde_json::{Value, json};

const CLUSTER: &str = "racks: 2\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 1\npriorities: 4\n\
                       devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]\n";

fn cluster(text: &str) -> Cluster {
    Cluster::from_text("test", text).expect("the test writes a right cluster")
}

/// A requested workload.
#[derive(Clone, Debug)]
struct Ask {
    client: u32,
    server: u32,
    millis: u64,
    share: u32,
    burst: u64,
    bytes: u64,
}

fn ask() -> impl Strategy<Value = Ask> {
    let slo = prop::sample::select(vec![20_u64, 40, 60, 100, 400]);
    (0..6_u32, 0..6_u32, slo, 1..25_u32, 1..12_u64, 1..40_u64).prop_map(
        |(client, server, millis, share, burst, bytes)| Ask { client, server, millis, share, burst, bytes },
    )
}

impl Ask {
    fn form(&self, name: &str, placed: bool) -> Form {
        let host = |host: u32| format!("r{}h{}", host / 3, host % 3);
        let link =
            json!([{ "rate": format!("{}MB/s", self.bytes), "burst": format!("{}kB", 8 * self.bytes) }]);
        let mut form = json!({
            "name": name,
            "client": host(self.client),
            "slo": { "percentile": 99.9, "latency": format!("{}ms", self.millis) },
            "curves": {
                "network-in": link,
                "storage": [
                    { "rate": format!("{}%", self.share), "burst": format!("{}ms", self.burst) },
                    { "rate": format!("{}%", self.share + 20), "burst": format!("{}us", 100 * self.burst) },
                ],
                "network-out": link,
            },
            "unloaded": "200us",
        });
        if placed {
            form["server"] = host(self.server).into();
        }
        match form {
            Value::Object(form) => form,
            _ => unreachable!("it is written as an object"),
        }
    }
}

fn policy(text: &str) -> PolicySpec {
    text.parse().expect("a policy")
}

/// Active workloads, with a ledger that holds their promises.
struct House {
    cluster: Cluster,
    ledger: Ledger,
    standing: Vec<ActiveWorkload>,
    entries: BTreeMap<u64, Vec<leeward_ledger::EntryId>>,
}

impl House {
    fn new() -> House {
        let cluster = cluster(CLUSTER);
        let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, LedgerSettings::default());
        let ledger = ledger.expect("defaults are right");
        House { cluster, ledger, standing: Vec::new(), entries: BTreeMap::new() }
    }

    /// Activates an agreement: commits all of its entries again, expecting the versions that it depends on.
    fn settle(&mut self, id: u64, form: Form, agreement: &Agreement) {
        let mut scratch = Scratch::default();
        let view = self.ledger.view(Nanos(0), &mut scratch);
        let expect = agreement.read.iter().map(|&queue| (queue, view.version(queue))).collect();
        let release = self.entries.values().flatten().copied().collect();
        let add = agreement.entries.iter().flatten().cloned().collect();
        let change = Transaction { add, release, expect, ..Transaction::default() };
        let mut ids = self.ledger.commit(change, Nanos(0)).expect("no change meanwhile").into_iter();
        let agreed = agreement.agreed.last().expect("the new one").clone();
        self.standing.push(ActiveWorkload { id, form, agreed });
        for ((standing, agreed), entries) in
            self.standing.iter_mut().zip(&agreement.agreed).zip(&agreement.entries)
        {
            assert_eq!(standing.agreed.workload, agreed.workload);
            standing.agreed = agreed.clone();
            self.entries.insert(standing.id, ids.by_ref().take(entries.len()).collect());
        }
    }

    /// Checks three properties. Every bound keeps its SLO. A file of all active workloads gives the same
    /// bounds. The reservation on each link equals the sum of its limits.
    fn check(&self) -> Result<(), TestCaseError> {
        let forms: Vec<Value> = self.standing.iter().map(in_force).collect();
        let file = json!({ "workloads": forms, "levels": 3 }).to_string();
        let open = |name: &str| Err(leeward_fabric::input::InputError::new(name, "no file"));
        let read = Workloads::from_text("w", &file, &self.cluster, &Default::default(), &open, None);
        let read = read.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let placed = read.system(&self.cluster).expect("the cluster has servers");
        let mut bounds = Bounds::new(&placed.system, read.bounds).expect("a right system");
        let mut reserved = BTreeMap::<ResourceId, f64>::new();
        for (at, (standing, promise)) in self.standing.iter().zip(&placed.system.promises).enumerate() {
            let Grant { bound_s, slo, .. } = &standing.agreed;
            let told = bound_s.expect("a bound");
            prop_assert!(told <= slo.latency_s, "{standing:?}");
            let bound = bounds.bound(at, Method::Dnc).expect("a bound").seconds;
            prop_assert!((bound - told).abs() <= 1e-6 * told, "{bound} is not {told}: {standing:?}");
            for (limit, route) in promise.limits.iter().zip(&promise.route) {
                for queue in route.iter().filter_map(|&queue| placed.system.queues[queue].resource) {
                    *reserved.entry(queue).or_default() += limit.rate();
                }
            }
        }
        let mut scratch = Scratch::default();
        let view = self.ledger.view(Nanos(0), &mut scratch);
        for (queue, work) in reserved {
            let unit = if self.cluster.fabric.resource_name(queue).ends_with("ssd") { 1e9 } else { 8.0 };
            let (found, capacity) = (view.reserved(queue).0 as f64, view.capacity(queue).0 as f64);
            let apart = (found - work * unit).abs();
            prop_assert!(apart <= 1.0 + 8.0 * self.standing.len() as f64, "{found} is not {}", work * unit);
            prop_assert!(found <= capacity, "{found} of {capacity}");
        }
        Ok(())
    }
}

/// Form of a workload in a file, with its promise.
fn in_force(standing: &ActiveWorkload) -> Value {
    let mut form = Value::Object(standing.form.clone());
    form["server"] = standing.agreed.volume.clone().into();
    for stage in &standing.agreed.stages {
        form["priority"][&stage.stage] = stage.priority.into();
        if stage.own_curve || stage.queues.is_empty() {
            continue;
        }
        let bucket = |bucket: &leeward_slo::file::BucketRecord| match stage.stage.as_str() {
            "storage" => json!({
                "rate": format!("{:.4}%", 100.0 * bucket.rate),
                "burst": format!("{}ns", (1e9 * bucket.burst).round()),
            }),
            _ => json!({ "rate": format!("{}B/s", bucket.rate), "burst": format!("{}B", bucket.burst) }),
        };
        form["limits"][&stage.stage] = stage.limits.iter().map(bucket).collect();
    }
    form
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// All promises hold after any sequence of admissions and packings.
    #[test]
    fn every_agreement_meets_all_slos_and_the_ledger_has_its_limits(
        asks in prop::collection::vec((ask(), any::<bool>()), 1..7),
    ) {
        let mut house = House::new();
        let down = HostId(0);
        for (id, (ask, placed)) in (0..).zip(asks) {
            let form = ask.form(&format!("w{id}"), placed);
            prop_assert_eq!(check(&form, placed), Ok(()));
            let (cluster, standing) = (&house.cluster, &house.standing);
            let agreement = match placed {
                true => admit(cluster, standing, &form, id, &policy("dnc")),
                false => pack(cluster, standing, &form, id, &policy("compactor"), &[down]),
            };
            match agreement {
                Ok(agreement) => {
                    let own = agreement.agreed.last().expect("the new one");
                    prop_assert!(placed || own.server != "r0h0", "host r0h0 is closed");
                    for (before, after) in house.standing.iter().zip(&agreement.agreed) {
                        prop_assert_eq!(&before.agreed.volume, &after.volume, "volumes stay");
                        if after.server != own.server || placed {
                            let limits = |of: &Grant| -> Vec<_> {
                                of.stages.iter().map(|stage| stage.limits.clone()).collect()
                            };
                            prop_assert_eq!(limits(&before.agreed), limits(after), "others keep limits");
                        }
                    }
                    house.settle(id, form, &agreement);
                    house.check()?;
                }
                Err(Rejected::Refused(why)) => prop_assert!(why.len() > 10, "{}", why),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}

#[test]
fn a_refusal_names_the_workload_and_its_slowest_stage() {
    let house = House::new();
    let ask = Ask { client: 0, server: 1, millis: 5, share: 10, burst: 30, bytes: 1 };
    let refused = admit(&house.cluster, &[], &ask.form("a", true), 0, &policy("dnc"));
    let Err(Rejected::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("a: a bound of ") && why.ends_with(" at storage (r0h1:ssd)"), "{why}");
    let refused = pack(&house.cluster, &[], &ask.form("a", false), 0, &policy("compactor"), &[]);
    let Err(Rejected::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("none of 6 servers") || why.contains("on an empty server"), "{why}");
}

/// A workload with random requests. The curve passes bursts. If they are `large`, the largest burst takes far longer
/// than the SLO, though hardly any request does.
fn by_chance(name: &str, server: Option<&str>, large: bool) -> Form {
    let model = |stage: &str, mean: f64, buckets: Value| {
        json!({
            "stage": stage, "step_s": 0.001, "transitions": [[1.0]], "largest": 16.0 * mean, "buckets": buckets,
            "states": [{ "requests_per_step": 0.05, "requests": "bernoulli", "sizes": { "exponential": mean } }],
        })
    };
    let (bytes, seconds, millis) = if large { (4_000_000.0, 0.05, 60) } else { (70_000.0, 0.01, 50) };
    let link = json!([{ "rate": 10_000_000.0, "burst": bytes }]);
    let form = json!({
        "name": name, "client": "r0h0", "server": server,
        "slo": { "percentile": 99.9, "latency": format!("{millis}ms") },
        "model": [
            model("network-in", 4_000.0, link.clone()),
            model("storage", 0.000_5, json!([{ "rate": 0.2, "burst": seconds }])),
            model("network-out", 4_000.0, link),
        ],
        "unloaded": "100us",
    });
    form.as_object().expect("an object").clone()
}

#[test]
fn promises_of_other_bounds_stay_unchanged_and_do_not_block_packing() {
    // On a path that all racks share: promises by another kind of bound, and without a bound.
    for by in ["snc", "none"] {
        let mut house = House::new();
        let form = by_chance("chance", Some("r1h1"), true);
        let agreement = admit(&house.cluster, &[], &form, 0, &policy(by)).expect("the workload is admitted");
        let told = agreement.agreed[0].clone();
        assert_eq!(told.by.as_deref(), Some(by).filter(|by| *by != "none"), "{told:?}");
        house.settle(0, form, &agreement);
        let worst = admit(&house.cluster, &[], &by_chance("chance", Some("r1h1"), true), 0, &policy("dnc"));
        assert!(matches!(worst, Err(Rejected::Refused(_))), "its worst case is within its SLO: {worst:?}");
        for (id, client) in [(1, 1), (2, 3), (3, 0)] {
            let ask = Ask { client, server: 0, millis: 400, share: 2, burst: 1, bytes: 1 };
            let form = ask.form(&format!("w{id}"), false);
            let packed = pack(&house.cluster, &house.standing, &form, id, &policy("compactor"), &[]);
            let packed = packed.unwrap_or_else(|why| panic!("{by}, {id}: {why}"));
            let (chance, new) = (&packed.agreed[0], packed.agreed.last().expect("the new one"));
            assert_ne!(new.server, "r1h1", "limits there would be chosen again");
            assert!(new.bound_s.expect("a bound") <= 0.4 && new.by.as_deref() == Some("dnc"));
            assert_eq!(chance.by, told.by);
            assert!(chance.bound_s.is_none_or(|bound| bound <= 0.06), "{chance:?}");
            let limits = |of: &Grant| of.stages.iter().map(|stage| stage.limits.clone()).collect::<Vec<_>>();
            assert_eq!((limits(chance), &chance.volume), (limits(&told), &told.volume));
            house.settle(id, form, &packed);
        }
    }
}

#[test]
fn packing_preserves_a_promise_of_a_stochastic_bound() {
    // The test packs workloads with shorter SLOs on its links until one is refused; its SLO holds throughout.
    let mut house = House::new();
    let form = by_chance("chance", Some("r1h1"), true);
    let agreement = admit(&house.cluster, &[], &form, 0, &policy("snc")).expect("the workload is admitted");
    house.settle(0, form, &agreement);
    let mut refused = None;
    for id in 1..12 {
        let form = by_chance(&format!("w{id}"), None, false);
        match pack(&house.cluster, &house.standing, &form, id, &policy("compactor"), &[HostId(0), HostId(1)])
        {
            Ok(packed) => {
                for agreed in &packed.agreed {
                    assert!(agreed.bound_s.expect("a bound") <= agreed.slo.latency_s, "{id}: {agreed:?}");
                }
                house.settle(id, form, &packed);
            }
            Err(why) => {
                refused = Some((id, why));
                break;
            }
        }
    }
    let (id, why) = refused.expect("a link has an end");
    assert!(id > 3, "{id}: {why}");
    assert!(house.standing.iter().any(|one| one.agreed.by.as_deref() == Some("snc")), "{:?}", house.standing);
    // Beside a workload without a model, no stochastic bound exists.
    let ask = Ask { client: 0, server: 0, millis: 50, share: 1, burst: 1, bytes: 1 };
    let packed = pack(
        &house.cluster,
        &house.standing,
        &ask.form("w", false),
        99,
        &policy("compactor"),
        &[HostId(0), HostId(1)],
    );
    assert!(matches!(&packed, Err(Rejected::Refused(why)) if why.contains("model")), "{packed:?}");
}

#[test]
fn promises_on_a_dead_link_do_not_block_others() {
    let mut house = House::new();
    for (id, client, server) in [(0, 0, 4), (1, 1, 2)] {
        let ask = Ask { client, server, millis: 100, share: 5, burst: 1, bytes: 1 };
        let form = ask.form(&format!("w{id}"), true);
        let agreement = admit(&house.cluster, &house.standing, &form, id, &policy("dnc")).expect("room");
        house.settle(id, form, &agreement);
    }
    let dead = house.cluster.fabric.resource("r1h1:ingress").expect("a link");
    house.cluster.capacities.set(dead, leeward_fabric::Load(0));
    // Across the links of the lost workload, and in a rack without it.
    for (id, client, closed) in [(2, 1, vec![]), (3, 0, vec![HostId(0), HostId(1), HostId(2)])] {
        let ask = Ask { client, server: 0, millis: 200, share: 2, burst: 1, bytes: 1 };
        let form = ask.form(&format!("w{id}"), false);
        let packed = pack(&house.cluster, &house.standing, &form, id, &policy("compactor"), &closed);
        match packed {
            Ok(packed) => {
                let new = packed.agreed.last().expect("the new one");
                assert!(new.bound_s.is_some_and(|bound| bound <= 0.2) && new.server != "r1h1", "{new:?}");
                assert_eq!(packed.agreed[0].stages[1].limits, house.standing[0].agreed.stages[1].limits);
            }
            // The links of the lost workload have no guaranteed capacity.
            Err(Rejected::Refused(why)) => assert!(id == 3 && why.contains("`w0`"), "{id}: {why}"),
            Err(other) => panic!("{other}"),
        }
    }
    let ask = Ask { client: 2, server: 1, millis: 200, share: 2, burst: 1, bytes: 1 };
    let admitted = admit(&house.cluster, &house.standing, &ask.form("w4", true), 4, &policy("dnc"));
    let admitted = admitted.expect("the workload does not use the link");
    assert!(admitted.agreed.last().is_some_and(|new| new.bound_s.is_some()));
}

#[test]
fn a_new_volume_leaves_priorities_outside_its_queues_unchanged() {
    let mut house = House::new();
    // The workload is alone in its rack and has the longest SLO. Without others it has the first priority.
    let ask = Ask { client: 0, server: 1, millis: 400, share: 5, burst: 1, bytes: 1 };
    let form = ask.form("apart", true);
    let agreement = admit(&house.cluster, &[], &form, 0, &policy("dnc")).expect("enough room");
    house.settle(0, form, &agreement);
    let ask = Ask { client: 3, server: 0, millis: 20, share: 5, burst: 1, bytes: 1 };
    let closed: Vec<HostId> = (0..3).map(HostId).collect();
    let packed =
        pack(&house.cluster, &house.standing, &ask.form("new", false), 1, &policy("compactor"), &closed);
    let packed = packed.expect("enough room");
    assert_eq!(packed.agreed[0], house.standing[0].agreed);
    assert!(packed.agreed[1].server.starts_with("r1"));
}

#[test]
fn a_cluster_without_priorities_promises_nothing() {
    let plain = cluster(&CLUSTER.replace("priorities: 4\n", ""));
    let ask = Ask { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    for agreement in [
        admit(&plain, &[], &ask.form("a", true), 0, &policy("dnc")),
        pack(&plain, &[], &ask.form("a", false), 0, &policy("compactor"), &[]),
    ] {
        let Err(Rejected::Refused(why)) = agreement else { panic!("{agreement:?}") };
        assert!(why.contains("`priorities`"), "{why}");
    }
}

#[test]
fn a_workload_outlives_one_it_depended_on() {
    let mut house = House::new();
    let ask = Ask { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    let first = ask.form("a", true);
    let agreement = admit(&house.cluster, &[], &first, 0, &policy("dnc")).expect("enough room");
    house.settle(0, first, &agreement);
    let mut second = ask.form("b", true);
    second.insert("depends_on".to_owned(), json!(["a"]));
    let agreement = admit(&house.cluster, &house.standing, &second, 1, &policy("dnc")).expect("enough room");
    house.settle(1, second.clone(), &agreement);
    house.standing.remove(0);
    assert!(admit(&house.cluster, &house.standing, &ask.form("c", true), 2, &policy("dnc")).is_ok());
    // A new workload may depend only on existing ones.
    let wrong = admit(&house.cluster, &[], &second, 3, &policy("dnc"));
    let Err(Rejected::Wrong(error)) = wrong else { panic!("{wrong:?}") };
    assert_eq!(error.field.as_deref(), Some("depends_on[0]"), "{error}");
}

#[test]
fn an_invalid_request_names_its_field() {
    let right = Ask { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    let with = |field: &str, value: Value| {
        let mut form = right.form("a", true);
        form.insert(field.to_owned(), value);
        form
    };
    let table = [
        ("name", json!("")),
        ("name", json!("a b")),
        ("trace", json!("/etc/passwd")),
        ("curves", json!("/etc/passwd")),
        ("model", json!("/etc/passwd")),
        ("priority", json!(0)),
        ("limits", json!({})),
        ("slo", Value::Null),
        ("server", Value::Null),
        ("server", json!("r9h9")),
        ("client", json!("r9h9")),
        ("slo.percentile", json!({ "percentile": 100, "latency": "1ms" })),
        ("slo.latency", json!({ "percentile": 99, "latency": 1 })),
        ("curves.storage", json!({ "storage": [] })),
        ("model[0].stage", json!([{ "stage": "disk", "step_s": 1.0, "states": [], "transitions": [] }])),
        ("model[0].states", json!([{ "stage": "storage", "step_s": 1.0, "states": [], "transitions": [] }])),
    ];
    let cluster = cluster(CLUSTER);
    check_rows(table, |(field, value)| {
        let form = with(field.split(['.', '[']).next().unwrap_or(field), value);
        let error = match check(&form, true) {
            Err(error) => error,
            Ok(()) => match admit(&cluster, &[], &form, 0, &policy("dnc")) {
                Err(Rejected::Wrong(error)) => error,
                other => return Err(format!("{form:?}: {other:?}")),
            },
        };
        equal(&error.field.as_deref(), &Some(field))?;
        if error.to_string().contains("root:") { Err(format!("{error}: a file was read")) } else { Ok(()) }
    });
    let wrong = |by: &str| admit(&cluster, &[], &right.form("a", true), 0, &policy(by));
    for by in ["dncc", "dnc:serach=false", "silo++"] {
        assert!(matches!(wrong(by), Err(Rejected::Policy(_))), "{by}: {:?}", wrong(by));
    }
    let wrong = pack(&cluster, &[], &right.form("a", false), 0, &policy("compact"), &[]);
    assert!(matches!(wrong, Err(Rejected::Policy(_))), "{wrong:?}");
}

#[test]
fn a_promise_on_a_dead_link_does_not_block_a_priority_change() {
    // The number of SLOs exceeds the priorities by one, so each arrival changes the order of the existing workloads.
    let mut house = House::new();
    let asks = [(0, 1, 100), (0, 1, 150), (0, 1, 200), (0, 1, 250), (3, 4, 120)];
    for (id, (client, server, millis)) in (0..).zip(asks) {
        let ask = Ask { client, server, millis, share: 2, burst: 1, bytes: 1 };
        let form = ask.form(&format!("w{id}"), true);
        let agreement = admit(&house.cluster, &house.standing, &form, id, &policy("dnc")).expect("room");
        house.settle(id, form, &agreement);
    }
    let come = |house: &House, (client, server, millis)| {
        let ask = Ask { client, server, millis, share: 2, burst: 1, bytes: 1 };
        admit(&house.cluster, &house.standing, &ask.form("new", true), 9, &policy("dnc"))
    };
    for link in ["r1h1:ingress", "r1h1:egress"] {
        let dead = house.cluster.fabric.resource(link).expect("a link");
        house.cluster.capacities.set(dead, leeward_fabric::Load(0));
    }
    for elsewhere in [(0, 2, 300), (0, 1, 110), (1, 5, 90), (5, 2, 170)] {
        let admitted = come(&house, elsewhere).unwrap_or_else(|why| panic!("{elsewhere:?}: {why}"));
        let bounded = |agreed: &Grant| agreed.bound_s.is_some_and(|bound| bound <= agreed.slo.latency_s);
        let kept: Vec<bool> = admitted.agreed.iter().map(bounded).collect();
        assert_eq!(kept, [true, true, true, true, false, true], "{elsewhere:?}");
    }
    for across in [(3, 4, 500), (4, 0, 500)] {
        let refused = come(&house, across);
        assert!(matches!(&refused, Err(Rejected::Refused(why)) if why.contains("new")), "{refused:?}");
    }
}
