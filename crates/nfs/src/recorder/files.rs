//! The files of a recording, on a thread of their own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use leeward_fabric::Nanos;
use leeward_traces::Kind;

use super::parts::{PART, complete};
use super::{Message, RecorderSettings, Row};
use crate::event::{Event, Events};

/// First line of a trace.
pub(super) const HEADER: &str = "seconds,kind,size,offset\n";
/// Longest part of a workload's name in the name of a file, in bytes: with time and ending, file systems take 255.
pub(super) const MOST_NAME: usize = 200;

/// Files of a recording.
pub(super) struct Files {
    settings: RecorderSettings,
    traces: BTreeMap<u32, Trace>,
    /// Bytes of all traces in the folder.
    written: u64,
    /// Rows that were not written.
    lost: Arc<AtomicU64>,
    /// True after an error or at the limit: nothing more is written.
    failed: bool,
    /// Lock of the folder, until the files are complete.
    _lock: File,
}

struct Trace {
    name: String,
    open: Option<Open>,
}

/// A file that grows.
struct Open {
    writer: BufWriter<File>,
    path: PathBuf,
    first: Nanos,
}

impl Files {
    /// No files yet, in a folder that has `written` bytes of traces.
    pub fn new(settings: RecorderSettings, written: u64, lost: Arc<AtomicU64>, lock: File) -> Files {
        Files { settings, traces: BTreeMap::new(), written, lost, failed: false, _lock: lock }
    }

    /// Takes messages until their sender has gone, and completes all files.
    pub fn run(&mut self, receiver: &Receiver<Message>, events: &Events) {
        if self.written >= self.settings.limit {
            self.fail(&limit_error(), events);
        }
        for message in receiver {
            let result = match message {
                Message::Name(trace, name) => {
                    self.name(trace, &name);
                    Ok(())
                }
                Message::Rows(rows) => self.write(&rows),
                Message::End(trace) => self.traces.remove(&trace).map_or(Ok(()), |mut trace| trace.close()),
                Message::Now(wall) => self.close_old(wall),
            };
            if let Err(error) = result {
                self.fail(&error, events);
            }
        }
        for trace in self.traces.values_mut() {
            if let Err(error) = trace.close() {
                events.send(Event::NotRecorded(format!("{}: {error}", trace.name)));
            }
        }
    }

    /// Ends the recording, with the first reason in the log.
    fn fail(&mut self, error: &io::Error, events: &Events) {
        if !self.failed {
            events.send(Event::NotRecorded(format!("{}: {error}", self.settings.folder.display())));
        }
        self.failed = true;
    }

    fn name(&mut self, trace: u32, name: &str) {
        let mut name = file_name(name);
        // Two names may differ only in letters that a file name has not, or at their ends.
        while self.traces.values().any(|other| other.name == name) {
            name = format!("{name}-{trace}");
        }
        self.traces.insert(trace, Trace { name, open: None });
    }

    /// Writes rows. All those that it does not write are counted.
    fn write(&mut self, rows: &[Row]) -> io::Result<()> {
        let mut lost = rows.len() as u64;
        let result = self.write_each(rows, &mut lost);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        result
    }

    fn write_each(&mut self, rows: &[Row], lost: &mut u64) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        for row in rows {
            let Some(trace) = self.traces.get_mut(&row.trace) else { continue };
            if trace.age(row.at) >= self.settings.every {
                trace.close()?;
            }
            let line = line(row);
            let header = if trace.open.is_none() { HEADER.len() } else { 0 };
            let written = self.written + (header + line.len()) as u64;
            if written > self.settings.limit {
                return Err(limit_error());
            }
            trace.open(&self.settings.folder, row.at)?.write_all(line.as_bytes())?;
            self.written = written;
            *lost -= 1;
        }
        self.traces
            .values_mut()
            .filter_map(|trace| trace.open.as_mut())
            .try_for_each(|open| open.writer.flush())
    }

    /// Completes files that are as old as they may be: those of clients that send nothing more.
    fn close_old(&mut self, wall: Nanos) -> io::Result<()> {
        let every = self.settings.every;
        self.traces.values_mut().filter(|trace| trace.age(wall) >= every).try_for_each(Trace::close)
    }
}

fn limit_error() -> io::Error {
    io::Error::other("the limit of --trace-limit is reached")
}

impl Trace {
    /// Time since the first request of the file; zero without one.
    fn age(&self, now: Nanos) -> Nanos {
        self.open.as_ref().map_or(Nanos(0), |open| now.since(open.first))
    }

    /// Writer of the file, which begins with a request at `at` if none is open.
    fn open(&mut self, folder: &Path, at: Nanos) -> io::Result<&mut BufWriter<File>> {
        if self.open.is_none() {
            let path = folder.join(format!("{}{PART}", self.name));
            let mut writer = BufWriter::new(File::create(&path)?);
            writer.write_all(HEADER.as_bytes())?;
            self.open = Some(Open { writer, path, first: at });
        }
        self.open.as_mut().map(|open| &mut open.writer).ok_or_else(|| io::Error::other("no file"))
    }

    /// Completes the file.
    fn close(&mut self) -> io::Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.writer.flush()?;
        complete(&open.path, open.first)
    }
}

/// A row as a line.
pub(super) fn line(row: &Row) -> String {
    let kind = if row.kind == Kind::Read { "read" } else { "write" };
    let Nanos(at) = row.at;
    let (seconds, nanos) = (at / Nanos::SECOND.0, at % Nanos::SECOND.0);
    format!("{seconds}.{nanos:09},{kind},{},{}\n", row.size, row.offset)
}

/// Name of a file for the name of a workload, of at least one letter.
fn file_name(name: &str) -> String {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String = name.chars().map(|letter| if valid(letter) { letter } else { '-' }).collect();
    // A dot in front would hide the file.
    match name.trim_start_matches('.') {
        "" => "-".to_owned(),
        // All letters are of one byte.
        name => name[..name.len().min(MOST_NAME)].to_owned(),
    }
}
