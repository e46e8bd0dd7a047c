//! Telemetry over a restart: from one coordinator to the next, and through a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use leeward_engine::{Engine, Policies};
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{LedgerSettings, Sample};
use leeward_placement::Explain;
use leeward_service::{
    Coordinator, DeviceState, HostReport, HostState, KeptTelemetry, Limits, LinkState, NetworkSnapshot,
    ReadTelemetry, Reading, Report, TelemetryState,
};
use leeward_telemetry::TelemetryFile;
use leeward_testing::clusters::{cluster, ledger};
use proptest::prelude::*;

use crate::support::{Numbers, labels, policies, samples};

const CLUSTER: &str = "racks: 3\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2\npriorities: 8\n\
                       devices: [{name: ssd, read: 500MB/s, write: 400MB/s, capacity: 1TiB}]\n";
const SECOND: u64 = Nanos::SECOND.0;

fn coordinator(cluster: &Cluster) -> Coordinator<Numbers> {
    let engine = Engine::new(ledger(cluster), policies(""), 7, Explain::Top(8));
    Coordinator::new(engine, labels(), Limits::default())
}

/// A report of one host in the interval that ends at `second`.
#[derive(Clone, Debug)]
struct HostSays {
    host: u32,
    load: i64,
    busy: i64,
    speed: Option<i64>,
    state: (Option<bool>, Option<(u64, Option<u64>)>),
}

fn says() -> impl Strategy<Value = HostSays> {
    let stored = (0_u64..1 << 40, prop::option::of(0_u64..1 << 41));
    let state = (prop::option::of(any::<bool>()), prop::option::of(stored));
    let speed = prop::option::of(1_i64..2_000_000_000);
    (0_u32..6, 0_i64..1_000_000_000, 0_i64..1_000_000_000, speed, state)
        .prop_map(|(host, load, busy, speed, state)| HostSays { host, load, busy, speed, state })
}

fn report(coordinator: &mut Coordinator<Numbers>, second: u64, says: &HostSays) {
    let fabric = coordinator.fabric().clone();
    let host = HostId(says.host);
    let window = (Nanos((second - 1) * SECOND), Nanos(second * SECOND));
    let sample = |resource: ResourceId, load| Sample { resource, window, load: Load(load), guaranteed: None };
    let links: Vec<ResourceId> = [fabric.ingress(host), fabric.egress(host)].into_iter().flatten().collect();
    let device = fabric.device(host, 0).expect("each host has a device");
    let reading = Reading { speed: says.speed.map(Load), ..Reading::default() };
    let (draining, stored) = says.state;
    let (stored, storage) =
        (stored.map(|(stored, _)| Bytes(stored)), stored.and_then(|(_, storage)| storage));
    let report = Report {
        window,
        hosts: vec![HostReport { host, up: None, draining, stored, storage: storage.map(Bytes) }],
        loads: links.iter().map(|&link| sample(link, says.load)).collect(),
        devices: vec![sample(device, says.busy)],
        readings: links.iter().map(|&link| (link, reading)).collect(),
        ..Report::default()
    };
    // An older report of the same interval is stale.
    let _ = coordinator.report(Nanos(second * SECOND), report);
}

/// The network that readers see.
fn shown(
    coordinator: &mut Coordinator<Numbers>,
    now: Nanos,
) -> (Vec<LinkState>, Vec<DeviceState>, Vec<HostState>) {
    coordinator.wake(now);
    let NetworkSnapshot { links, devices, hosts, .. } = coordinator.snapshot();
    (links, devices, hosts)
}

fn through_file(state: TelemetryState, now: Nanos) -> TelemetryState {
    let folder = tempfile::tempdir().expect("a folder");
    let file = TelemetryFile::new(folder.path().join("telemetry"));
    file.write(state).expect("the folder is writable");
    let mode = fs::metadata(file.path()).expect("the file exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "no other user reads the telemetry");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder exists").count(), 1, "no file is left over");
    file.read(now, &LedgerSettings::default()).expect("the file was just written")
}

