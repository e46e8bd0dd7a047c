//! Traces of requests by workload, in the dialect `leeward`: `seconds,kind,size,offset`, with seconds since 1970.
//!
//! The proxy hands rows to a thread and never waits for it; rows for which there is no room are counted as lost. A file
//! is `NAME.csv.part` while it grows. Then it becomes `NAME-TIME.csv` by a rename, with the time of its first request, so
//! readers see whole files only. A file that a killed proxy left is completed at the next start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use jiff::Timestamp;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_traces::Kind;

use crate::event::{Event, Events};

/// Rows of a message to the thread.
const ROWS: usize = 1024;
/// Messages that wait for the thread.
const MESSAGES: usize = 256;
/// First line of a trace.
const HEADER: &str = "seconds,kind,size,offset\n";
/// End of the name of a file that grows.
const PART: &str = ".csv.part";
/// Longest part of a workload's name in the name of a file, in bytes: with time and ending, file systems take 255.
const MOST_NAME: usize = 200;

/// Settings of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecorderSettings {
    /// Folder of the traces.
    pub folder: PathBuf,
    /// Longest time of a file.
    pub every: Nanos,
    /// Largest number of bytes that one process records.
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
}

/// The proxy's side of a recording.
#[derive(Debug)]
pub struct Recorder {
    sender: SyncSender<Message>,
    rows: Vec<Row>,
    lost: u64,
}

impl Recorder {
    /// Starts a recording. The thread ends after the recorder is dropped; its files are then complete.
    ///
    /// # Errors
    /// Fails if the folder cannot be made or written to.
    pub fn start(
        settings: RecorderSettings,
        events: Events,
    ) -> Result<(Recorder, JoinHandle<()>), InputError> {
        let folder = settings.folder.display().to_string();
        let invalid = |error: io::Error| InputError::new("--traces", format!("{folder}: {error}"));
        fs::create_dir_all(&settings.folder).map_err(invalid)?;
        complete_parts(&settings.folder).map_err(invalid)?;
        let (sender, receiver) = sync_channel(MESSAGES);
        let mut files = Files { settings, traces: BTreeMap::new(), written: 0, failed: false };
        let thread = thread::Builder::new().name("leeward-traces".to_owned());
        let thread = thread.spawn(move || files.run(&receiver, &events)).map_err(invalid)?;
        Ok((Recorder { sender, rows: Vec::new(), lost: 0 }, thread))
    }

    /// Names a trace.
    pub fn name(&mut self, trace: u32, name: &str) {
        self.flush();
        // Without its name, the rows of a trace are lost; the thread counts them so.
        drop(self.sender.try_send(Message::Name(trace, name.to_owned())));
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
        if self.rows.is_empty() {
            return;
        }
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS));
        match self.sender.try_send(Message::Rows(rows)) {
            Ok(()) => {}
            Err(
                TrySendError::Full(Message::Rows(rows)) | TrySendError::Disconnected(Message::Rows(rows)),
            ) => {
                self.lost += rows.len() as u64;
            }
            Err(_) => {}
        }
    }

    /// Number of rows that were lost because the disk was too slow.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Files of a recording.
struct Files {
    settings: RecorderSettings,
    traces: BTreeMap<u32, Trace>,
    written: u64,
    /// True after an error or at the limit: nothing more is written.
    failed: bool,
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
    fn run(&mut self, receiver: &Receiver<Message>, events: &Events) {
        for message in receiver {
            if self.failed {
                continue;
            }
            let result = match message {
                Message::Name(trace, name) => {
                    self.name(trace, &name);
                    Ok(())
                }
                Message::Rows(rows) => self.write(&rows),
            };
            if let Err(error) = result {
                self.failed = true;
                events.send(Event::NotRecorded(format!("{}: {error}", self.settings.folder.display())));
            }
        }
        for trace in self.traces.values_mut() {
            if let Err(error) = trace.close() {
                events.send(Event::NotRecorded(format!("{}: {error}", trace.name)));
            }
        }
    }

    fn name(&mut self, trace: u32, name: &str) {
        let mut name = file_name(name);
        // Two names may differ only in letters that a file name has not, or at their ends.
        while self.traces.values().any(|other| other.name == name) {
            name = format!("{name}-{trace}");
        }
        self.traces.insert(trace, Trace { name, open: None });
    }

    fn write(&mut self, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            let Some(trace) = self.traces.get_mut(&row.trace) else { continue };
            if trace.open.as_ref().is_some_and(|open| row.at.since(open.first) >= self.settings.every) {
                trace.close()?;
            }
            let line = line(row);
            self.written += line.len() as u64;
            if self.written > self.settings.limit {
                return Err(io::Error::other("the limit of --trace-limit is reached"));
            }
            trace.open(&self.settings.folder, row.at)?.write_all(line.as_bytes())?;
        }
        self.traces
            .values_mut()
            .filter_map(|trace| trace.open.as_mut())
            .try_for_each(|open| open.writer.flush())
    }
}

impl Trace {
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
fn line(row: &Row) -> String {
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

/// Renames a file that grew to `NAME-TIME.csv`. An existing file is never replaced.
fn complete(path: &Path, first: Nanos) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(PART));
    let name = name.ok_or_else(|| io::Error::other("no name of a trace"))?;
    let time = Timestamp::from_nanosecond(first.0.into()).map_err(io::Error::other)?;
    let time = time.strftime("%Y%m%dT%H%M%SZ");
    for number in 0..1000 {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let whole = path.with_file_name(format!("{name}-{time}{more}.csv"));
        if !whole.try_exists()? {
            return fs::rename(path, whole);
        }
    }
    Err(io::Error::other(format!("{name}-{time}: too many files of this time")))
}

