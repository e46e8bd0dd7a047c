//! Traces of requests by workload, in the dialect `leeward`: `seconds,kind,size,offset`, with seconds since 1970.
//!
//! The proxy hands rows to a thread and never waits for it; rows for which there is no room are counted as lost. A file
//! is `NAME.csv.part` while it grows. Then it becomes `NAME-TIME.csv` by a rename, with the time of its first request, so
//! readers see whole files only. A file that a killed proxy left is completed at the next start. One recording at a time
//! has a folder: it holds a lock there.

mod files;
mod parts;

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_traces::Kind;

use self::files::Files;
use self::parts::{complete_parts, recorded_bytes};
use crate::event::Events;

/// Rows of a message to the thread.
const ROWS: usize = 1024;
/// Messages that wait for the thread.
const MESSAGES: usize = 256;
/// Time between two looks at the age of files.
const LOOK: Nanos = Nanos::SECOND;
/// File whose lock a recording holds.
const LOCK: &str = ".lock";

/// Settings of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecorderSettings {
    /// Folder of the traces.
    pub folder: PathBuf,
    /// Longest time of a file.
    pub every: Nanos,
    /// Largest number of bytes of all traces in the folder, also of those that are there at the start.
    pub limit: u64,
}

/// A request of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Number of the trace.
    pub trace: u32,
    /// Time since 1970.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload in bytes; rows without payload are left out.
    pub size: u64,
    /// Place on the volume, in bytes.
    pub offset: u64,
}

enum Message {
    /// Name of a trace, before its rows.
    Name(u32, String),
    Rows(Vec<Row>),
    /// A trace has no more rows: its number may be that of another one from here on.
    End(u32),
    /// Time since 1970, for files that get no rows.
    Now(Nanos),
}

/// The proxy's side of a recording.
#[derive(Debug)]
pub struct Recorder {
    sender: SyncSender<Message>,
    /// Names and ends of traces for which the channel had no room. Rows wait for them, or are lost.
    control: VecDeque<Message>,
    rows: Vec<Row>,
    /// Rows that were not written, for whatever reason.
    lost: Arc<AtomicU64>,
    /// Time of the next message with the time.
    next_look: Nanos,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Message::Name(trace, name) => write!(f, "Name({trace}, {name:?})"),
            Message::Rows(rows) => write!(f, "Rows({})", rows.len()),
            Message::End(trace) => write!(f, "End({trace})"),
            Message::Now(at) => write!(f, "Now({at})"),
        }
    }
}

impl Recorder {
    /// Starts a recording. The thread ends after the recorder is dropped; its files are then complete.
    ///
    /// # Errors
    /// Fails if the folder cannot be made or written to, or if another process records there.
    pub fn start(
        settings: RecorderSettings,
        events: Events,
    ) -> Result<(Recorder, JoinHandle<()>), InputError> {
        let folder = settings.folder.display().to_string();
        let invalid = |error: io::Error| InputError::new("--traces", format!("{folder}: {error}"));
        fs::create_dir_all(&settings.folder).map_err(invalid)?;
        let lock = lock(&settings.folder).map_err(invalid)?;
        complete_parts(&settings.folder).map_err(invalid)?;
        let written = recorded_bytes(&settings.folder).map_err(invalid)?;
        let (sender, receiver) = sync_channel(MESSAGES);
        let lost = Arc::new(AtomicU64::new(0));
        let mut files = Files::new(settings, written, lost.clone(), lock);
        let thread = thread::Builder::new().name("leeward-traces".to_owned());
        let thread = thread.spawn(move || files.run(&receiver, &events)).map_err(invalid)?;
        let (control, rows) = (VecDeque::new(), Vec::new());
        Ok((Recorder { sender, control, rows, lost, next_look: Nanos(0) }, thread))
    }

    /// Names a trace. The number may be that of a trace that has ended.
    pub fn name(&mut self, trace: u32, name: &str) {
        self.control(Message::Name(trace, name.to_owned()));
    }

    /// Ends a trace: its file is complete.
    pub fn end(&mut self, trace: u32) {
        self.control(Message::End(trace));
    }

    /// Sends a message that must not be lost, after all rows so far.
    fn control(&mut self, message: Message) {
        self.flush();
        self.control.push_back(message);
    }

    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        if row.size > 0 {
            self.rows.push(row);
            if self.rows.len() >= ROWS {
                self.flush();
            }
        }
    }

    /// Hands the rows to the thread.
    pub fn flush(&mut self) {
        while let Some(message) = self.control.pop_front() {
            match self.sender.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(message)) => {
                    self.control.push_front(message);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => self.control.clear(),
            }
        }
        if self.rows.is_empty() {
            return;
        }
        let count = self.rows.len() as u64;
        let is_sent = self.control.is_empty() && {
            let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS));
            self.sender.try_send(Message::Rows(rows)).is_ok()
        };
        if !is_sent {
            self.rows.clear();
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Hands the rows to the thread, and the time since 1970: a file that gets no more rows is complete at its age.
    pub fn flush_at(&mut self, wall: Nanos) {
        self.flush();
        if wall >= self.next_look {
            self.next_look = wall.plus(LOOK);
            // The next time comes soon.
            drop(self.sender.try_send(Message::Now(wall)));
        }
    }

    /// Number of rows that were not written: because the disk was too slow, the limit was reached, or an error occurred.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Locks a folder for this process.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::other("another process records here; give each a folder of its own"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