proptest! {
    /// Reports of some hosts in some seconds. All of them are fresh at the restart.
    #[test]
    fn a_restarted_coordinator_shows_what_one_shows_that_never_stopped(
        reports in prop::collection::vec((1_u64..4, says()), 1..30),
        later in prop::collection::vec((4_u64..6, says()), 0..10),
        piece in 1_u32..40,
    ) {
        let cluster = cluster(CLUSTER);
        let (mut reports, mut later) = (reports, later);
        reports.sort_by_key(|(second, _)| *second);
        later.sort_by_key(|(second, _)| *second);
        let mut steady = coordinator(&cluster);
        for (second, says) in &reports {
            report(&mut steady, *second, says);
        }
        let now = Nanos(3 * SECOND + SECOND / 4);
        steady.wake(now);
        let (mut state, mut first) = (TelemetryState::default(), Some(0));
        while let Some(number) = first {
            let part = steady.telemetry_piece(ReadTelemetry { first: number, most: piece });
            first = part.next;
            state.add(&cluster.fabric, part);
        }
        prop_assert_eq!(&state, &steady.telemetry_state(), "pieces of any size give the same state");
        let read = through_file(state.clone(), now);
        prop_assert_eq!(&read, &state, "the file holds every bit");
        let mut resumed = coordinator(&cluster);
        resumed.wake(now);
        let kept = resumed.set_telemetry_state(read);
        let hosts: std::collections::BTreeSet<u32> = reports.iter().map(|(_, says)| says.host).collect();
        prop_assert_eq!((kept.links, kept.devices), (2 * hosts.len(), hosts.len()));
        for at in [now, Nanos(4 * SECOND), Nanos(9 * SECOND)] {
            for (second, says) in later.iter().filter(|(second, _)| *second * SECOND <= at.0) {
                report(&mut steady, *second, says);
                report(&mut resumed, *second, says);
            }
            prop_assert_eq!(shown(&mut steady, at), shown(&mut resumed, at));
        }
    }

    /// A file with any single byte changed, cut or added.
    #[test]
    fn a_broken_file_gives_an_error_and_never_telemetry(
        at in any::<prop::sample::Index>(), flip in 1_u8.., cut in any::<bool>(),
    ) {
        let cluster = cluster(CLUSTER);
        let mut coordinator = coordinator(&cluster);
        report(&mut coordinator, 1, &HostSays { host: 0, load: 5, busy: 6, speed: Some(7), state: (Some(true), Some((8, Some(9)))) });
        let folder = tempfile::tempdir().expect("a folder");
        let file = TelemetryFile::new(folder.path().join("telemetry"));
        file.write(coordinator.telemetry_state()).expect("the folder is writable");
        let mut bytes = fs::read(file.path()).expect("the file exists");
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
        fs::write(file.path(), &bytes).expect("the file is writable");
        let read = file.read(Nanos(SECOND), &LedgerSettings::default());
        // A changed header may describe the same content.
        let same = read.as_ref().is_ok_and(|state| *state == coordinator.telemetry_state());
        prop_assert!(read.is_err() || same, "{read:?}");
    }
}

#[test]
fn only_fresh_telemetry_is_read() {
    let cluster = cluster(CLUSTER);
    let mut before = coordinator(&cluster);
    let says =
        |host| HostSays { host, load: 5, busy: 6, speed: Some(7), state: (Some(true), Some((8, Some(9)))) };
    report(&mut before, 1, &says(0));
    report(&mut before, 3, &says(1));
    let state = before.telemetry_state();
    let kept_at = |now: u64| {
        let mut after = coordinator(&cluster);
        after.wake(Nanos(now));
        after.set_telemetry_state(through_file(state.clone(), Nanos(now)))
    };
    assert_eq!(kept_at(3 * SECOND), KeptTelemetry { links: 4, devices: 2, hosts: 2 });
    // Three intervals after the first report it still counts, as in a service that never stopped.
    assert_eq!(kept_at(4 * SECOND), KeptTelemetry { links: 4, devices: 2, hosts: 2 });
    assert_eq!(kept_at(4 * SECOND + 1), KeptTelemetry { links: 2, devices: 1, hosts: 2 });
    assert_eq!(kept_at(6 * SECOND + 1), KeptTelemetry::default());
    // The clock was set back: times of the file are in the future, and new reports must not look old.
    assert_eq!(kept_at(1), KeptTelemetry { links: 2, devices: 1, hosts: 2 });
}

