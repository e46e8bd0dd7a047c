//! Admission and packing of workloads that arrive one by one beside the active ones.

use std::collections::BTreeMap;

use leeward_agreements::{ActiveWorkload, Agreement, Form, Grant, Rejected, admit, check, pack};
use leeward_fabric::{Cluster, HostId, Nanos, ResourceId};
use leeward_ledger::{Ledger, Scratch, Transaction};
use leeward_registry::PolicySpec;
use leeward_slo::bound::{Bounds, Method};
use leeward_slo::file::Workloads;
use leeward_testing::clusters::{RACKS_2X3_WITH_SSDS, cluster, ledger};
use leeward_testing::rows::{check_rows, equal};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A requested workload.
#[derive(Clone, Debug)]
struct Requested {
    client: u32,
    server: u32,
    millis: u64,
    share: u32,
    burst: u64,
    bytes: u64,
}

fn requested() -> impl Strategy<Value = Requested> {
    let slo = prop::sample::select(vec![20_u64, 40, 60, 100, 400]);
    (0..6_u32, 0..6_u32, slo, 1..25_u32, 1..12_u64, 1..40_u64).prop_map(
        |(client, server, millis, share, burst, bytes)| Requested {
            client,
            server,
            millis,
            share,
            burst,
            bytes,
        },
    )
}

impl Requested {
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
struct Fixture {
    cluster: Cluster,
    ledger: Ledger,
    active: Vec<ActiveWorkload>,
    entries: BTreeMap<u64, Vec<leeward_ledger::EntryId>>,
}

impl Fixture {
    fn new() -> Fixture {
        let cluster = cluster(RACKS_2X3_WITH_SSDS);
        let ledger = ledger(&cluster);
        Fixture { cluster, ledger, active: Vec::new(), entries: BTreeMap::new() }
    }

    /// Activates an agreement: replaces all entries in the ledger, and expects the versions that the agreement depends
    /// on.
    fn settle(&mut self, id: u64, form: Form, agreement: &Agreement) {
        let mut scratch = Scratch::default();
        let view = self.ledger.view(Nanos(0), &mut scratch);
        let expect = agreement.read.iter().map(|&queue| (queue, view.version(queue))).collect();
        let release = self.entries.values().flatten().copied().collect();
        let add = agreement.entries.iter().flatten().cloned().collect();
        let change = Transaction { add, release, expect, ..Transaction::default() };
        let mut ids = self.ledger.commit(change, Nanos(0)).expect("no change meanwhile").into_iter();
        let agreed = agreement.agreed.last().expect("the new one").clone();
        self.active.push(ActiveWorkload { id, form, agreed });
        for ((active, agreed), entries) in
            self.active.iter_mut().zip(&agreement.agreed).zip(&agreement.entries)
        {
            assert_eq!(active.agreed.workload, agreed.workload);
            active.agreed = agreed.clone();
            self.entries.insert(active.id, ids.by_ref().take(entries.len()).collect());
        }
    }

