//! The PostgreSQL store: leadership, updates for followers, and connections.

use leeward_testing::postgres;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_records::{Change, DecisionId};
use leeward_store::{Database, Durability, Leadership, Postgres, Sqlite, Store, StoreError, Updates};

/// Opens a store in a database of the server.
fn open_in(server: &postgres::Server, database: &str) -> Result<Postgres, StoreError> {
    let database = Database::read(&server.url(database), None).expect("a valid URL");
    Postgres::open(database, Durability::Process, 1_000_000)
}

#[test]
fn a_deposed_leader_cannot_write() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let open = || open_in(&server, &database).expect("the database is available");
    let (mut first, mut second) = (open(), open());
    assert_eq!(first.renew_lease("first"), Ok(Leadership::Leader { term: 1 }));
    let change = |name: &str| [Change::Job(name.to_owned(), Default::default())];
    assert_eq!(second.apply(&change("second")), Err(StoreError::Deposed), "the second store never led");
    assert!(
        matches!(second.renew_lease("second"), Ok(Leadership::Follower { leader: Some(leader), .. }) if &*leader == "first")
    );
    first.apply(&change("kept")).expect("the store leads");
    // Another service started a new term, and the first service does not know it yet.
    server.ask(&database, "UPDATE leadership SET term = term + 1").expect("the database is writable");
    assert_eq!(first.apply(&change("late")), Err(StoreError::Deposed));
    // The server releases the lock when it notices that the connection is closed.
    let leads = (0..500).find_map(|_| match second.renew_lease("second") {
        Ok(Leadership::Leader { term }) => Some(term),
        _ => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        }
    });
    assert_eq!(leads, Some(3));
    assert!(matches!(
        first.renew_lease("first"),
        Ok(Leadership::Follower { updates: Updates::Everything, .. })
    ));
    let jobs = second.load(10, 10).expect("the store is readable").jobs;
    assert_eq!(jobs.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["kept"]);
}

#[test]
fn a_follower_far_behind_must_load_everything() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let open = || open_in(&server, &database).expect("the database is available");
    let (mut first, mut second) = (open(), open());
    assert!(matches!(first.renew_lease("first"), Ok(Leadership::Leader { .. })));
    let everything =
        |leadership| matches!(leadership, Ok(Leadership::Follower { updates: Updates::Everything, .. }));
    assert!(everything(second.renew_lease("second")), "the second store has loaded no state yet");
    let change = |number: u32| [Change::Job(format!("job {number}"), Default::default())];
    (0..3).for_each(|number| first.apply(&change(number)).expect("the store leads"));
    second.load(10, 10).expect("the store is readable");
    first.apply(&change(3)).expect("the store leads");
    let Ok(Leadership::Follower { updates: Updates::Changes(changes), .. }) = second.renew_lease("second")
    else {
        panic!("the store does not follow")
    };
    assert_eq!(changes, change(3));
    (4..8).for_each(|number| first.apply(&change(number)).expect("the store leads"));
    server.ask(&database, "DELETE FROM commits WHERE number < 7").expect("the database is writable");
    assert!(everything(second.renew_lease("second")));
}

#[test]
fn a_later_schema_and_an_unreachable_database_are_errors() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    drop(open_in(&server, &database).expect("the database is available"));
    drop(open_in(&server, &database).expect("the schema is current"));
    server.ask(&database, "UPDATE made SET steps = 99").expect("the database is writable");
    assert!(matches!(open_in(&server, &database), Err(StoreError::Newer { found: 99, .. })));
    let Err(StoreError::Database(problem)) = open_in(&server, "nowhere") else {
        panic!("the database must not exist")
    };
    assert_eq!(problem, "PostgreSQL: database \"nowhere\" does not exist");
    let unreachable = Database::read("postgres://lee:secret@127.0.0.1:1/leeward", None).expect("a valid URL");
    let Err(error) = Postgres::open(unreachable, Durability::Power, 1) else {
        panic!("no server listens on the port")
    };
    assert!(
        error.to_string().contains("onnection refused") && !error.to_string().contains("secret"),
        "{error}"
    );
}

#[test]
fn postgres_loads_in_batches_the_same_state_as_a_file() {
    let Some(server) = postgres::Server::shared() else { return };
    let mut store = open_in(&server, &server.database()).expect("the database is available");
    let mut file = Sqlite::in_memory().expect("an in-memory store opens");
    assert!(matches!(store.renew_lease("here"), Ok(Leadership::Leader { .. })));
    let mut jobs = 0;
    for count in [999, 1_000, 1_001, 2_000, 2_500] {
        let more: Vec<Change> =
            (jobs..count).map(|job| Change::Job(format!("job {job}\\"), Default::default())).collect();
        store.apply(&more).expect("the store leads");
        file.apply(&more).expect("enough room");
        jobs = count;
        let read = store.load(10, 10).expect("the store is readable");
        assert_eq!(read.jobs.len(), count);
        assert_eq!(read, file.load(10, 10).expect("the store is readable"));
    }
}

