//! Latencies of the requests of a replay.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use leeward_fabric::Nanos;
use leeward_requests::LatencyHistogram;
use leeward_traces::Kind;
use serde::Serialize;

use super::ReplaySettings;
use super::plan::Planned;
use crate::counters::Latencies;

/// First line of the rows.
const HEADER: &str = "seconds,kind,size,offset,late_s,latency_s,state\n";

/// State of a request at the end of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Carried out by the server.
    Done,
    /// A read with fewer bytes than were requested.
    Short,
    /// Rejected by the server.
    Failed,
    /// Not answered.
    Unanswered,
}

impl State {
    /// Name in rows.
    pub fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Short => "short",
            State::Failed => "failed",
            State::Unanswered => "unanswered",
        }
    }
}

/// A request of a replay. Times are after its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Time in the trace; in a closed loop, the time at which the request was sent.
    pub due: Nanos,
    /// Time from there to the moment at which the call was handed to its connection.
    pub late: Nanos,
    /// Time from `due` to the end of the reply; `None` without one.
    pub latency: Option<Nanos>,
    /// Read or write.
    pub kind: Kind,
    /// Payload in bytes.
    pub size: u32,
    /// Place in the file.
    pub offset: u64,
    /// State.
    pub state: State,
}

impl Row {
    /// A request that has been sent.
    pub(super) fn sent(planned: Planned, due: Nanos, late: Nanos) -> Row {
        let Planned { kind, size, offset, .. } = planned;
        Row { due, late, latency: None, kind, size, offset, state: State::Unanswered }
    }
}

/// Results of a replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Export.
    pub export: String,
    /// Name of the file.
    pub file: String,
    /// Time of the start, in seconds since 1970.
    pub start_s: f64,
    /// Time from the start to the last reply, in seconds.
    pub elapsed_s: f64,
    /// Number of requests that were sent.
    pub requests: u64,
    /// Number of reads that were carried out.
    pub reads: u64,
    /// Number of writes that were carried out.
    pub writes: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// Number of requests that the server rejected.
    pub failed: u64,
    /// Number of reads with fewer bytes than were requested.
    pub short: u64,
    /// Number of requests that were not answered.
    pub unanswered: u64,
    /// Reason of the first failure.
    pub problem: Option<String>,
    /// Reason for which a file that the replay made is still in the export.
    pub left: Option<String>,
    /// Largest number of requests that were open at once.
    pub most_open: usize,
    /// Latencies from the time in the trace to the end of the reply.
    pub latency: Latencies,
    /// Times by which requests were sent late.
    pub lateness: Latencies,
}

/// Requests of a replay as they end.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    requests: u64,
    /// Numbers and bytes of reads and of writes.
    carried: [(u64, u64); 2],
    failed: u64,
    short: u64,
    unanswered: u64,
    problem: Option<String>,
    most_open: usize,
    ended: Nanos,
    latency: LatencyHistogram,
    lateness: LatencyHistogram,
    rows: Option<Vec<Row>>,
}

impl Outcome {
    /// No requests yet; with rows if they are to be written.
    pub fn new(has_rows: bool) -> Outcome {
        Outcome { rows: has_rows.then(Vec::new), ..Outcome::default() }
    }

    /// Counts the requests that are open.
    pub fn open(&mut self, count: usize) {
        self.most_open = self.most_open.max(count);
    }

    /// A request has ended; `problem` is the reason of a failure.
    pub fn add(&mut self, row: Row, problem: Option<String>) {
        self.requests += 1;
        self.lateness.add(row.late.0);
        match row.state {
            State::Failed => self.failed += 1,
            State::Unanswered => self.unanswered += 1,
            State::Done | State::Short => {
                self.short += u64::from(row.state == State::Short);
                let (count, bytes) = &mut self.carried[usize::from(row.kind == Kind::Write)];
                *count += 1;
                *bytes += u64::from(row.size);
                if let Some(latency) = row.latency {
                    self.latency.add(latency.0);
                }
            }
        }
        if let Some(latency) = row.latency {
            self.ended = self.ended.max(row.due.plus(latency));
        }
        if self.problem.is_none() {
            self.problem = problem;
        }
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
    }

