//! `solstice-paper`: Solstice as published. It adds days until the packet switch can carry the rest in the time used so
//! far.
//!
//! The scheduler stuffs demand and takes perfect matchings of entries of at least a threshold (Solstice, CoNEXT 2015:
//! QuickStuff and BigSlice). The threshold is a power of two, and halves when no such matching exists. The total length
//! of all days has no bound. Lengths are exact to the nanosecond.

use leeward_registry::{Registration, schema, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::matcher::{Matcher, NONE};
use super::super::{CircuitsError, Guarantees, Scheduler};
use super::fill;
use crate::demand::sums;
use crate::{Day, DemandMatrix, Matching, Network, Schedule};

/// Settings of `solstice-paper`: none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PaperSettings {}

/// The `solstice-paper` scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paper;

const NAME: &str = "solstice-paper";

pub(in super::super) const REGISTRATION: Registration<dyn Scheduler> = Registration {
    name: NAME,
    aliases: &[],
    summary: "perfect matchings until the packet switch can carry the rest, without a limit on their length",
    source: "Solstice (CoNEXT 2015)",
    schema: schema::<PaperSettings>,
    make: |text| {
        let PaperSettings {} = settings(NAME, text)?;
        Ok(Box::new(Paper))
    },
};

impl Scheduler for Paper {
    fn name(&self) -> &str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::default()
    }

    fn schedule(&self, demand: &DemandMatrix, network: &Network) -> Result<Schedule, CircuitsError> {
        let racks = demand.racks();
        let mut slices = Slices::new(demand);
        let mut threshold = match demand.bytes().iter().max() {
            Some(&most) if most > 0 => 1u64 << most.ilog2(),
            _ => 0,
        };
        let (mut days, mut length) = (Vec::new(), 0u64);
        slices.set_edges(threshold);
        while threshold > 0 && network.packets_take(slices.busiest()).0 > length {
            if slices.matcher.extend(0..racks) < racks {
                threshold /= 2;
                slices.set_edges(threshold);
                continue;
            }
            let (bytes, sources) = slices.take(threshold);
            // A slice that has only stuffing takes no time.
            if sources.iter().any(Option::is_some) {
                let matching = Matching::new(sources)
                    .map_err(|error| CircuitsError::Matching { day: days.len(), error })?;
                let day = Day { matching, length: network.takes(bytes) };
                length = length.saturating_add(day.length.0).saturating_add(network.night().0);
                days.push(day);
            }
        }
        Ok(Schedule::new(racks, network.night(), days)?)
    }
}

/// Stuffed demand that perfect matchings decompose, row by row of destinations.
pub(in super::super) struct Slices {
    racks: usize,
    stuffed: Vec<u64>,
    /// Part of it that is real demand, with the sums of this part.
    left: Vec<u64>,
    of_destination: Vec<u64>,
    of_source: Vec<u64>,
    pub(in super::super) matcher: Matcher,
}

impl Slices {
    fn new(demand: &DemandMatrix) -> Slices {
        Slices::of(demand.racks(), demand.bytes())
    }

    /// Stuffs demand given by rows of sources.
    pub(in super::super) fn of(racks: usize, by_source: &[u64]) -> Slices {
        let transposed =
            |rows: &[u64]| (0..rows.len()).map(|at| rows[at % racks * racks + at / racks]).collect();
        let left: Vec<u64> = transposed(by_source);
        let mut list: Vec<u32> =
            (0..).zip(by_source).filter(|&(_, &entry)| entry > 0).map(|(at, _)| at).collect();
        let mut stuffed = by_source.to_vec();
        fill::stuff(racks, &mut stuffed, &mut list);
        let (of_destination, of_source) = sums(racks, &left);
        let stuffed = transposed(&stuffed);
        Slices { racks, stuffed, left, of_destination, of_source, matcher: Matcher::new(racks) }
    }

    /// Makes edges of the entries of at least `threshold`.
    pub(in super::super) fn set_edges(&mut self, threshold: u64) {
        self.matcher.set_edges(&self.stuffed, |entry| entry >= threshold);
    }

    /// Remaining bytes of the busiest port.
    fn busiest(&self) -> u64 {
        self.of_destination.iter().chain(&self.of_source).copied().max().unwrap_or(0)
    }

    /// Subtracts the smallest entry of the matching, which is perfect, from all its entries. Returns that entry, and
    /// the sources of circuits that carry real demand. Entries that are then below `threshold` are no longer edges.
    pub(in super::super) fn take(&mut self, threshold: u64) -> (u64, Vec<Option<u32>>) {
        let sources: Vec<u32> = self.matcher.source_of().to_vec();
        debug_assert!(!sources.contains(&NONE), "the matching is perfect");
        let entry =
            |(destination, &source): (usize, &u32)| self.stuffed[destination * self.racks + source as usize];
        let entries = sources.iter().enumerate().map(entry);
        let bytes = entries.min().unwrap_or(0);
        let mut carrying = vec![None; self.racks];
        for (destination, source) in sources.into_iter().enumerate() {
            let at = destination * self.racks + source as usize;
            self.stuffed[at] -= bytes;
            if self.stuffed[at] < threshold {
                self.matcher.remove(destination, source as usize);
            }
            let served = self.left[at].min(bytes);
            if served > 0 {
                carrying[destination] = Some(source);
                self.left[at] -= served;
                self.of_destination[destination] -= served;
                self.of_source[source as usize] -= served;
            }
        }
        (bytes, carrying)
    }
}
