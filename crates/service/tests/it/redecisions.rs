//! Decisions about promised workloads whose requests have changed: the coordinator with artificial times.

use leeward_fabric::Bytes;
use leeward_records::{Change, DecisionRecord, Redecision, RedecisionOutcome, TraceSource};
use leeward_service::{
    CallError, ChangeWorkload, Completion, Coordinator, WhatIfError, WhatIfResult, WorkloadState,
};
use leeward_testing::workloads::form;
use serde_json::{Value, json};

use crate::support::Numbers;
use crate::workloads::{SECOND, coordinator, place_and_run_jobs, placed_record, placement, run_jobs};

const GIB: Bytes = Bytes(1 << 30);

/// Grants the SLO of a workload at `r1h1`.
fn promise(coordinator: &mut Coordinator<Numbers>, name: &str, millis: u64, share: u64) {
    let form = form(name, Some("r1h1"), millis, share);
    placed_record(place_and_run_jobs(coordinator, placement(&form, None), 0));
}

fn change(form: &Value) -> ChangeWorkload {
    let trace = TraceSource { sha256: "0f".repeat(32), requests: Some(9), seconds: Some(3.5) };
    let workload = form.as_object().expect("an object").clone();
    ChangeWorkload { workload, trace: Some(trace), bytes: Some(GIB) }
}

/// The reply to a changed workload, after all jobs.
fn reply(
    coordinator: &mut Coordinator<Numbers>,
    form: &Value,
    is_dry_run: bool,
) -> Result<WhatIfResult, WhatIfError> {
    coordinator.change_workload(SECOND, change(form), is_dry_run, 7);
    run_jobs(coordinator);
    match coordinator.completions().next() {
        Some(Completion::WhatIf(7, Ok(result))) => Ok(result),
        Some(Completion::WhatIf(7, Err(CallError::Failed(error)))) => Err(error),
        _ => panic!("no reply"),
    }
}

fn redecided(coordinator: &mut Coordinator<Numbers>, form: &Value) -> (DecisionRecord, Redecision) {
    let result = reply(coordinator, form, false).expect("a decision");
    assert!(result.is_stored && result.refusal.is_none());
    let redecision = result.record.details.redecision.clone().expect("a redecision");
    (DecisionRecord::clone(&result.record), redecision)
}

fn workload(coordinator: &mut Coordinator<Numbers>, name: &str) -> WorkloadState {
    coordinator.workload(SECOND, name).expect("a workload")
}

/// Priority of a workload at its first stage, and the number of the version of its promise.
fn priority(coordinator: &mut Coordinator<Numbers>, name: &str) -> (u32, u64) {
    let details = &workload(coordinator, name).record.details;
    (details.promise.as_ref().map_or(u32::MAX, |promise| promise.stages[0].priority), details.promise_version)
}

#[test]
fn a_server_that_keeps_the_slo_gives_the_new_limits_or_priorities_at_once() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "fast", 40, 10);
    promise(&mut coordinator, "slow", 200, 10);
    let before = coordinator.promises_version().number;
    assert_eq!(priority(&mut coordinator, "slow").0, 1);
    let (record, same) = redecided(&mut coordinator, &form("slow", None, 200, 10));
    assert_eq!((same.outcome, same.reason, same.copy), (RedecisionOutcome::Keeps, None, None));
    assert_eq!(same.trace.map(|trace| trace.sha256), Some("0f".repeat(32)));
    assert_eq!(coordinator.promises_version().number, before, "enforcers have nothing to apply");
    assert_eq!(record.details.hosts, ["r1h1"]);
    coordinator.changes().for_each(drop);
    let fast = priority(&mut coordinator, "fast");
    let (record, limits) = redecided(&mut coordinator, &form("slow", None, 200, 20));
    assert_eq!(limits.outcome, RedecisionOutcome::Limits);
    assert_eq!(coordinator.promises_version().number, before + 1);
    assert_eq!(record.details.promise_version, before + 1);
    assert_eq!(priority(&mut coordinator, "fast"), fast, "its priorities and limits stay");
    let changes: Vec<Change> = coordinator.changes().collect();
    let moved = changes.iter().find_map(|change| match change {
        Change::Moved(stored, entries) if stored.id == record.id => Some((stored.clone(), entries.len())),
        _ => None,
    });
    assert_eq!(moved.map(|(stored, entries)| (*stored == record, entries)), Some((true, 3)), "{changes:?}");
    // The released reservations are those of the earlier curves: the same change again changes nothing.
    let links = coordinator.snapshot().links;
    assert_eq!(redecided(&mut coordinator, &form("slow", None, 200, 20)).1.outcome, RedecisionOutcome::Keeps);
    assert_eq!(coordinator.snapshot().links, links);
    let (_, first) = redecided(&mut coordinator, &form("slow", None, 20, 20));
    assert_eq!(first.outcome, RedecisionOutcome::Priority);
    assert_eq!((priority(&mut coordinator, "slow").0, priority(&mut coordinator, "fast").0), (0, 1));
    assert_eq!(priority(&mut coordinator, "fast").1, coordinator.promises_version().number);
}

