//! Taking SQLite's write-ahead log over into its file, on a thread of its own: it syncs both, and whoever waits for a
//! commit would wait for that.
//!
//! A log starts anew only when all of it was taken over at the moment of a write. Beside a writer that never pauses the
//! last pages are always missing, so when the log has grown long the writer takes these few over itself; and all that
//! there is, when it is far ahead of the thread.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::StoreError;
use super::sqlite::PATIENCE;

/// The log is taken over after so many changes, each of which is about four pages of it.
const CHANGES: usize = 256;
/// After so many the writer waits until they are taken over.
const FAR_AHEAD: usize = 16 * CHANGES;
/// A log of so many pages of 4 KiB is to start anew.
const LONG: i64 = 16_384;
/// One of so many is told of.
const TOO_LONG: i64 = 8 * LONG;
/// What the thread lets others before it by, as `nice` counts.
const NICE: i32 = 10;

/// The way to the thread, which ends when this is dropped.
pub(super) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// Since the thread was last told, or the writer did its work.
    changes: usize,
}

#[derive(Default)]
struct Shared {
    /// The log has grown long, and all but its end was taken over.
    long: AtomicBool,
    /// Held while the log is taken over: SQLite turns a second one away.
    turn: Mutex<()>,
}

impl Checkpoints {
    /// Starts the thread for the file that `writer` writes; it takes nothing over by itself from then on.
    ///
    /// # Errors
    /// The file cannot be opened once more, or there is no thread.
    pub fn start(path: &Path, writer: &Connection) -> Result<Checkpoints, StoreError> {
        let reader = Connection::open(path)?;
        reader.busy_timeout(PATIENCE)?;
        writer.pragma_update(None, "wal_autocheckpoint", 0)?;
        let (wake, woken) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let told = shared.clone();
        let thread = std::thread::Builder::new().name("leeward-wal".to_owned());
        let thread = thread.spawn(move || {
            if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                tracing::debug!(%error, "the thread that takes over the store's log runs beside all others");
            }
            let mut was_fine = true;
            while woken.recv().is_ok() {
                let log = told.take_over(&reader);
                told.long.store(log.as_ref().is_ok_and(|log| log.pages >= LONG), Ordering::Relaxed);
                let problem = match log {
                    Ok(log) if log.pages < TOO_LONG || log.taken_over => None,
                    Ok(log) => Some(format!("somebody reads the store; the log has {} pages", log.pages)),
                    Err(error) => Some(error.to_string()),
                };
                // Nothing is lost by it: the log has all of it, and grows until this can be done.
                if let Some(problem) = problem.as_ref().filter(|_| was_fine) {
                    tracing::warn!(%problem, "the store's log cannot be taken over, and grows");
                }
                was_fine = problem.is_none();
            }
        });
        let thread = thread.map_err(|error| StoreError::Database(format!("a thread for it: {error}")))?;
        Ok(Checkpoints { wake: Some(wake), thread: Some(thread), shared, changes: 0 })
    }

    /// The writer has committed so many changes.
    pub fn committed(&mut self, writer: &Connection, changes: usize) {
        self.changes += changes;
        let is_long = self.shared.long.swap(false, Ordering::Relaxed);
        if is_long || self.changes >= FAR_AHEAD {
            // Where it fails, the thread finds the same and says it.
            let _ = self.shared.take_over(writer);
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

/// What became of the log.
struct Log {
    pages: i64,
    /// Whether all of it is in the file.
    taken_over: bool,
}

impl Shared {
    /// Takes over what nobody reads any more.
    fn take_over(&self, connection: &Connection) -> rusqlite::Result<Log> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            let (is_busy, pages, taken_over): (bool, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Log { pages, taken_over: !is_busy && taken_over >= pages })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_writer_that_never_pauses_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let writer = Connection::open(&path).expect("a file");
        writer.pragma_update(None, "journal_mode", "WAL").expect("a log");
        writer.pragma_update(None, "synchronous", "NORMAL").expect("no waiting");
        writer
            .execute_batch("CREATE TABLE pages (page BLOB); INSERT INTO pages VALUES (NULL)")
            .expect("a table");
        let mut checkpoints = Checkpoints::start(&path, &writer).expect("a thread");
        // Each commit writes about sixteen pages, so there are four times what is long.
        for _ in 0..4 * LONG / 16 {
            writer.execute("UPDATE pages SET page = randomblob(65536)", []).expect("room");
            checkpoints.committed(&writer, 4);
        }
        let log = std::fs::metadata(path.with_extension("db-wal")).expect("a log").len();
        assert!(log < 3 * LONG as u64 * 4096, "{log} bytes");
    }
}
