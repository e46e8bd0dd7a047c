//! Reads beside the writes, in all databases: search, largest gains, and periods.

use std::sync::Arc;

use leeward_fabric::{Bytes, Nanos};
use leeward_records::{
    Beside, Caller, Change, ClusterVersion, DecisionCounts, DecisionDetails, DecisionId, DecisionRecord,
    HotTimes, LinkLoad, LinkMean, Period, PeriodLength, PlacementSpec, ReplicasSpec, TasksSpec,
};
use leeward_store::{Database, Durability, Postgres, Search, Sqlite, Store, TimeRange};
use leeward_testing::postgres;

const HOUR: u64 = 3_600 * Nanos::SECOND.0;

fn load(hot: u32, utilization: f64) -> Option<LinkLoad> {
    Some(LinkLoad { link: None, utilization: Some(utilization), hot, unknown: 0, rate_bps: None })
}

fn record(id: u64, change: impl FnOnce(&mut DecisionRecord)) -> Change {
    let mut details = DecisionDetails::empty(PlacementSpec::Replicas(ReplicasSpec::new(Bytes(1))));
    details.policy = "sinbad:remote_racks=2".into();
    let at = Nanos(id * Nanos::SECOND.0);
    let (caller, entries, expires, released) = (None, Vec::new(), None, None);
    let mut record = DecisionRecord { id: DecisionId(id), at, caller, details, entries, expires, released };
    change(&mut record);
    Change::Decided(Arc::new(record), Vec::new())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Six decisions that differ in every field that can be searched.
fn decisions() -> Vec<Change> {
    let client = |client: &str, sequence| Some(Caller::Client { client: client.into(), sequence });
    vec![
        record(1, |record| {
            record.caller = client("etl", 1);
            record.details.reference = Some("blk_1".into());
            record.details.hosts = names(&["r0h1", "r1h2"]);
            record.details.racks = names(&["r0", "r1"]);
        }),
        record(2, |record| {
            record.caller = Some(Caller::Key("key 2".into()));
            record.details.reference = Some("blk_1\\0%".into());
            record.details.hosts = names(&["R0H1", "r0h10"]);
            record.details.racks = names(&["R0", "r00"]);
        }),
        record(3, |record| {
            record.details.note = Some("below the threshold".into());
            record.details.policy = "sinbad".into();
            record.details.racks = names(&["r1"]);
        }),
        record(4, |record| {
            record.details.spec = PlacementSpec::Tasks(TasksSpec {
                name: "web".into(),
                job: Some("front".into()),
                ..TasksSpec::default()
            });
            record.details.policy = "sinbadder".into();
        }),
        record(5, |record| {
            let spec = TasksSpec { name: "web".into(), ..TasksSpec::default() };
            record.details.spec = PlacementSpec::Tasks(spec);
            record.details.policy = "leeward".into();
            record.details.beside = Some(Beside {
                policy: "borg".into(),
                hosts: Vec::new(),
                refused: None,
                load: load(2, 0.9),
                decided: load(0, 0.4),
            });
        }),
        record(6, |record| {
            record.caller = client("etl", 2);
            record.details.beside = Some(Beside {
                policy: "uniform".into(),
                hosts: Vec::new(),
                refused: None,
                load: load(0, 0.2),
                decided: load(0, 0.7),
            });
        }),
    ]
}

fn check_search(store: &mut dyn Store) {
    store.renew_lease("here").expect("the store leads");
    store.apply(&decisions()).expect("the store is writable");
    let mut reader = store.reader().expect("a reader opens");
    let text = |text: &str| Some(text.to_owned());
    let of = Search::default;
    let at = |second: u64| Some(Nanos(second * Nanos::SECOND.0));
    let cases = [
        (of(), vec![6, 5, 4, 3, 2, 1]),
        (Search { kind: Some("tasks"), ..of() }, vec![5, 4]),
        (Search { since: at(2), until: at(4), ..of() }, vec![3, 2]),
        (Search { client: text("etl"), ..of() }, vec![6, 1]),
        (Search { client: text("etl"), before: Some(DecisionId(6)), ..of() }, vec![1]),
        (Search { key: text("key 2"), ..of() }, vec![2]),
        (Search { reference: text("blk_1"), ..of() }, vec![1]),
        (Search { reference: text("blk_1\\0%"), ..of() }, vec![2]),
        (Search { job: text("front"), ..of() }, vec![4]),
        (Search { job: text("web"), ..of() }, vec![5]),
        (Search { host: text("r0h1"), ..of() }, vec![1]),
        (Search { host: text("r0"), ..of() }, vec![]),
        (Search { rack: text("r0"), ..of() }, vec![1]),
        (Search { rack: text("r1"), host: text("r1h2"), ..of() }, vec![1]),
        (Search { rack: text("r1"), ..of() }, vec![3, 1]),
        (Search { policy: text("sinbad"), ..of() }, vec![6, 3, 2, 1]),
        (Search { policy: text("sinbad:remote_racks=2"), ..of() }, vec![6, 2, 1]),
        (Search { policy: text("sin"), ..of() }, vec![]),
        (Search { fallback: Some(true), ..of() }, vec![3]),
        (Search { fallback: Some(false), kind: Some("replicas"), ..of() }, vec![6, 2, 1]),
        (Search { host: text("' OR 1=1 --"), ..of() }, vec![]),
        (Search { since: at(100), ..of() }, vec![]),
        (Search { since: at(5), host: text("r0h1"), ..of() }, vec![]),
    ];
    for (search, expected) in cases {
        let found = reader.search(&search, 100).expect("the store is readable");
        assert_eq!(found.iter().map(|record| record.id.0).collect::<Vec<_>>(), expected, "{search:?}");
    }
    let first = reader.search(&of(), 2).expect("the store is readable");
    assert_eq!(first.iter().map(|record| record.id.0).collect::<Vec<_>>(), [6, 5]);
    // The largest differences come first, for better or worse; decisions without a comparison have none.
    let range = TimeRange { since: Nanos(0), until: Nanos(HOUR) };
    let gains = reader.largest_gains(range, 10).expect("the store is readable");
    assert_eq!(gains.iter().map(|record| record.id.0).collect::<Vec<_>>(), [5, 6]);
    let gain = |record: &DecisionRecord| record.details.gain().map(|gain| gain.rank());
    assert_eq!(gains.iter().map(gain).collect::<Vec<_>>(), [Some(2_500), Some(-500)]);
    // A task that moves is found at its new host.
    let Change::Decided(first, _) = &decisions()[0] else { panic!("a decision") };
    let mut moved = DecisionRecord::clone(first);
    (moved.details.hosts, moved.details.racks) = (names(&["r2h0"]), names(&["r2"]));
    store.apply(&[Change::Moved(Arc::new(moved), Vec::new())]).expect("the store is writable");
    let at_rack = |rack: &str| Search { rack: text(rack), ..Search::default() };
    assert_eq!(reader.search(&at_rack("r0"), 10).map(|found| found.len()), Ok(0));
    assert_eq!(reader.search(&at_rack("r2"), 10).map(|found| found.len()), Ok(1));
}

fn period(length: PeriodLength, ends: u64, mean: f64) -> Period {
    let mut counts = leeward_records::Counts::default();
    counts.decisions.insert("replicas".into(), DecisionCounts { decided: ends, ..DecisionCounts::default() });
    Period {
        began: Nanos(ends - length.length().0),
        ends: Nanos(ends),
        length,
        counts,
        hot: HotTimes { seen: mean, ..HotTimes::default() },
        cluster: ClusterVersion(3),
        links: vec![LinkMean::of(Some(mean)), LinkMean::UNSEEN],
    }
}

fn check_periods(store: &mut dyn Store) {
    store.renew_lease("here").expect("the store leads");
    let of = |length, ends, mean| Change::Period(Arc::new(period(length, ends, mean)));
    let (ten, hour) = (PeriodLength::TenMinutes, PeriodLength::Hour);
    let links: Arc<[String]> = names(&["r0:uplink", "r0:downlink"]).into();
    store
        .apply(&[
            of(hour, 10 * HOUR, 0.1),
            of(ten, 10 * HOUR, 0.5),
            Change::LinkNames(ClusterVersion(3), links.clone()),
            // A running period is stored again with new sums.
            of(hour, 10 * HOUR, 0.3),
            Change::LinkNames(ClusterVersion(3), names(&["other"]).into()),
        ])
        .expect("the store is writable");
    let mut reader = store.reader().expect("a reader opens");
    let all = TimeRange { since: Nanos(0), until: Nanos(10_000 * HOUR) };
    let mut stored = |length, range, links| {
        let mut all = Vec::new();
        match links {
            true => reader.each_period(length, range, |period| all.push(period)).expect("readable"),
            false => all = reader.periods(length, range).expect("readable"),
        }
        all
    };
    assert_eq!(stored(hour, all, true), [period(hour, 10 * HOUR, 0.3)]);
    let without = Period { links: Vec::new(), ..period(ten, 10 * HOUR, 0.5) };
    assert_eq!(stored(ten, all, false), [without]);
    let range = |since, until| TimeRange { since: Nanos(since), until: Nanos(until) };
    assert_eq!(stored(ten, range(10 * HOUR, 11 * HOUR), true), []);
    assert_eq!(stored(ten, range(9 * HOUR, 10 * HOUR), true).len(), 1);
    // A period that has not ended is a part of the range.
    assert_eq!(stored(hour, range(9 * HOUR + HOUR / 2, 9 * HOUR + HOUR / 2 + 1), true).len(), 1);
    assert_eq!(stored(hour, range(8 * HOUR, 9 * HOUR), true), []);
    // Ten minutes are stored for two days, and hours for 31 days.
    store.apply(&[of(ten, 59 * HOUR, 0.5), of(hour, 60 * HOUR, 0.5)]).expect("the store is writable");
    assert_eq!((stored(ten, all, true).len(), stored(hour, all, true).len()), (1, 2));
    assert_eq!(reader.versions(ten, all), Ok(vec![ClusterVersion(3)]));
    assert_eq!(reader.link_names(ClusterVersion(3)).as_deref(), Ok(&links[..]));
    assert_eq!(reader.link_names(ClusterVersion(4)), Ok(Vec::new()));
}

fn check_all(open: impl Fn() -> Box<dyn Store>) {
    check_search(&mut *open());
    check_periods(&mut *open());
}

#[test]
fn memory_is_searched() {
    check_all(|| Box::new(Sqlite::in_memory().expect("enough memory")));
}

#[test]
fn a_file_is_searched() {
    let folder = tempfile::tempdir().expect("a folder");
    let number = std::cell::Cell::new(0);
    check_all(|| {
        number.set(number.get() + 1);
        let path = folder.path().join(format!("{}.db", number.get()));
        Box::new(Sqlite::open(&path, Durability::Process, 1_000).expect("a writable folder"))
    });
}

#[test]
fn postgres_is_searched() {
    let Some(server) = postgres::Server::shared() else { return };
    check_all(|| {
        let database = Database::read(&server.url(&server.database()), None).expect("a valid URL");
        Box::new(Postgres::open(database, Durability::Process, 1_000).expect("the database is available"))
    });
}

#[test]
fn forgotten_decisions_are_no_longer_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut store = Sqlite::open(&path, Durability::Process, 1_000).expect("a writable folder");
    store.renew_lease("here").expect("the store leads");
    let mut reader = store.reader().expect("a reader opens");
    let mut store_all = |ids: std::ops::Range<u64>| {
        let decisions: Vec<Change> = ids.clone().map(|id| record(id, |_| {})).collect();
        let ends = ids.map(|id| Change::Ended { id: DecisionId(id), released: None });
        store.apply(&decisions.into_iter().chain(ends).collect::<Vec<_>>()).expect("the store is writable");
    };
    store_all(0..3_000);
    store_all(3_000..3_001);
    let found = reader.search(&Search::default(), 10_000).expect("the store is readable");
    assert_eq!(found.last().map(|record| record.id.0), Some(2_000));
}