#[test]
fn a_learned_capacity_survives_a_restart() {
    let cluster = cluster(CLUSTER);
    let learning = || {
        let tasks = leeward_placement::tasks::REGISTRY.make("utp", "learn_capacity: true").ok();
        let engine = Engine::new(ledger(&cluster), Policies { tasks, ..policies("") }, 7, Explain::Off);
        Coordinator::<Numbers>::new(engine, labels(), Limits::default())
    };
    let uplink = cluster.fabric.resource("r0:uplink").expect("a link");
    // The uplink has 1 Gb/s, and loses the half of it.
    let report = |coordinator: &mut Coordinator<Numbers>, second: u64, mbps: i64, queue: Option<f64>| {
        let window = (Nanos((second - 1) * SECOND), Nanos(second * SECOND));
        let loads = samples(window, [(uplink, Load(mbps * 1_000_000))]);
        let readings = queue.map(|queue| (uplink, Reading { queue: Some(queue), ..Reading::default() }));
        let report = Report { window, loads, readings: readings.into_iter().collect(), ..Report::default() };
        coordinator.report(window.1, report).expect("a valid report");
    };
    let capacity = |coordinator: &mut Coordinator<Numbers>| {
        let snapshot = coordinator.snapshot();
        snapshot.link(uplink).expect("a link").capacity.0 / 1_000_000
    };
    // Without a queue, a load below the usual one is no evidence.
    for (queue, expected) in [(None, 1_000), (Some(0.0), 1_000), (Some(9_000.0), 500)] {
        let mut before = learning();
        for second in 1..60 {
            report(&mut before, second, 700 + 50 * (second as i64 * 7 % 5 - 2), None);
        }
        for second in 60..70 {
            report(&mut before, second, 500, queue);
        }
        assert_eq!(capacity(&mut before), expected, "{queue:?}");
        let now = Nanos(69 * SECOND);
        let mut after = learning();
        after.wake(now);
        after.set_telemetry_state(through_file(before.telemetry_state(), now));
        assert_eq!(capacity(&mut after), expected, "{queue:?}");
        // The link carries more again.
        report(&mut after, 70, 800, queue);
        assert_eq!(capacity(&mut after), 1_000);
    }
}

#[test]
fn a_file_that_is_no_telemetry_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("telemetry");
    let read = || TelemetryFile::new(path.clone()).read(Nanos(SECOND), &LedgerSettings::default());
    assert_eq!(read().expect("no file, no telemetry"), TelemetryState::default());
    fs::create_dir(&path).expect("a folder");
    assert_eq!(read().expect_err("a folder").to_string(), "not a regular file");
    fs::remove_dir(&path).expect("the folder is empty");
    let zeros = vec![0; 300 << 20];
    for (content, expected) in [
        (b"".to_vec(), "incomplete frame"),
        (b"telemetry".to_vec(), "Unknown frame descriptor"),
        (zstd::bulk::compress(b"{}", 1).expect("compresses"), "invalid content: missing field `format`"),
        (
            zstd::bulk::compress(
                b"{\"format\":2,\"at\":0,\"loads\":[],\"readings\":[],\"disks\":[],\"hosts\":[]}",
                1,
            )
            .expect("compresses"),
            "format 2, which this version does not know",
        ),
        (zstd::bulk::compress(&zeros, 1).expect("compresses"), "more than 256 MiB"),
    ] {
        fs::write(&path, content).expect("the file is writable");
        let error = read().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
