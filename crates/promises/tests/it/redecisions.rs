//! Decisions about changed workloads, and plans of copies.

use leeward_agreements::{ActiveWorkload, Form, Rejected, admit};
use leeward_fabric::{Bytes, HostId};
use leeward_promises::{ChangeInput, Redecided, redecide};
use leeward_records::CopyPlan;
use leeward_registry::PolicySpec;
use leeward_testing::clusters::{VOLUMES, cluster};
use leeward_testing::workloads::form;
use serde_json::Value;

const GIB: Bytes = Bytes(1 << 30);

fn policy(text: &str) -> PolicySpec {
    text.parse().expect("a policy")
}

fn object(value: Value) -> Form {
    value.as_object().expect("an object").clone()
}

/// The active workloads after these were admitted at `r1h1`, with latencies in milliseconds and shares of the device.
fn active(workloads: &[(&str, u64, u64)]) -> Vec<ActiveWorkload> {
    let (cluster, mut active) = (cluster(VOLUMES), Vec::<ActiveWorkload>::new());
    for (id, &(name, millis, share)) in workloads.iter().enumerate() {
        let form = object(form(name, Some("r1h1"), millis, share));
        let agreement = admit(&cluster, &active, &form, id as u64, &policy("dnc")).expect("room");
        let forms = active.iter().map(|one| (one.id, one.form.clone())).chain([(id as u64, form.clone())]);
        let forms: Vec<(u64, Form)> = forms.collect();
        let agreed = forms.into_iter().zip(agreement.agreed);
        active = agreed.map(|((id, form), agreed)| ActiveWorkload { id, form, agreed }).collect();
    }
    active
}

/// A change of the last of the active workloads.
fn input(mut active: Vec<ActiveWorkload>, millis: u64, share: u64) -> ChangeInput {
    let current = active.pop().expect("a workload");
    let form = object(form(&current.agreed.workload, Some("r1h1:ssd"), millis, share));
    ChangeInput {
        cluster: cluster(VOLUMES),
        others: active,
        current,
        form,
        is_packed: false,
        admission: policy("dnc"),
        volumes: policy("compactor"),
        closed: Vec::new(),
        bytes: Some(GIB),
    }
}

/// Server and copy of a workload that does not fit at its server any more.
fn elsewhere(input: &ChangeInput) -> (Option<String>, Option<CopyPlan>) {
    match redecide(input).expect("a valid request") {
        Redecided::Elsewhere { place, copy, .. } => (place.map(|place| place.server), copy),
        Redecided::InPlace(agreement) => panic!("{agreement:?}"),
    }
}

#[test]
fn packed_workloads_keep_their_server_if_it_has_room() {
    for is_packed in [false, true] {
        let input = ChangeInput { is_packed, ..input(active(&[("a", 400, 10), ("b", 400, 10)]), 400, 20) };
        let Redecided::InPlace(agreement) = redecide(&input).expect("a valid request") else {
            panic!("the server has room")
        };
        let own = agreement.agreed.last().expect("the workload");
        assert_eq!((own.workload.as_str(), own.server.as_str(), agreement.agreed.len()), ("b", "r1h1", 2));
        assert!(own.bound_s.is_some_and(|bound| bound <= 0.4), "{own:?}");
    }
}

#[test]
fn a_volume_moves_to_an_open_server_only() {
    let full = || input(active(&[("large", 400, 60), ("grows", 400, 10)]), 400, 50);
    let (server, copy) = elsewhere(&full());
    let server = server.expect("another server has room");
    assert_ne!(server, "r1h1");
    assert!(copy.is_some_and(|copy| copy.guaranteed && copy.rate_bps.is_some_and(|rate| rate > 0)));
    let open = full().cluster.fabric.host(&server).expect("a host");
    let all_but =
        |kept: Option<HostId>| full().cluster.fabric.all_hosts().filter(|&host| Some(host) != kept).collect();
    let closed: Vec<HostId> = all_but(Some(open));
    assert_eq!(elsewhere(&ChangeInput { closed, ..full() }).0, Some(server));
    assert_eq!(elsewhere(&ChangeInput { closed: all_but(None), ..full() }), (None, None));
    let unknown = elsewhere(&ChangeInput { bytes: None, ..full() });
    assert!(unknown.0.is_some() && unknown.1.is_none(), "the size of the volume is unknown");
}

#[test]
fn a_copy_that_promises_leave_no_room_for_is_best_effort() {
    let input = input(active(&[("large", 400, 60), ("grows", 400, 10)]), 400, 50);
    let (_, copy) = elsewhere(&ChangeInput { bytes: Some(Bytes(u64::MAX)), ..input.clone() });
    let copy = copy.expect("a plan");
    assert!(copy.seconds.is_some_and(f64::is_finite), "{copy:?}");
    // The promises take all of the device that the copy would read.
    let mut crowded = input;
    for stage in &mut crowded.others[0].agreed.stages {
        stage.limits.iter_mut().filter(|_| stage.stage == "storage").for_each(|bucket| bucket.rate = 1.0);
    }
    let (server, copy) = elsewhere(&crowded);
    let Some(copy) = copy else { panic!("no plan for {server:?}") };
    assert_eq!((copy.guaranteed, copy.rate_bps, copy.seconds), (false, None, None), "{copy:?}");
    assert_eq!(copy.workloads, Vec::<Form>::new());
}

#[test]
fn an_invalid_form_is_an_error() {
    let mut wrong = input(active(&[("a", 400, 10)]), 400, 20);
    wrong.form.insert("slo".to_owned(), Value::Null);
    assert!(matches!(redecide(&wrong), Err(Rejected::Invalid(_))));
    let unknown = ChangeInput { admission: policy("nothing"), ..input(active(&[("a", 400, 10)]), 400, 20) };
    assert!(matches!(redecide(&unknown), Err(Rejected::Policy(_))));
}