/// Completes the files of a proxy that was killed: a line without its end is removed, and a file without a request too.
fn complete_parts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(PART) {
            continue;
        }
        let text = fs::read(&path)?;
        let length = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = text[..length].split(|&byte| byte == b'\n');
        match lines.nth(1).and_then(first_time) {
            Some(first) => {
                File::options().write(true).open(&path)?.set_len(length as u64)?;
                complete(&path, first)?;
            }
            None => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Time of a line.
fn first_time(line: &[u8]) -> Option<Nanos> {
    let (seconds, rest) = std::str::from_utf8(line).ok()?.split_once('.')?;
    let nanos: u64 = rest.get(..9)?.parse().ok()?;
    Some(Nanos(seconds.parse::<u64>().ok()?.checked_mul(Nanos::SECOND.0)?.checked_add(nanos)?))
}

#[cfg(test)]
mod tests {
    use leeward_fabric::input::Text;
    use leeward_traces::read::{ReadSettings, Requests};

    use super::*;

    /// 2026-11-30 20:00:00.
    const START: Nanos = Nanos(1_796_068_800 * Nanos::SECOND.0);

    fn row(trace: u32, seconds: u64, size: u64) -> Row {
        let at = START.plus(Nanos(seconds * Nanos::SECOND.0 + 7));
        Row { trace, at, kind: if size > 5000 { Kind::Write } else { Kind::Read }, size, offset: 8192 }
    }

    fn start(folder: &Path, limit: u64) -> (Recorder, JoinHandle<()>, Receiver<Event>) {
        let settings =
            RecorderSettings { folder: folder.to_owned(), every: Nanos(60 * Nanos::SECOND.0), limit };
        let (events, receiver) = Events::channel();
        let (recorder, thread) = Recorder::start(settings, events).unwrap();
        (recorder, thread, receiver)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn recorded_traces_are_read_as_they_were_and_rotate() {
        let folder = tempfile::tempdir().unwrap();
        let (mut recorder, thread, _) = start(folder.path(), 1 << 20);
        recorder.name(0, "mail");
        recorder.name(1, "client 2001:db8::1 /vol");
        let rows = [
            row(0, 0, 4096),
            row(1, 1, 8192),
            row(0, 30, 6000),
            row(0, 59, 0),
            row(0, 61, 512),
            row(0, 62, 1024),
        ];
        for row in rows {
            recorder.add(row);
        }
        recorder.flush();
        drop(recorder);
        thread.join().unwrap();
        assert_eq!(
            names(folder.path()),
            [
                "client-2001-db8--1--vol-20261130T200001Z.csv",
                "mail-20261130T200000Z.csv",
                "mail-20261130T200101Z.csv"
            ]
        );
        let text = fs::read(folder.path().join("mail-20261130T200000Z.csv")).unwrap();
        let requests = Requests::open(Text::from_bytes("mail", text).unwrap(), &ReadSettings::default());
        let requests = requests.unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(requests.len(), 2);
        for (request, row) in requests.iter().zip([rows[0], rows[2]]) {
            assert_eq!((request.at, request.kind, request.size), (row.at, row.kind, row.size));
            assert_eq!(request.offset, Some(row.offset));
        }
    }

    #[test]
    fn names_of_files_are_short_and_each_is_that_of_one_trace() {
        let folder = tempfile::tempdir().unwrap();
        let (mut recorder, thread, _) = start(folder.path(), 1 << 20);
        let long = "x".repeat(300);
        let given = [&long[..], &long[..299], "..", "a b", "a-b-7", "a:b"];
        for (trace, name) in (2..).zip(given) {
            recorder.name(trace, name);
            recorder.add(row(trace, 0, 4096));
        }
        recorder.flush();
        drop(recorder);
        thread.join().unwrap();
        let cut = "x".repeat(MOST_NAME);
        let second = format!("{cut}-3");
        let mut expected = [&cut[..], &second[..], "-", "a-b", "a-b-7", "a-b-7-7"]
            .map(|name| format!("{name}-20261130T200000Z.csv"));
        expected.sort_unstable();
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn files_of_a_killed_proxy_are_completed_without_their_last_part_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let whole = format!("{HEADER}{}", line(&row(0, 0, 4096)));
        write("mail.csv.part", &format!("{whole}17960"));
        write("web.csv.part", HEADER);
        write("mail-20261130T200000Z.csv", "kept");
        let (recorder, thread, _) = start(folder.path(), 1 << 20);
        drop(recorder);
        thread.join().unwrap();
        assert_eq!(names(folder.path()), ["mail-20261130T200000Z-1.csv", "mail-20261130T200000Z.csv"]);
        let text = fs::read_to_string(folder.path().join("mail-20261130T200000Z-1.csv")).unwrap();
        assert_eq!(text, whole);
    }

    #[test]
    fn a_recording_ends_at_its_limit_with_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let (mut recorder, thread, events) = start(folder.path(), 100);
        recorder.name(0, "mail");
        for seconds in 0..10 {
            recorder.add(row(0, seconds, 4096));
        }
        recorder.flush();
        drop(recorder);
        thread.join().unwrap();
        let events: Vec<String> = events.try_iter().map(|event| event.to_string()).collect();
        assert_eq!(events.len(), 1);
        assert!(events[0].ends_with("the limit of --trace-limit is reached"), "{}", events[0]);
        assert_eq!(names(folder.path()).len(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_of_the_option() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = RecorderSettings { folder: file.path().join("traces"), every: Nanos(1), limit: 1 };
        let error = Recorder::start(settings, Events::channel().0).err().unwrap().to_string();
        assert!(error.starts_with("--traces: "), "{error}");
    }
}