/// A database of an earlier version of the program with this number of decisions.
fn check_upgrade(server: &postgres::Server, decisions: u64) {
    let database = server.database();
    let open = || {
        let url = Database::read(&server.url(&database), None).expect("a valid URL");
        Postgres::open(url, Durability::Process, 1_000_000).expect("the database is available")
    };
    let mut store = open();
    store.renew_lease("here").expect("the store leads");
    let all: Vec<Change> = (0..decisions).map(|id| record(id, |_| {})).collect();
    all.chunks(1_000).for_each(|some| store.apply(some).expect("the store is writable"));
    drop(store);
    let earlier = "DROP TABLE decision_search; DROP TABLE periods; DROP TABLE link_names; DROP TABLE enforcers; \
        ALTER TABLE migrations DROP COLUMN executor; UPDATE made SET steps = 4";
    server.ask(&database, earlier).expect("the database is writable");
    let mut reader = open().reader().expect("a reader opens");
    let found = reader.search(&Search::default(), 10_000).map(|found| found.len() as u64);
    assert_eq!(found, Ok(decisions));
}

#[test]
fn decisions_of_earlier_versions_become_searchable() {
    let Some(server) = postgres::Server::shared() else { return };
    // The upgrade reads a thousand decisions at a time.
    [0, 3, 1_000].into_iter().for_each(|decisions| check_upgrade(&server, decisions));
}

#[test]
fn a_long_name_of_an_app_can_be_stored_and_is_found_by_its_beginning() {
    let long: String = (0..9_000_u32).map(|n| char::from(b'a' + (n * n % 25) as u8)).collect();
    let app = |record: &mut DecisionRecord| {
        let spec = TasksSpec { name: long.clone(), ..TasksSpec::default() };
        record.details.spec = PlacementSpec::Tasks(spec);
    };
    let check = |store: &mut dyn Store| {
        store.renew_lease("here").expect("the store leads");
        store.apply(&[record(1, app)]).expect("the name is not too long");
        let search = Search { job: Some(long[..512].to_owned()), ..Search::default() };
        let found = store.reader().and_then(|mut reader| reader.search(&search, 10));
        assert_eq!(found.map(|found| found.len()), Ok(1));
    };
    check(&mut Sqlite::in_memory().expect("enough memory"));
    if let Some(server) = postgres::Server::shared() {
        let database = Database::read(&server.url(&server.database()), None).expect("a valid URL");
        check(&mut Postgres::open(database, Durability::Process, 10).expect("the database is available"));
    }
}
