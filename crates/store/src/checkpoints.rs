//! Checkpoints of SQLite's write-ahead log on a thread of its own. A checkpoint syncs the log and the file, and commits
//! must not wait for these syncs.
//!
//! The log restarts only if a write finds the whole log checkpointed. With a writer that never pauses, the thread never
//! reaches the last pages. If the log is long, the writer therefore checkpoints these few pages itself. If the writer
//! is far ahead of the thread, the writer checkpoints the whole log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::StoreError;

/// Changes between two checkpoints; each is about four pages of the log.
const CHANGES: usize = 256;
/// Number of changes after which the writer waits for a checkpoint.
const FAR_AHEAD: usize = 16 * CHANGES;
/// Length in pages of 4 KiB at which the log should restart.
const LONG: i64 = 16_384;
/// Length in pages at which a warning is logged.
const TOO_LONG: i64 = 8 * LONG;
/// Priority of the thread, as a `nice` value.
const NICE: i32 = 10;

/// Handle of the thread. The thread ends when the handle is dropped.
pub(super) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// Changes since the thread last woke up, or since the writer last made a checkpoint itself.
    changes: usize,
}

#[derive(Default)]
struct Shared {
    /// True if the log is long, and all of it except its end is checkpointed.
    long: AtomicBool,
    /// Held during a checkpoint, because SQLite rejects a second one.
    running: Mutex<()>,
}

impl Checkpoints {
    /// Starts the thread for the file that `writer` writes, and disables the writer's automatic checkpoints. The thread
    /// waits at most `patience` for another process that writes to the file.
    ///
    /// # Errors
    /// [`StoreError::Database`] if the file cannot be opened again, or the thread cannot be started.
    pub fn start(path: &Path, writer: &Connection, patience: Duration) -> Result<Checkpoints, StoreError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(patience)?;
        writer.pragma_update(None, "wal_autocheckpoint", 0)?;
        let (wake, woken) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("leeward-wal".to_owned());
        let thread = thread.spawn(move || {
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                tracing::debug!(%error, "the checkpoint thread runs at normal priority");
            }
            let mut succeeded_before = true;
            while woken.recv().is_ok() {
                let result = of_thread.checkpoint(&connection);
                of_thread
                    .long
                    .store(result.as_ref().is_ok_and(|result| result.pages >= LONG), Ordering::Relaxed);
                let problem = match result {
                    Ok(result) if result.pages < TOO_LONG || result.complete => None,
                    Ok(result) => Some(format!("a reader holds the log back; it has {} pages", result.pages)),
                    Err(error) => Some(error.to_string()),
                };
                // No data is lost: the log has all changes, and grows until a checkpoint succeeds.
                if let Some(problem) = problem.as_ref().filter(|_| succeeded_before) {
                    tracing::warn!(%problem, "the store's log cannot be checkpointed, and grows");
                }
                succeeded_before = problem.is_none();
            }
        });
        let thread = thread
            .map_err(|error| StoreError::Database(format!("cannot start the checkpoint thread: {error}")))?;
        Ok(Checkpoints { wake: Some(wake), thread: Some(thread), shared, changes: 0 })
    }

    /// Counts changes that the writer has committed.
    pub fn committed(&mut self, writer: &Connection, changes: usize) {
        self.changes += changes;
        let is_long = self.shared.long.swap(false, Ordering::Relaxed);
        if is_long || self.changes >= FAR_AHEAD {
            // If the checkpoint fails, the thread meets the same error and logs it.
            let _ = self.shared.checkpoint(writer);
            self.changes = 0;
        } else if self.changes >= CHANGES && self.wake.as_ref().is_some_and(|wake| wake.try_send(()).is_ok())
        {
            self.changes = 0;
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.wake.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Result of a checkpoint.
struct CheckpointResult {
    pages: i64,
    /// True if the whole log is in the file.
    complete: bool,
}

impl Shared {
    /// Checkpoints the pages that no reader needs.
    fn checkpoint(&self, connection: &Connection) -> rusqlite::Result<CheckpointResult> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            let (is_busy, pages, checkpointed): (bool, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(CheckpointResult { pages, complete: !is_busy && checkpointed >= pages })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wal_of_a_busy_writer_stays_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let writer = Connection::open(&path).expect("a file");
        writer.pragma_update(None, "journal_mode", "WAL").expect("a log");
        writer.pragma_update(None, "synchronous", "NORMAL").expect("no waiting");
        writer
            .execute_batch("CREATE TABLE pages (page BLOB); INSERT INTO pages VALUES (NULL)")
            .expect("a table");
        let mut checkpoints = Checkpoints::start(&path, &writer, Duration::from_secs(5)).expect("a thread");
        // Each commit writes about sixteen pages, so the commits write four times the length of a long log.
        for _ in 0..4 * LONG / 16 {
            writer.execute("UPDATE pages SET page = randomblob(65536)", []).expect("room");
            checkpoints.committed(&writer, 4);
        }
        let log = std::fs::metadata(path.with_extension("db-wal")).expect("a log").len();
        assert!(log < 3 * LONG as u64 * 4096, "{log} bytes");
    }
}
