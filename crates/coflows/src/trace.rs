//! The trace format of the coflow benchmark. Varys and Aalo (SIGCOMM 2014, 2015) publish an hour of Facebook's cluster
//! in this form.
//!
//! The first line has the number of racks and of coflows. Each further line is a coflow: id, arrival in milliseconds,
//! the number of mappers and their racks, the number of reducers and `rack:megabytes` for each. Racks count from 0.

use leeward_fabric::input::{InputError, Line, excerpt};

/// Bytes of a megabyte of the format (CoflowSim, CoflowBenchmarkTraceProducer).
pub const MEGABYTE: f64 = 1_048_576.0;

/// One coflow of the trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Shuffle {
    /// Id of the coflow.
    pub id: String,
    /// Arrival, in seconds.
    pub arrival: f64,
    /// Rack of each mapper.
    pub mappers: Vec<u32>,
    /// Rack of each reducer, and the megabytes that it receives in equal parts from all mappers.
    pub reducers: Vec<(u32, f64)>,
}

/// Reads the numbers of racks and of coflows from the first line.
///
/// # Errors
/// Returns an error with the field of an invalid value.
pub fn header(line: Line<'_>) -> Result<(u64, u64), InputError> {
    let mut words = Fields::of(line);
    let racks = words.count("racks", "the number of racks")?;
    let coflows = words.count("coflows", "the number of coflows")?;
    words.end()?;
    Ok((racks, coflows))
}

impl Shuffle {
    /// Reads a line of a trace with this number of racks.
    ///
    /// # Errors
    /// Returns an error with the field of an invalid value.
    pub fn parse(line: Line<'_>, racks: u32) -> Result<Shuffle, InputError> {
        let mut words = Fields::of(line);
        let id = words.next("id", "the number of the coflow")?.to_owned();
        let arrival = words.next("arrival", "the arrival in milliseconds")?;
        let arrival = line.number("arrival", "the arrival in milliseconds", arrival)? / 1e3;
        let rack =
            |field: &str, text: &str| match line.count(field, "a rack", text)? {
                id if id < u64::from(racks) => Ok(id as u32),
                id => Err(line
                    .error(field, format!("rack {id}: the first line announces racks 0 to {}", racks - 1))),
            };
        let count = words.count("mappers", "the number of mappers")?;
        let mut mappers = Vec::new();
        for _ in 0..count {
            mappers.push(rack("mappers", words.next("mappers", "the rack of a mapper")?)?);
        }
        let count = words.count("reducers", "the number of reducers")?;
        let mut reducers = Vec::new();
        for _ in 0..count {
            let word = words.next("reducers", "`rack:megabytes` of a reducer")?;
            let Some((id, megabytes)) = word.split_once(':') else {
                return Err(line.error("reducers", format!("`{}`: expected `rack:megabytes`", excerpt(word))));
            };
            reducers.push((rack("reducers", id)?, line.number("reducers", "megabytes", megabytes)?));
        }
        words.end()?;
        if mappers.is_empty() && !reducers.is_empty() {
            return Err(line.error("mappers", "no mappers, but there are reducers"));
        }
        Ok(Shuffle { id, arrival, mappers, reducers })
    }
}

/// The words of a line, in order.
struct Fields<'a> {
    line: Line<'a>,
    words: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Fields<'a> {
    fn of(line: Line<'a>) -> Self {
        Fields { line, words: line.text.split_ascii_whitespace() }
    }

    fn next(&mut self, field: &str, expected: &str) -> Result<&'a str, InputError> {
        let missing = || self.line.error(field, format!("the line ends here; expected {expected}"));
        self.words.next().ok_or_else(missing)
    }

    fn count(&mut self, field: &str, expected: &str) -> Result<u64, InputError> {
        let word = self.next(field, expected)?;
        self.line.count(field, expected, word)
    }

    fn end(&mut self) -> Result<(), InputError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => {
                let message = format!("`{}` follows; the line should end here", excerpt(word));
                Err(self.line.error("end of line", message))
            }
        }
    }
}
