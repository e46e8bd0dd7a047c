//! Rows of a store that a later version wrote.

use leeward_store::{Durability, Sqlite, Store, StoreError};

#[test]
fn a_move_in_an_unknown_state_is_an_error_and_no_advised_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut store = Sqlite::open(&path, Durability::Process, 10).expect("a new file");
    let connection = rusqlite::Connection::open(&path).expect("the file exists");
    let row = "INSERT INTO migrations (id, at, decision, position, task, host_from, host_to, link, state)
        VALUES (3, 1, 0, 0, 't', 'r0h0', 'r1h0', 'r0:uplink', $1)";
    connection.execute(row, ["done"]).expect("a row");
    assert_eq!(store.load(10, 10).map(|state| state.migrations.len()), Ok(1));
    connection.execute("UPDATE migrations SET state = 'postponed'", []).expect("a row");
    let problem = "the state `postponed` is unknown: a later version wrote it".to_owned();
    let expected = StoreError::Row { table: "migrations", id: 3, problem };
    assert_eq!(store.load(10, 10).map(|_| ()), Err(expected));
}
