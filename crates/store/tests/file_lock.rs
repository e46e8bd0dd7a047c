//! A SQLite file belongs to one service, under every name, and to its owner.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use leeward_store::{Durability, Sqlite, Store, StoreError};

fn open(path: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(path, Durability::Process, 10)
}

fn is_in_use(path: &Path) -> bool {
    match open(path) {
        Err(StoreError::Database(problem)) => problem.contains("another service uses this store"),
        _ => false,
    }
}

#[test]
fn a_second_service_is_kept_out_under_every_name_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let first = open(&path).expect("a new file");
    let (hard, far) = (folder.path().join("hard.db"), other.path().join("store.db"));
    std::fs::hard_link(&path, &hard).expect("a link");
    std::fs::hard_link(&path, &far).expect("a link");
    let symbolic = other.path().join("symbolic.db");
    std::os::unix::fs::symlink(&path, &symbolic).expect("a link");
    for name in [&path, &hard, &far, &symbolic] {
        assert!(is_in_use(name), "{}", name.display());
    }
    // Another file at the name of a store in use is not a store either.
    std::fs::rename(&path, folder.path().join("moved.db")).expect("a new name");
    assert!(is_in_use(&path));
    drop(first);
    std::fs::remove_file(&path).expect("the empty file");
    for name in [&hard, &far, &path] {
        assert_eq!(open(name).map(|store| store.kind().name()), Ok("sqlite"), "{}", name.display());
    }
}

#[test]
fn only_the_owner_may_read_a_new_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut store = open(&path).expect("a new file");
    store.apply(&[]).expect("a write");
    let mut files = 0;
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let file = file.expect("a file");
        let mode = file.metadata().expect("a mode").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} {mode:o}", file.path());
        files += 1;
    }
    assert!(files >= 4, "the store, its log, its index and its lock");
}