#[test]
fn a_server_without_room_keeps_the_old_promise_and_names_another_with_a_copy_that_is_admitted() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "large", 400, 60);
    promise(&mut coordinator, "grows", 400, 10);
    let (before, version) = (workload(&mut coordinator, "grows"), coordinator.promises_version());
    let links = coordinator.snapshot().links;
    let (record, redecision) = redecided(&mut coordinator, &form("grows", None, 400, 50));
    assert_eq!(redecision.outcome, RedecisionOutcome::Move, "{redecision:?}");
    let server = redecision.server.expect("a server");
    assert!(server != "r1h1" && redecision.reason.is_some_and(|reason| !reason.is_empty()));
    assert!(redecision.bound_s.is_some_and(|bound| bound <= 0.4));
    assert_eq!(record.details.promise, before.record.details.promise, "the old limits protect all others");
    assert_eq!((coordinator.promises_version(), coordinator.snapshot().links), (version, links));
    let copy = redecision.copy.expect("the size of the volume is known");
    assert_eq!((copy.from.as_str(), copy.to.clone()), ("r1h1:ssd", format!("{server}:ssd")));
    assert_eq!(copy.bytes, GIB);
    let (rate, seconds) = (copy.rate_bps.expect("a rate"), copy.seconds.expect("a time"));
    assert!(rate > 0 && (seconds - 8.0 * GIB.0 as f64 / rate as f64).abs() < 0.01 * seconds);
    assert!(copy.guaranteed && copy.workloads.len() == 2, "{copy:?}");
    // The plan holds what it says: the service admits the workloads of the copy beside all promises.
    for workload in &copy.workloads {
        placed_record(place_and_run_jobs(
            &mut coordinator,
            placement(&Value::Object(workload.clone()), None),
            0,
        ));
    }
    for name in ["large", "grows", "grows.copy", "grows.copy-writes"] {
        let promise = workload(&mut coordinator, name).record.details.promise.clone().expect("a promise");
        assert!(promise.bound_s.is_some_and(|bound| bound <= promise.slo.latency_s), "{promise:?}");
    }
    assert!(priority(&mut coordinator, "grows").0 < priority(&mut coordinator, "grows.copy").0);
    // The volume has moved. Enforcers at both servers have a new version.
    let moved = form("grows", Some(&server), 400, 50);
    let (record, redecision) = redecided(&mut coordinator, &moved);
    assert_eq!(redecision.outcome, RedecisionOutcome::Moved);
    assert_eq!(record.details.hosts, [server.as_str()]);
    assert_eq!(record.details.promise_version, coordinator.promises_version().number);
    assert_eq!(record.id, before.record.id, "the decision is the same");
}

#[test]
fn no_server_and_a_dry_run_change_no_promise() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "a", 50, 10);
    coordinator.changes().for_each(drop);
    let (before, version) = (workload(&mut coordinator, "a").record, coordinator.promises_version());
    let would = reply(&mut coordinator, &form("a", None, 50, 20), true).expect("a decision");
    let outcome = would.record.details.redecision.as_ref().map(|redecision| redecision.outcome);
    assert_eq!((outcome, would.is_stored), (Some(RedecisionOutcome::Limits), false));
    assert_ne!(would.record.details.promise, before.details.promise);
    assert_eq!((coordinator.changes().count(), workload(&mut coordinator, "a").record), (0, before.clone()));
    let (record, redecision) = redecided(&mut coordinator, &form("a", None, 1, 20));
    assert_eq!((redecision.outcome, redecision.copy), (RedecisionOutcome::Nowhere, None));
    assert_eq!(record.details.promise, before.details.promise);
    assert_eq!(record.details.spec, before.details.spec, "a later decision begins with the old curves");
    let changes: Vec<Change> = coordinator.changes().collect();
    assert!(matches!(changes.as_slice(), [Change::Compared(stored)] if **stored == record), "{changes:?}");
    assert_eq!(coordinator.promises_version(), version);
}

#[test]
fn invalid_changes_are_errors_and_a_release_meanwhile_begins_the_decision_again() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let unknown = reply(&mut coordinator, &form("b", None, 50, 10), false);
    assert_eq!(unknown.err(), Some(WhatIfError::NoWorkload("b".to_owned())));
    promise(&mut coordinator, "a", 100, 10);
    promise(&mut coordinator, "b", 100, 10);
    let mut wrong = form("b", None, 50, 10);
    wrong["slo"]["percentile"] = json!(100);
    let error = reply(&mut coordinator, &wrong, false).err();
    assert!(matches!(&error, Some(WhatIfError::Invalid(Some(_), _))), "{error:?}");
    coordinator.change_workload(SECOND, change(&form("b", None, 100, 20)), false, 7);
    let job = coordinator.jobs().next().expect("an analysis starts");
    let first = workload(&mut coordinator, "a").record.id;
    coordinator.release(SECOND, first).expect("a decision");
    coordinator.finish_job(SECOND, job.run());
    assert!(coordinator.completions().next().is_none(), "the basis of the analysis has changed");
    run_jobs(&mut coordinator);
    let result = match coordinator.completions().next() {
        Some(Completion::WhatIf(7, Ok(result))) => result,
        _ => panic!("no reply"),
    };
    assert!(result.is_stored);
    // The workload ends while its analysis runs.
    coordinator.change_workload(SECOND, change(&form("b", None, 100, 30)), false, 8);
    let job = coordinator.jobs().next().expect("an analysis starts");
    coordinator.release(SECOND, result.record.id).expect("a decision");
    coordinator.finish_job(SECOND, job.run());
    let ended = coordinator.completions().next();
    let expected = CallError::Failed(WhatIfError::NoWorkload("b".to_owned()));
    assert!(matches!(ended, Some(Completion::WhatIf(8, Err(error))) if error == expected));
}