    /// Checks three properties. Every bound keeps its SLO. A file of all active workloads gives the same
    /// bounds. The reservation on each link equals the sum of its limits.
    fn check(&self) -> Result<(), TestCaseError> {
        let forms: Vec<Value> = self.active.iter().map(form_with_grant).collect();
        let file = json!({ "workloads": forms, "levels": 3 }).to_string();
        let open = |name: &str| Err(leeward_fabric::input::InputError::new(name, "no file"));
        let read = Workloads::from_text("w", &file, &self.cluster, &Default::default(), &open, None);
        let read = read.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let placed = read.system(&self.cluster).expect("the cluster has servers");
        let mut bounds = Bounds::new(&placed.system, read.bounds).expect("a valid system");
        let mut reserved = BTreeMap::<ResourceId, f64>::new();
        for (at, (active, promise)) in self.active.iter().zip(&placed.system.promises).enumerate() {
            let Grant { bound_s, slo, .. } = &active.agreed;
            let granted = bound_s.expect("a bound");
            prop_assert!(granted <= slo.latency_s, "{active:?}");
            let bound = bounds.bound(at, Method::Dnc).expect("a bound").seconds;
            prop_assert!((bound - granted).abs() <= 1e-6 * granted, "{bound} is not {granted}: {active:?}");
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
            let difference = (found - work * unit).abs();
            prop_assert!(
                difference <= 1.0 + 8.0 * self.active.len() as f64,
                "{found} is not {}",
                work * unit
            );
            prop_assert!(found <= capacity, "{found} of {capacity}");
        }
        Ok(())
    }
}

/// Form of a workload in a file, with its promise.
fn form_with_grant(active: &ActiveWorkload) -> Value {
    let mut form = Value::Object(active.form.clone());
    form["server"] = active.agreed.volume.clone().into();
    for stage in &active.agreed.stages {
        form["priority"][&stage.stage] = stage.priority.into();
        if stage.own_curve || stage.queues.is_empty() {
            continue;
        }
        let bucket = |bucket: &leeward_models::BucketRecord| match stage.stage.as_str() {
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
        requests in prop::collection::vec((requested(), any::<bool>()), 1..7),
    ) {
        let mut fixture = Fixture::new();
        let down = HostId(0);
        for (id, (requested, placed)) in (0..).zip(requests) {
            let form = requested.form(&format!("w{id}"), placed);
            prop_assert_eq!(check(&form, placed), Ok(()));
            let (cluster, active) = (&fixture.cluster, &fixture.active);
            let agreement = match placed {
                true => admit(cluster, active, &form, id, &policy("dnc")),
                false => pack(cluster, active, &form, id, &policy("compactor"), &[down]),
            };
            match agreement {
                Ok(agreement) => {
                    let own = agreement.agreed.last().expect("the new one");
                    prop_assert!(placed || own.server != "r0h0", "host r0h0 is closed");
                    for (before, after) in fixture.active.iter().zip(&agreement.agreed) {
                        prop_assert_eq!(&before.agreed.volume, &after.volume, "volumes stay");
                        if after.server != own.server || placed {
                            let limits = |of: &Grant| -> Vec<_> {
                                of.stages.iter().map(|stage| stage.limits.clone()).collect()
                            };
                            prop_assert_eq!(limits(&before.agreed), limits(after), "others keep limits");
                        }
                    }
                    fixture.settle(id, form, &agreement);
                    fixture.check()?;
                }
                Err(Rejected::Infeasible(why)) => prop_assert!(why.len() > 10, "{}", why),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}

#[test]
fn a_refusal_names_the_workload_and_its_slowest_stage() {
    let fixture = Fixture::new();
    let requested = Requested { client: 0, server: 1, millis: 5, share: 10, burst: 30, bytes: 1 };
    let refused = admit(&fixture.cluster, &[], &requested.form("a", true), 0, &policy("dnc"));
    let Err(Rejected::Infeasible(why)) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("a: a bound of ") && why.ends_with(" at storage (r0h1:ssd)"), "{why}");
    let refused = pack(&fixture.cluster, &[], &requested.form("a", false), 0, &policy("compactor"), &[]);
    let Err(Rejected::Infeasible(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("none of 6 servers") || why.contains("on an empty server"), "{why}");
}

/// Earlier versions accepted numbers in quotes from clients, and stored them.
#[test]
fn a_stored_form_with_a_number_in_quotes_does_not_block_admission() {
    let mut fixture = Fixture::new();
    let requested = Requested { client: 0, server: 1, millis: 100, share: 5, burst: 1, bytes: 1 };
    let form = requested.form("a", true);
    let agreement = admit(&fixture.cluster, &[], &form, 0, &policy("dnc")).expect("the workload is admitted");
    let mut stored = form;
    stored["slo"]["percentile"] = "99.9".into();
    fixture.settle(0, stored, &agreement);
    let next = requested.form("b", true);
    assert!(admit(&fixture.cluster, &fixture.active, &next, 1, &policy("dnc")).is_ok());
    let mut quoted = next;
    quoted["slo"]["percentile"] = "99.9".into();
    let refused = admit(&fixture.cluster, &fixture.active, &quoted, 1, &policy("dnc"));
    assert!(matches!(refused, Err(Rejected::Invalid(_))), "a new form takes numbers without quotes only");
}

/// A workload with random requests. The curve passes bursts. If they are `large`, the largest burst takes far longer
/// than the SLO, though hardly any request does.
fn stochastic_form(name: &str, server: Option<&str>, large: bool) -> Form {
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
    // The promise is on a path that all racks share. A stochastic bound admitted it, or no bound did.
    for by in ["snc", "none"] {
        let mut fixture = Fixture::new();
        let form = stochastic_form("chance", Some("r1h1"), true);
        let agreement =
            admit(&fixture.cluster, &[], &form, 0, &policy(by)).expect("the workload is admitted");
        let granted = agreement.agreed[0].clone();
        assert_eq!(granted.by.as_deref(), Some(by).filter(|by| *by != "none"), "{granted:?}");
        fixture.settle(0, form, &agreement);
        let worst =
            admit(&fixture.cluster, &[], &stochastic_form("chance", Some("r1h1"), true), 0, &policy("dnc"));
        assert!(matches!(worst, Err(Rejected::Infeasible(_))), "its worst case is within its SLO: {worst:?}");
        for (id, client) in [(1, 1), (2, 3), (3, 0)] {
            let requested = Requested { client, server: 0, millis: 400, share: 2, burst: 1, bytes: 1 };
            let form = requested.form(&format!("w{id}"), false);
            let packed = pack(&fixture.cluster, &fixture.active, &form, id, &policy("compactor"), &[]);
            let packed = packed.unwrap_or_else(|why| panic!("{by}, {id}: {why}"));
            let (chance, new) = (&packed.agreed[0], packed.agreed.last().expect("the new one"));
            assert_ne!(new.server, "r1h1", "limits there would be chosen again");
            assert!(new.bound_s.expect("a bound") <= 0.4 && new.by.as_deref() == Some("dnc"));
            assert_eq!(chance.by, granted.by);
            assert!(chance.bound_s.is_none_or(|bound| bound <= 0.06), "{chance:?}");
            let limits = |of: &Grant| of.stages.iter().map(|stage| stage.limits.clone()).collect::<Vec<_>>();
            assert_eq!((limits(chance), &chance.volume), (limits(&granted), &granted.volume));
            fixture.settle(id, form, &packed);
        }
    }
}

#[test]
fn packing_preserves_a_promise_of_a_stochastic_bound() {
    // The test packs workloads with shorter SLOs on the links of the stochastic promise until one is refused. The
    // promised SLO holds throughout.
    let mut fixture = Fixture::new();
    let form = stochastic_form("chance", Some("r1h1"), true);
    let agreement = admit(&fixture.cluster, &[], &form, 0, &policy("snc")).expect("the workload is admitted");
    fixture.settle(0, form, &agreement);
    let mut refused = None;
    for id in 1..12 {
        let form = stochastic_form(&format!("w{id}"), None, false);
        match pack(
            &fixture.cluster,
            &fixture.active,
            &form,
            id,
            &policy("compactor"),
            &[HostId(0), HostId(1)],
        ) {
            Ok(packed) => {
                for agreed in &packed.agreed {
                    assert!(agreed.bound_s.expect("a bound") <= agreed.slo.latency_s, "{id}: {agreed:?}");
                }
                fixture.settle(id, form, &packed);
            }
            Err(why) => {
                refused = Some((id, why));
                break;
            }
        }
    }
    let (id, why) = refused.expect("a link has an end");
    assert!(id > 3, "{id}: {why}");
    assert!(
        fixture.active.iter().any(|workload| workload.agreed.by.as_deref() == Some("snc")),
        "{:?}",
        fixture.active
    );
    // Beside a workload without a model, no stochastic bound exists. There must be room for its worst case.
    fixture.active.pop();
    let requested = Requested { client: 0, server: 0, millis: 50, share: 1, burst: 1, bytes: 1 };
    let packed = pack(
        &fixture.cluster,
        &fixture.active,
        &requested.form("w", false),
        99,
        &policy("compactor"),
        &[HostId(0), HostId(1)],
    );
    assert!(matches!(&packed, Err(Rejected::Infeasible(why)) if why.contains("model")), "{packed:?}");
}

#[test]
fn promises_on_a_dead_link_do_not_block_others() {
    let mut fixture = Fixture::new();
    for (id, client, server) in [(0, 0, 4), (1, 1, 2)] {
        let requested = Requested { client, server, millis: 100, share: 5, burst: 1, bytes: 1 };
        let form = requested.form(&format!("w{id}"), true);
        let agreement = admit(&fixture.cluster, &fixture.active, &form, id, &policy("dnc")).expect("room");
        fixture.settle(id, form, &agreement);
    }
    let dead = fixture.cluster.fabric.resource("r1h1:ingress").expect("a link");
    fixture.cluster.capacities.set(dead, leeward_fabric::Load(0));
    // Workload 2 may stay in its own rack. Workload 3 must cross links of the lost workload, `w0`.
    for (id, client, closed) in [(2, 1, vec![]), (3, 0, vec![HostId(0), HostId(1), HostId(2)])] {
        let requested = Requested { client, server: 0, millis: 200, share: 2, burst: 1, bytes: 1 };
        let form = requested.form(&format!("w{id}"), false);
        let packed = pack(&fixture.cluster, &fixture.active, &form, id, &policy("compactor"), &closed);
        match packed {
            Ok(packed) => {
                let new = packed.agreed.last().expect("the new one");
                assert!(new.bound_s.is_some_and(|bound| bound <= 0.2) && new.server != "r1h1", "{new:?}");
                assert_eq!(packed.agreed[0].stages[1].limits, fixture.active[0].agreed.stages[1].limits);
            }
            // The links of the lost workload have no guaranteed capacity.
            Err(Rejected::Infeasible(why)) => assert!(id == 3 && why.contains("`w0`"), "{id}: {why}"),
            Err(other) => panic!("{other}"),
        }
    }
    let requested = Requested { client: 2, server: 1, millis: 200, share: 2, burst: 1, bytes: 1 };
    let admitted = admit(&fixture.cluster, &fixture.active, &requested.form("w4", true), 4, &policy("dnc"));
    let admitted = admitted.expect("the workload does not use the link");
    assert!(admitted.agreed.last().is_some_and(|new| new.bound_s.is_some()));
}

#[test]
fn a_new_volume_leaves_priorities_outside_its_queues_unchanged() {
    let mut fixture = Fixture::new();
    // The workload is alone in its rack and has the longest SLO. Without other workloads it has the first priority.
    let requested = Requested { client: 0, server: 1, millis: 400, share: 5, burst: 1, bytes: 1 };
    let form = requested.form("apart", true);
    let agreement = admit(&fixture.cluster, &[], &form, 0, &policy("dnc")).expect("enough room");
    fixture.settle(0, form, &agreement);
    let requested = Requested { client: 3, server: 0, millis: 20, share: 5, burst: 1, bytes: 1 };
    let closed: Vec<HostId> = (0..3).map(HostId).collect();
    let packed = pack(
        &fixture.cluster,
        &fixture.active,
        &requested.form("new", false),
        1,
        &policy("compactor"),
        &closed,
    );
    let packed = packed.expect("enough room");
    assert_eq!(packed.agreed[0], fixture.active[0].agreed);
    assert!(packed.agreed[1].server.starts_with("r1"));
}

#[test]
fn a_cluster_without_priorities_promises_nothing() {
    let plain = cluster(&RACKS_2X3_WITH_SSDS.replace("priorities: 4\n", ""));
    let requested = Requested { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    for agreement in [
        admit(&plain, &[], &requested.form("a", true), 0, &policy("dnc")),
        pack(&plain, &[], &requested.form("a", false), 0, &policy("compactor"), &[]),
    ] {
        let Err(Rejected::Infeasible(why)) = agreement else { panic!("{agreement:?}") };
        assert!(why.contains("`priorities`"), "{why}");
    }
}

#[test]
fn a_workload_outlives_one_it_depended_on() {
    let mut fixture = Fixture::new();
    let requested = Requested { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    let first = requested.form("a", true);
    let agreement = admit(&fixture.cluster, &[], &first, 0, &policy("dnc")).expect("enough room");
    fixture.settle(0, first, &agreement);
    let mut second = requested.form("b", true);
    second.insert("depends_on".to_owned(), json!(["a"]));
    let agreement =
        admit(&fixture.cluster, &fixture.active, &second, 1, &policy("dnc")).expect("enough room");
    fixture.settle(1, second.clone(), &agreement);
    fixture.active.remove(0);
    assert!(admit(&fixture.cluster, &fixture.active, &requested.form("c", true), 2, &policy("dnc")).is_ok());
    // A new workload may depend only on existing ones.
    let wrong = admit(&fixture.cluster, &[], &second, 3, &policy("dnc"));
    let Err(Rejected::Invalid(error)) = wrong else { panic!("{wrong:?}") };
    assert_eq!(error.field.as_deref(), Some("depends_on[0]"), "{error}");
}

#[test]
fn a_promise_states_what_its_bound_assumes_of_the_enforcer() {
    let cluster = cluster(RACKS_2X3_WITH_SSDS);
    let requested = Requested { client: 0, server: 5, millis: 400, share: 2, burst: 2, bytes: 1 };
    let form = |name: &str, more: Value| {
        let mut form = requested.form(name, true);
        form.extend(more.as_object().cloned().unwrap_or_default());
        form
    };
    let shown = |agreement: &Agreement| -> Vec<Value> {
        let storage = agreement.agreed.iter().map(|grant| &grant.stages[1]);
        storage.map(|stage| json!([stage.over, stage.outstanding])).collect()
    };
    let admitted = |active: &[ActiveWorkload], form: &Form| {
        check(form, true).expect("a valid form");
        admit(&cluster, active, form, 9, &policy("dnc")).expect("room")
    };
    let plain = form("plain", json!({}));
    let first = admitted(&[], &plain);
    assert_eq!(shown(&first), [json!([null, null])]);
    assert!(!serde_json::to_string(&first.agreed).expect("JSON").contains("outstanding"));
    // The device has as many requests at once as its workloads say, which holds for all of them.
    let active = [ActiveWorkload { id: 1, form: plain, agreed: first.agreed[0].clone() }];
    let stated = form("stated", json!({ "over": { "storage": "demoted" }, "outstanding": 4 }));
    let second = admitted(&active, &stated);
    assert_eq!(shown(&second), [json!([null, 4]), json!(["demoted", 4])]);
    let networks = second.agreed.iter().flat_map(|grant| [&grant.stages[0], &grant.stages[2]]);
    assert!(networks.clone().all(|stage| stage.over.is_none() && stage.outstanding.is_none()));
    assert_eq!(shown(&admitted(&[], &form("held", json!({ "over": "held" })))), [json!(["held", null])]);
    for over in [json!("demoted"), json!({ "network-in": "demoted" }), json!(7)] {
        let error = check(&form("invalid", json!({ "over": over })), true).expect_err("an error").to_string();
        assert!(error.contains("over: expected held, or a handling at storage"), "{error}");
    }
}

#[test]
fn an_invalid_request_names_its_field() {
    let valid = Requested { client: 0, server: 1, millis: 100, share: 1, burst: 1, bytes: 1 };
    let with = |field: &str, value: Value| {
        let mut form = valid.form("a", true);
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
    let cluster = cluster(RACKS_2X3_WITH_SSDS);
    check_rows(table, |(field, value)| {
        let form = with(field.split(['.', '[']).next().unwrap_or(field), value);
        let error = match check(&form, true) {
            Err(error) => error,
            Ok(()) => match admit(&cluster, &[], &form, 0, &policy("dnc")) {
                Err(Rejected::Invalid(error)) => error,
                other => return Err(format!("{form:?}: {other:?}")),
            },
        };
        equal(&error.field.as_deref(), &Some(field))?;
        if error.to_string().contains("root:") { Err(format!("{error}: a file was read")) } else { Ok(()) }
    });
    let wrong = |by: &str| admit(&cluster, &[], &valid.form("a", true), 0, &policy(by));
    for by in ["dncc", "dnc:serach=false", "silo++"] {
        assert!(matches!(wrong(by), Err(Rejected::Policy(_))), "{by}: {:?}", wrong(by));
    }
    let wrong = pack(&cluster, &[], &valid.form("a", false), 0, &policy("compact"), &[]);
    assert!(matches!(wrong, Err(Rejected::Policy(_))), "{wrong:?}");
}

#[test]
fn a_promise_on_a_dead_link_does_not_block_a_priority_change() {
    // The number of SLOs exceeds the priorities by one, so each arrival changes the order of the existing workloads.
    let mut fixture = Fixture::new();
    let requests = [(0, 1, 100), (0, 1, 150), (0, 1, 200), (0, 1, 250), (3, 4, 120)];
    for (id, (client, server, millis)) in (0..).zip(requests) {
        let requested = Requested { client, server, millis, share: 2, burst: 1, bytes: 1 };
        let form = requested.form(&format!("w{id}"), true);
        let agreement = admit(&fixture.cluster, &fixture.active, &form, id, &policy("dnc")).expect("room");
        fixture.settle(id, form, &agreement);
    }
    let admit_new = |fixture: &Fixture, (client, server, millis)| {
        let requested = Requested { client, server, millis, share: 2, burst: 1, bytes: 1 };
        admit(&fixture.cluster, &fixture.active, &requested.form("new", true), 9, &policy("dnc"))
    };
    for link in ["r1h1:ingress", "r1h1:egress"] {
        let dead = fixture.cluster.fabric.resource(link).expect("a link");
        fixture.cluster.capacities.set(dead, leeward_fabric::Load(0));
    }
    for elsewhere in [(0, 2, 300), (0, 1, 110), (1, 5, 90), (5, 2, 170)] {
        let admitted = admit_new(&fixture, elsewhere).unwrap_or_else(|why| panic!("{elsewhere:?}: {why}"));
        let bounded = |agreed: &Grant| agreed.bound_s.is_some_and(|bound| bound <= agreed.slo.latency_s);
        let kept: Vec<bool> = admitted.agreed.iter().map(bounded).collect();
        assert_eq!(kept, [true, true, true, true, false, true], "{elsewhere:?}");
    }
    for across in [(3, 4, 500), (4, 0, 500)] {
        let refused = admit_new(&fixture, across);
        assert!(matches!(&refused, Err(Rejected::Infeasible(why)) if why.contains("new")), "{refused:?}");
    }
}