#[test]
fn terms_increase_and_a_new_connection_starts_unsynchronized() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let mut store = open_in(&server, &database).expect("the database is available");
    assert_eq!(store.renew_lease("here"), Ok(Leadership::Leader { term: 1 }));
    // A restored database replaces the original, without the last term.
    server.ask(&database, "UPDATE leadership SET term = 0").expect("the database is writable");
    let change = [Change::Job("job".to_owned(), Default::default())];
    assert_eq!(store.apply(&change), Err(StoreError::Deposed));
    let term = (0..500).find_map(|_| match store.renew_lease("here") {
        Ok(Leadership::Leader { term }) => Some(term),
        Ok(Leadership::Follower { updates, .. }) => {
            assert_eq!(updates, Updates::Everything, "a new connection starts without known changes");
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        }
        Err(error) => panic!("{error}"),
    });
    assert_eq!(term, Some(2));
}

/// A proxy to a server's socket that counts round trips, and is slow enough to separate them.
fn counting_proxy(server: &postgres::Server, folder: &Path) -> Arc<AtomicUsize> {
    let name = ".s.PGSQL.5432";
    let listener = UnixListener::bind(folder.join(name)).expect("a socket");
    let (to, round_trips) = (server.path().join(name), Arc::new(AtomicUsize::new(0)));
    let counted = round_trips.clone();
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = UnixStream::connect(&to).expect("the socket exists");
            let has_request = Arc::new(AtomicBool::new(false));
            let directions =
                [(near.try_clone(), far.try_clone(), true), (far.try_clone(), near.try_clone(), false)];
            for (from, to, is_request) in directions {
                let (mut from, mut to) = (from.expect("a socket"), to.expect("a socket"));
                let (round_trips, has_request) = (counted.clone(), has_request.clone());
                std::thread::spawn(move || {
                    let mut buffer = [0; 1 << 16];
                    while let Some(length) = from.read(&mut buffer).ok().filter(|&length| length > 0) {
                        if is_request && !has_request.swap(true, Ordering::SeqCst) {
                            round_trips.fetch_add(1, Ordering::SeqCst);
                        }
                        if !is_request {
                            std::thread::sleep(Duration::from_millis(30));
                            has_request.store(false, Ordering::SeqCst);
                        }
                        if to.write_all(&buffer[..length]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    round_trips
}

#[test]
fn every_commit_takes_one_round_trip() {
    let Some(server) = postgres::Server::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let round_trips = counting_proxy(&server, folder.path());
    let url = format!("postgres:///{}?user=tests&host={}", server.database(), folder.path().display());
    let database = Database::read(&url, None).expect("a valid URL");
    let mut store = Postgres::open(database, Durability::Process, 10).expect("the database is available");
    assert!(matches!(store.renew_lease("here"), Ok(Leadership::Leader { .. })));
    let jobs = (0..20).map(|job| Change::Job(format!("job {job}"), Default::default()));
    let ends = (0..20).map(|id| Change::Ended { id: DecisionId(id), released: Some(Nanos(id)) });
    let changes: Vec<Change> = jobs.chain(ends).collect();
    for _ in 0..2 {
        let before = round_trips.load(Ordering::SeqCst);
        store.apply(&changes).expect("the store leads");
        assert_eq!(round_trips.load(Ordering::SeqCst) - before, 1);
    }
}

#[test]
fn a_remote_server_is_reached_over_tls_with_a_checked_certificate() {
    let Some(server) = postgres::Server::with_tls() else { return };
    let (database, port) = (server.database(), server.port().expect("the server listens"));
    let open = |host: &str, authorities: &str| {
        let url = format!(
            "postgres://tests@/{database}?{host}&port={port}&sslmode=require&sslrootcert={authorities}"
        );
        Postgres::open(Database::read(&url, None).expect("a valid URL"), Durability::Process, 10)
    };
    let own = server.certificate().display().to_string();
    for host in ["host=localhost", "host=localhost&hostaddr=127.0.0.1"] {
        let mut store = open(host, &own).expect("the certificate is right");
        assert_eq!(store.renew_lease("here"), Ok(Leadership::Leader { term: 1 }));
        let query = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'leeward'";
        assert_eq!(server.ask(&database, query).as_deref(), Some("t"));
        drop(store);
        server.ask(&database, "UPDATE leadership SET term = 0").expect("the database is writable");
    }
    // The host name or the authority does not match.
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.pem");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&other, made.cert.pem()).expect("a file");
    let other = other.display().to_string();
    for (host, authorities) in [("host=db.example&hostaddr=127.0.0.1", &own), ("host=localhost", &other)] {
        let Err(error) = open(host, authorities) else {
            panic!("{host}: the certificate must not be trusted")
        };
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    }
}
