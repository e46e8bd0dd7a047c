//! Exclusive use of a SQLite file by one service.
//!
//! Two locks are held, at the latest until the process ends. The lock on the file itself also excludes a service that
//! knows the file by another name: SQLite would give each name a write-ahead log of its own, and the store would be
//! lost. The lock on a separate file beside it excludes a service that finds another file at this name, and services
//! of earlier versions, which know no other lock.
//!
//! Both are locks of open files (`flock`), and independent of the locks of SQLite, which belong to the process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::StoreError;

/// Mode of new files: only their owner may read decisions and names.
const OWNER_ONLY: u32 = 0o600;

/// Locks of a store's file.
pub struct FileLock {
    _file: File,
    _name: File,
}

impl FileLock {
    /// Creates the file if it is missing, and locks it. Returns its absolute path.
    ///
    /// # Errors
    /// [`StoreError`] if a file cannot be opened, or if another service has a lock.
    pub fn take(path: &Path) -> Result<(FileLock, PathBuf), StoreError> {
        if !path.exists() {
            open(path)?;
        }
        let path = path.canonicalize().map_err(|error| failed(path, &error))?;
        let mut name = path.clone().into_os_string();
        name.push("-lock");
        // The file itself is opened last: a process that closes it loses the locks of SQLite on it.
        let (_name, _file) = (lock(Path::new(&name))?, lock(&path)?);
        Ok((FileLock { _file, _name }, path))
    }
}

/// Opens a file for writing, and creates it if it is missing.
fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY);
    options.open(path).map_err(|error| failed(path, &error))
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            // If this process itself has the store open, closing the file would end SQLite's locks on it.
            std::mem::forget(file);
            Err(StoreError::Database(
                "another service uses this store; give each service its own file, or share a PostgreSQL database"
                    .to_owned(),
            ))
        }
        Err(TryLockError::Error(error)) => Err(failed(path, &error)),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Database(format!("{}: {error}", path.display()))
}
