//! Disks, where a request takes a seek and a transfer.

use std::collections::VecDeque;

use super::table::{TableError, check_increasing, interpolate};
use crate::error::WorkError;
use crate::{Kind, Request};

/// Seconds to move the head from one request to the next, including rotation.
#[derive(Clone, PartialEq, Debug)]
pub enum Seek {
    /// Rows of (distance in bytes, seconds), interpolated linearly. Below the first distance and above the last one,
    /// the nearest row applies.
    Table(Vec<(u64, f64)>),
    /// The same time for every request, sequential or not: a model that ignores offsets (SLO figure 3.8).
    Constant(f64),
}

/// A disk (SLO section 2.3.2).
///
/// A request that starts at the end of one of the last few requests continues their stream and has no seek. The seek
/// time of any other request depends on the distance between its offset and the offset of the previous request. The
/// very first request takes the seek of the table's largest distance. After the seek, the request is transferred at the
/// rate of its kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Disk {
    seek: Seek,
    read_rate: f64,
    write_rate: f64,
    history: usize,
}

/// State of a disk's head: the start of the last request, and the ends of the last few requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    last: Option<u64>,
    ends: VecDeque<u64>,
}

/// Largest number of requests in the history.
pub(super) const LONGEST_HISTORY: usize = 1024;

impl Disk {
    /// A disk with transfer rates in bytes per second. The disk recognises streams among the last `history` requests,
    /// at most 1024; with 0, it recognises none.
    ///
    /// # Errors
    /// Fails for a seek table that is empty or has distances that do not increase. Also fails for a time that is
    /// negative or above 1e6 s, and for a rate outside of 1 to 1e18. An error about the constant or about a rate has
    /// row 0.
    pub fn new(seek: Seek, read_rate: f64, write_rate: f64, history: usize) -> Result<Disk, TableError> {
        let times: Vec<f64> = match &seek {
            Seek::Table(rows) => {
                check_increasing(rows)?;
                rows.iter().map(|row| row.1).collect()
            }
            Seek::Constant(seconds) => vec![*seconds],
        };
        for (row, number) in times.into_iter().enumerate() {
            if !(0.0..=1e6).contains(&number) {
                return Err(TableError::Number { row, number, expected: "seconds from 0 to 1e6" });
            }
        }
        for number in [read_rate, write_rate] {
            if !(1.0..=1e18).contains(&number) {
                let expected = "a rate from 1 to 1e18 bytes a second";
                return Err(TableError::Number { row: 0, number, expected });
            }
        }
        Ok(Disk { seek, read_rate, write_rate, history: history.min(LONGEST_HISTORY) })
    }

    /// The same disk, with this seek time for every request.
    ///
    /// # Errors
    /// Fails for a time that is negative or above 1e6 s.
    pub fn with_constant_seek(&self, seconds: f64) -> Result<Disk, TableError> {
        Disk::new(Seek::Constant(seconds), self.read_rate, self.write_rate, self.history)
    }

    /// Seconds of service of a request after the requests in `head`. The call also records the request in `head`.
    ///
    /// # Errors
    /// Fails for a request without an offset, unless the seek time is constant.
    pub fn seconds(&self, head: &mut Head, request: &Request) -> Result<f64, WorkError> {
        let rate = if request.kind == Kind::Read { self.read_rate } else { self.write_rate };
        let transfer = request.size as f64 / rate;
        let rows = match &self.seek {
            Seek::Constant(seconds) => return Ok(seconds + transfer),
            Seek::Table(rows) => rows,
        };
        let Some(offset) = request.offset else {
            return Err(WorkError::NoOffset { at: request.at.as_secs_f64() });
        };
        let seek = match head.last {
            _ if head.ends.contains(&offset) => 0.0,
            Some(last) => interpolate(rows, offset.abs_diff(last)),
            None => rows[rows.len() - 1].1,
        };
        head.last = Some(offset);
        head.remember(offset, offset.saturating_add(request.size), self.history);
        Ok(seek + transfer)
    }
}

impl Head {
    /// Records a request. The end of a continued stream replaces the previous end of that stream.
    fn remember(&mut self, start: u64, end: u64, history: usize) {
        match self.ends.iter().position(|&known| known == start) {
            Some(at) => drop(self.ends.remove(at)),
            None if self.ends.len() >= history => drop(self.ends.pop_front()),
            None => {}
        }
        if history > 0 {
            self.ends.push_back(end);
        }
    }
}