    /// Writes the rows in order of their times.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn write_rows(&self, file: File) -> io::Result<()> {
        let mut rows: Vec<&Row> = self.rows.iter().flatten().collect();
        rows.sort_by_key(|row| row.due);
        let mut out = BufWriter::new(file);
        out.write_all(HEADER.as_bytes())?;
        for Row { due, late, latency, kind, size, offset, state } in rows {
            let kind = if *kind == Kind::Read { "read" } else { "write" };
            let (due, late, state) = (seconds(*due), seconds(*late), state.name());
            let latency = latency.map(seconds).unwrap_or_default();
            writeln!(out, "{due},{kind},{size},{offset},{late},{latency},{state}")?;
        }
        out.flush()
    }

    /// The results of a replay that began at this time since 1970.
    pub fn summary(&self, settings: &ReplaySettings, start: Nanos) -> Summary {
        let [(reads, read_bytes), (writes, written_bytes)] = self.carried;
        Summary {
            export: settings.export.to_string(),
            file: settings.file.clone(),
            start_s: start.as_secs_f64(),
            elapsed_s: self.ended.as_secs_f64(),
            requests: self.requests,
            reads,
            writes,
            read_bytes,
            written_bytes,
            failed: self.failed,
            short: self.short,
            unanswered: self.unanswered,
            problem: self.problem.clone(),
            left: None,
            most_open: self.most_open,
            latency: Latencies::of(&self.latency),
            lateness: Latencies::of(&self.lateness),
        }
    }
}

/// A time in seconds with all its digits.
fn seconds(time: Nanos) -> String {
    let second = Nanos::SECOND.0;
    format!("{}.{:09}", time.0 / second, time.0 % second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::ReplayArguments;

    fn row(millis: u64, latency: Option<u64>, state: State) -> Row {
        let planned = Planned { at: Nanos(0), kind: Kind::Write, size: 4096, offset: 8192 };
        let sent = Row::sent(planned, Nanos(millis * 1_000_000), Nanos(1000));
        Row { latency: latency.map(|millis| Nanos(millis * 1_000_000)), state, ..sent }
    }

    #[test]
    fn a_summary_counts_each_request_once_and_rows_are_in_order_of_time() {
        let mut outcome = Outcome::new(true);
        outcome.add(row(20, Some(5), State::Done), None);
        outcome.add(row(10, Some(40), State::Short), None);
        outcome.add(row(30, Some(1), State::Failed), Some("stale file handle".to_owned()));
        outcome.add(row(40, None, State::Unanswered), None);
        outcome.open(3);
        let given = ReplayArguments { nfs: "nas:/vol".to_owned(), ..ReplayArguments::default() };
        let summary = outcome.summary(&ReplaySettings::new(given).unwrap(), Nanos(7 * Nanos::SECOND.0));
        assert_eq!((summary.requests, summary.writes, summary.written_bytes), (4, 2, 8192));
        assert_eq!((summary.failed, summary.short, summary.unanswered, summary.most_open), (1, 1, 1, 3));
        assert_eq!((summary.latency.requests, summary.lateness.requests), (2, 4));
        assert_eq!((summary.start_s, summary.elapsed_s), (7.0, 0.05));
        assert_eq!(summary.problem.as_deref(), Some("stale file handle"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        outcome.write_rows(File::create(&path).unwrap()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], HEADER.trim_end());
        assert_eq!(lines[1], "0.010000000,write,4096,8192,0.000001000,0.040000000,short");
        assert_eq!(lines[4], "0.040000000,write,4096,8192,0.000001000,,unanswered");
    }
}
