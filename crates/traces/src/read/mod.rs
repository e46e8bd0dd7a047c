//! Reads traces: files of several dialects, as a stream of requests in order of time.
//!
//! Memory does not grow with the trace. Files are plain or gzip. A missing or invalid value is an error with the
//! file, the line and the field, and ends the stream. Every line is a request, or is counted by reason ([`Tally`]), so
//! files may be concatenated: names of columns and sums of blkparse may come again. The dialects are described in `docs/reference/trace-files.md`.
//!
//! ```
//! use leeward_fabric::input::Text;
//! use leeward_traces::read::{ReadSettings, Requests};
//!
//! let text = Text::from_bytes("t.csv", *b"seconds,kind,size\n0.5,read,4096\n0.75,write,8192\n")?;
//! let requests = Requests::open(text, &ReadSettings::default())?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(requests[1].size, 8192);
//! # Ok::<(), leeward_fabric::input::InputError>(())
//! ```

mod alibaba;
mod azure;
mod blktrace;
mod compactor;
mod dialect;
mod fields;
mod fio_iolog;
mod fio_log;
mod leeward;
mod msr;
mod spc;
mod systor;
mod tally;
mod tencent;
mod twitter;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Line, Lines, Text};

use crate::Request;

pub use blktrace::Event;
pub use dialect::Dialect;
pub use tally::{Rest, Tally};

/// Settings for reading a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadSettings {
    /// Dialect of the trace; by default it is detected from the first line.
    pub dialect: Option<Dialect>,
    /// Event of a block trace that counts as a request. Other dialects accept only the default.
    pub event: Event,
    /// Restricts the trace to this volume, in dialects whose lines name one: `HOST.DISK` of MSR, the ASU of SPC,
    /// `MAJOR,MINOR` of blktrace. By default all requests belong to one volume.
    pub volume: Option<String>,
    /// A request with more bytes than this is an error, because a damaged line is more likely than such a large
    /// request.
    pub largest: u64,
    /// Sorts the requests by time. All of them are then in memory. Otherwise a request before the one above it is an error.
    pub sort: bool,
}

impl Default for ReadSettings {
    fn default() -> ReadSettings {
        ReadSettings { dialect: None, event: Event::default(), volume: None, largest: 1 << 30, sort: false }
    }
}

/// Result of parsing a line.
enum ParsedLine {
    /// A request.
    Request(Request),
    /// A request whose size had a fraction of a byte.
    Rounded(Request),
    /// A line without a request of this workload.
    Rest(Rest),
}

impl ParsedLine {
    fn of(request: Request, is_rounded: bool) -> ParsedLine {
        if is_rounded { ParsedLine::Rounded(request) } else { ParsedLine::Request(request) }
    }
}

/// Names of a dialect's fields, for errors.
struct Fields {
    at: &'static str,
    size: &'static str,
}

/// Reads the lines of a dialect.
trait Parse {
    /// Names of the time and the size of a request.
    fn fields(&self) -> Fields;

    /// Parses a line. The caller checks times, sizes and volumes.
    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError>;

    /// Number of events that the trace says its tracer lost, so far.
    fn lost(&self) -> u64 {
        0
    }

    /// Fault of the whole trace, known after its last line.
    fn fault(&self) -> Option<&'static str> {
        None
    }
}

/// The requests of a trace, in order of time. The stream ends after the first error.
pub struct Requests {
    lines: Lines,
    parser: Box<dyn Parse>,
    dialect: Dialect,
    /// Result for the line that determined the dialect, until it is consumed.
    first: Option<Result<ParsedLine, InputError>>,
    last: Option<Nanos>,
    largest: u64,
    volume: Option<String>,
    tally: Tally,
    finished: bool,
    /// Sorts the requests, once they are all read.
    sort: bool,
    sorted: std::vec::IntoIter<Request>,
}

