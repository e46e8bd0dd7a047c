//! Sequence numbers of exports: a gap in them is a number of records or datagrams that are not in the files.

use std::collections::BTreeMap;

use super::Exporter;
use crate::discards::{Discards, Reason};

/// Largest gap that is a loss; beyond it, the exporter started again.
const LONGEST_GAP: u32 = 1 << 20;
/// Greatest distance of a number before the expected one that belongs to a datagram that arrived late.
const LATEST: u32 = 1 << 12;
/// Largest number of streams whose losses are counted.
const MOST_STREAMS: usize = 10_000;

/// Units of a sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Records,
    Datagrams,
}

/// A message that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Its sequence number.
    pub number: u32,
    /// Number of units in the message; `None` if a part of it was not readable.
    pub units: Option<u32>,
    /// Numbers of other things in the message, by which some exporters count.
    pub others: [Option<u32>; 2],
}

/// The sequence numbers of one stream.
#[derive(Default)]
struct Stream {
    last: Option<Arrived>,
    /// Number of messages whose number follows from the units in the message before.
    hits: u64,
    /// The same for the other things that exporters count.
    other_hits: [u64; 2],
    lost: u64,
    read: u64,
}

/// The streams of all exporters, with the number of a domain, an engine or an agent.
#[derive(Default)]
pub struct Sequences(BTreeMap<(Exporter, u32), (Unit, Stream)>);

impl Sequences {
    /// Stores that a message has arrived.
    pub fn arrive(&mut self, exporter: Exporter, stream: u32, unit: Unit, arrived: Arrived) {
        let key = (exporter, stream);
        if self.0.len() < MOST_STREAMS || self.0.contains_key(&key) {
            self.0.entry(key).or_insert_with(|| (unit, Stream::default())).1.arrive(arrived);
        }
    }

    /// Forgets the expected numbers: files need not follow each other.
    pub fn pause(&mut self) {
        self.0.values_mut().for_each(|(_, stream)| stream.last = None);
    }

    /// Counts what was lost.
    pub fn finish(&mut self, discards: &mut Discards) {
        for ((exporter, number), (unit, stream)) in std::mem::take(&mut self.0) {
            // An exporter that counts other things has losses of an unknown number.
            if stream.other_hits.iter().any(|&hits| hits > stream.hits + 1) {
                continue;
            }
            let unit = match unit {
                Unit::Records => "records",
                Unit::Datagrams => "datagrams",
            };
            discards.count_all(Reason::LostExports, unit, stream.lost, 0, || {
                let (protocol, read) = (exporter.protocol, stream.read);
                format!("{protocol} of {}, stream {number}: {read} {unit} arrived", exporter.name())
            });
        }
    }
}

impl Stream {
    fn arrive(&mut self, arrived: Arrived) {
        let last = self.last.replace(arrived);
        self.read += u64::from(arrived.units.unwrap_or(0));
        let Some((last, step)) = last.and_then(|last| Some((last, last.units?))) else { return };
        let after = |step: u32| arrived.number.wrapping_sub(last.number.wrapping_add(step));
        for (hits, other) in self.other_hits.iter_mut().zip(last.others) {
            *hits += u64::from(other.is_some_and(|step| after(step) == 0));
        }
        let ahead = after(step);
        self.hits += u64::from(ahead == 0);
        if (1..=LONGEST_GAP).contains(&ahead) {
            self.lost += u64::from(ahead);
        } else if ahead >= u32::MAX - LATEST && self.lost > 0 {
            // The message was counted as lost, and arrives late.
            self.lost = self.lost.saturating_sub(arrived.units.unwrap_or(0).into());
            self.last = Some(last);
        }
    }
}
