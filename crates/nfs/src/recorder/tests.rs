//! Tests of recordings: files, names, limits, and what a killed proxy left.

use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc::Receiver;

use leeward_fabric::input::Text;
use leeward_traces::read::{ReadSettings, Requests};

use super::files::{HEADER, MOST_NAME, line};
use super::parts::whole_lines;
use super::*;
use crate::event::Event;

/// 2026-11-30 20:00:00.
const START: Nanos = Nanos(1_796_068_800 * Nanos::SECOND.0);

fn row(trace: u32, seconds: u64, size: u64) -> Row {
    let at = START.plus(Nanos(seconds * Nanos::SECOND.0 + 7));
    Row { trace, at, kind: if size > 5000 { Kind::Write } else { Kind::Read }, size, offset: 8192 }
}

fn start(folder: &Path, limit: u64) -> (Recorder, JoinHandle<()>, Receiver<Event>) {
    let settings = RecorderSettings { folder: folder.to_owned(), every: Nanos(60 * Nanos::SECOND.0), limit };
    let (events, receiver) = Events::channel();
    let (recorder, thread) = Recorder::start(settings, events).unwrap();
    (recorder, thread, receiver)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).filter(|name| name != LOCK).collect();
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

/// A file of a recording that lasted long: its lines, holes, and its last bytes. It counts the bytes that are read.
struct Long {
    head: Vec<u8>,
    size: u64,
    tail: Vec<u8>,
    at: u64,
    read: u64,
}

impl Seek for Long {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(0) => self.size,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(self.at)
    }
}

impl Read for Long {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = (into.len() as u64).min(self.size.saturating_sub(self.at)) as usize;
        let tail = self.size - self.tail.len() as u64;
        for (byte, at) in into[..length].iter_mut().zip(self.at..) {
            *byte = match at.checked_sub(tail) {
                Some(in_tail) => self.tail[in_tail as usize],
                None => self.head.get(at as usize).copied().unwrap_or(b'.'),
            };
        }
        (self.at, self.read) = (self.at + length as u64, self.read + length as u64);
        Ok(length)
    }
}

#[test]
fn a_file_that_a_killed_proxy_left_is_completed_from_its_ends_however_large_it_is() {
    let head = format!("{HEADER}{}", line(&row(0, 0, 4096))).into_bytes();
    for (tail, left_out) in [("\n", 0), ("\n17960", 5), (&format!("\n{}", "9".repeat(100_000))[..], 100_000)]
    {
        let (size, tail) = (1 << 40, tail.as_bytes().to_vec());
        let mut long = Long { head: head.clone(), size, tail, at: 0, read: 0 };
        let found = whole_lines(&mut long).unwrap();
        assert_eq!(found, Some((START.plus(Nanos(7)), size - left_out)));
        assert!(long.read < 300_000, "{} bytes read", long.read);
    }
    for text in ["", "seconds", HEADER, "seconds,kind,size,offset\n17960"] {
        assert_eq!(whole_lines(&mut io::Cursor::new(text)).unwrap(), None, "{text}");
    }
}

#[test]
fn a_recording_ends_at_its_limit_with_an_event_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let record = |limit: u64| {
        let (mut recorder, thread, events) = start(folder.path(), limit);
        recorder.name(0, "mail");
        for seconds in 0..10 {
            recorder.add(row(0, seconds, 4096));
        }
        recorder.flush();
        let lost = recorder.lost.clone();
        drop(recorder);
        thread.join().unwrap();
        let events: Vec<String> = events.try_iter().map(|event| event.to_string()).collect();
        (events, lost.load(Ordering::Relaxed))
    };
    let one = line(&row(0, 0, 4096)).len() as u64;
    // The header of a file counts too.
    for (limit, files, lost) in [(3 * one, 1, 8), (3 * one, 1, 10), (8 * one, 2, 6), (one, 2, 10)] {
        let (events, actual) = record(limit);
        assert_eq!((names(folder.path()).len(), actual), (files, lost));
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].ends_with("the limit of --trace-limit is reached"), "{}", events[0]);
    }
}

#[test]
fn a_trace_without_further_rows_is_complete_at_its_age() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, _thread, _events) = start(folder.path(), 1 << 20);
    recorder.name(0, "mail");
    recorder.add(row(0, 0, 4096));
    let wait_for = |expected: &str| {
        for _ in 0..1000 {
            if names(folder.path()) == [expected] {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{:?}", names(folder.path()));
    };
    recorder.flush_at(START.plus(Nanos(59 * Nanos::SECOND.0)));
    wait_for("mail.csv.part");
    recorder.flush_at(START.plus(Nanos(61 * Nanos::SECOND.0)));
    wait_for("mail-20261130T200000Z.csv");
}

#[test]
fn a_number_may_be_that_of_another_trace_and_rows_without_one_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, thread, _) = start(folder.path(), 1 << 20);
    recorder.name(0, "mail");
    recorder.add(row(0, 0, 4096));
    recorder.end(0);
    recorder.add(row(0, 1, 4096));
    recorder.name(0, "web");
    recorder.add(row(0, 2, 4096));
    recorder.flush();
    let lost = recorder.lost.clone();
    drop(recorder);
    thread.join().unwrap();
    assert_eq!(lost.load(Ordering::Relaxed), 1);
    assert_eq!(names(folder.path()), ["mail-20261130T200000Z.csv", "web-20261130T200002Z.csv"]);
}

#[test]
fn one_recording_at_a_time_has_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, thread, _events) = start(folder.path(), 1 << 20);
    recorder.name(0, "mail");
    recorder.add(row(0, 0, 4096));
    recorder.flush_at(START);
    let settings = RecorderSettings { folder: folder.path().to_owned(), every: Nanos(1), limit: 1 };
    let second = Recorder::start(settings, Events::channel().0).err().unwrap().to_string();
    assert!(second.contains("another process records here"), "{second}");
    drop(recorder);
    thread.join().unwrap();
    assert_eq!(names(folder.path()), ["mail-20261130T200000Z.csv"], "the first one goes on");
    let (recorder, thread, _) = start(folder.path(), 1 << 20);
    drop(recorder);
    thread.join().unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_the_option() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let settings = RecorderSettings { folder: file.path().join("traces"), every: Nanos(1), limit: 1 };
    let error = Recorder::start(settings, Events::channel().0).err().unwrap().to_string();
    assert!(error.starts_with("--traces: "), "{error}");
}