impl Requests {
    /// Reads the beginning of a trace.
    ///
    /// # Errors
    /// Fails if the first line is of no known dialect, and if the text is empty or cannot be read. Also fails if a
    /// setting selects a volume or an event and the dialect has none.
    pub fn open(text: Text, settings: &ReadSettings) -> Result<Requests, InputError> {
        let mut lines = text.lines();
        // An empty text has its own error.
        let Some(line) = lines.next_line()? else { return Err(lines.error("the file is empty")) };
        let dialect = match settings.dialect {
            Some(dialect) => dialect,
            None => Dialect::detect(&line)?,
        };
        if settings.volume.is_some() && !dialect.names_volumes() {
            let message = format!("a trace of dialect {dialect} has one volume; leave `volume` out");
            return Err(lines.error(message));
        }
        if settings.event != Event::default() && dialect != Dialect::Blktrace {
            let message = format!("a trace of dialect {dialect} has no events; leave `event` out");
            return Err(lines.error(message));
        }
        let (parser, first) = dialect.parser(&line, settings)?;
        Ok(Requests {
            lines,
            parser,
            dialect,
            first: Some(Ok(first)),
            last: None,
            largest: settings.largest,
            volume: settings.volume.clone(),
            tally: Tally { lines: 1, ..Tally::default() },
            finished: false,
            sort: settings.sort,
            sorted: Vec::new().into_iter(),
        })
    }

    /// The dialect, from the settings or detected.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Account of the lines read so far. Lines are requests or the rest: `lines == requests + sum of rest`.
    pub fn tally(&self) -> Tally {
        Tally { lost: self.parser.lost(), ..self.tally }
    }

    fn read(&mut self) -> Result<Option<Request>, InputError> {
        loop {
            let parsed = match self.first.take() {
                Some(first) => first?,
                None => match self.lines.next_line()? {
                    Some(line) => {
                        self.tally.lines += 1;
                        let last = self.last.filter(|_| !self.sort);
                        parse_checked(&mut *self.parser, &line, last, self.largest)?
                    }
                    None if self.last.is_none() => return Err(self.no_requests()),
                    None => {
                        return self.parser.fault().map_or(Ok(None), |fault| Err(self.lines.error(fault)));
                    }
                },
            };
            match parsed {
                ParsedLine::Request(request) | ParsedLine::Rounded(request) => {
                    self.tally.rounded += u64::from(matches!(parsed, ParsedLine::Rounded(_)));
                    self.last = Some(request.at);
                    self.tally.requests += 1;
                    return Ok(Some(request));
                }
                ParsedLine::Rest(reason) => self.tally.add(reason),
            }
        }
    }

    /// Reads all requests, and sorts them. Requests of one time keep their order.
    fn sort(&mut self) -> Result<(), InputError> {
        let mut requests = Vec::new();
        let (mut latest, mut before) = (Nanos(0), Nanos(0));
        while let Some(request) = self.read()? {
            self.tally.moved += u64::from(request.at < before);
            self.tally.disorder = self.tally.disorder.max(latest.since(request.at));
            (latest, before) = (latest.max(request.at), request.at);
            requests.push(request);
        }
        requests.sort_by_key(|request: &Request| request.at);
        self.sorted = requests.into_iter();
        Ok(())
    }

    /// Error for a trace without a request.
    fn no_requests(&self) -> InputError {
        match &self.volume {
            Some(volume) => self.lines.error(format!(
                "no request to volume `{}`; expected one of {}",
                leeward_fabric::input::excerpt(volume),
                self.dialect.volumes()
            )),
            None => self.lines.error("no requests; expected at least one"),
        }
    }
}

impl Iterator for Requests {
    type Item = Result<Request, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = match (self.sort, self.tally.requests) {
            (false, _) => self.read().transpose(),
            (true, 0) => match self.sort() {
                Ok(()) => self.sorted.next().map(Ok),
                Err(error) => Some(Err(error)),
            },
            (true, _) => self.sorted.next().map(Ok),
        };
        self.finished = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Parses a line, and checks its request against the time `last` of the previous one.
fn parse_checked(
    parser: &mut dyn Parse,
    line: &Line<'_>,
    last: Option<Nanos>,
    largest: u64,
) -> Result<ParsedLine, InputError> {
    let parsed = parser.line(line)?;
    let (ParsedLine::Request(request) | ParsedLine::Rounded(request)) = parsed else { return Ok(parsed) };
    let fields = parser.fields();
    if let Some(last) = last.filter(|&last| request.at < last) {
        let (at, last) = (fields::exact(request.at), fields::exact(last));
        let message = format!(
            "{at} s is before the request above it ({last} s): sort the lines by time, or set `sort`"
        );
        return Err(line.error(fields.at, message));
    }
    if request.size == 0 {
        return Ok(ParsedLine::Rest(Rest::Empty));
    }
    if request.size > largest {
        let message = format!("{} bytes; expected at most {largest}", request.size);
        return Err(line.error(fields.size, message));
    }
    if request.offset.is_some_and(|offset| offset.checked_add(request.size).is_none()) {
        return Err(line.error("offset", "the request ends beyond any volume; expected an offset in bytes"));
    }
    Ok(parsed)
}
