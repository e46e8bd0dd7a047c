//! Sampling rates of NetFlow and IPFIX exporters. An exporter states its rate in each record, or once in options that
//! records refer to.

use std::collections::BTreeMap;

use super::fields::{Fields, field};
use super::templates::SCOPE;

/// Largest number of samplers of one exporter.
const MOST_SAMPLERS: usize = 10_000;
/// Number of the scope in NetFlow 9 that is an interface.
const INTERFACE_SCOPE: u16 = 2;

/// Records that a sampling rate applies to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// All records that no other rate applies to.
    All,
    /// Records with the number of a sampler or selector.
    Sampler(u64),
    /// Records of an interface.
    Interface(u64),
}

/// A stated sampling rate.
#[derive(Clone, Copy, Debug)]
struct Stated {
    first: u32,
    latest: u32,
}

/// The rates of one exporter.
#[derive(Default)]
pub struct Sampling {
    rates: BTreeMap<Scope, Stated>,
    /// Number of records that were counted without a rate.
    unsampled: u64,
}

/// Sampling rate of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    Stated(u32),
    /// The exporter states the rate in options, or not at all.
    Of(Sampler),
}

/// The names of a record that options may refer to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sampler {
    sampler: Option<u64>,
    interfaces: [Option<u64>; 2],
}

impl Sampling {
    /// Reads a record of options. If it is the first with a sampling rate, returns the number of records that were
    /// counted before it.
    pub fn learn(&mut self, options: &Fields<'_>) -> u64 {
        stated_rate(options).map_or(0, |rate| self.state(scope(options), rate))
    }

    /// Stores the rate of all records of the exporter.
    pub fn learn_all(&mut self, rate: u32) -> u64 {
        self.state(Scope::All, rate)
    }

    fn state(&mut self, scope: Scope, rate: u32) -> u64 {
        let first = self.rates.is_empty();
        let room = self.rates.len() < MOST_SAMPLERS;
        match self.rates.get_mut(&scope) {
            Some(stated) => stated.latest = rate,
            None if room => drop(self.rates.insert(scope, Stated { first: rate, latest: rate })),
            None => {}
        }
        if first && rate > 1 { std::mem::take(&mut self.unsampled) } else { 0 }
    }

    /// The rate of a record that arrives now.
    pub fn now(&self, sampler: Sampler) -> Option<u32> {
        self.find(sampler).map(|stated| stated.latest)
    }

    /// The rate of a record that arrived before its rate.
    pub fn before(&self, sampler: Sampler) -> Option<u32> {
        self.find(sampler).map(|stated| stated.first)
    }

    /// Stores that a record is counted without a rate.
    pub fn skip(&mut self) {
        self.unsampled += 1;
    }

    fn find(&self, of: Sampler) -> Option<Stated> {
        let rate = |scope: Scope| self.rates.get(&scope).copied();
        let interface = || of.interfaces.iter().flatten().find_map(|&number| rate(Scope::Interface(number)));
        if let Some(number) = of.sampler {
            return rate(Scope::Sampler(number)).or_else(interface).or_else(|| rate(Scope::All));
        }
        // Many exporters have one sampler, and do not state its number in each record.
        let only = || {
            let mut rates = self.rates.iter().filter(|(scope, _)| !matches!(scope, Scope::Interface(_)));
            let (_, &first) = rates.next()?;
            rates.next().is_none().then_some(first)
        };
        interface().or_else(|| rate(Scope::All)).or_else(only)
    }
}

/// The rate of a record: in its fields, or in options that its fields refer to.
pub fn rate(record: &Fields<'_>) -> Rate {
    match stated_rate(record) {
        Some(rate) => Rate::Stated(rate),
        None => Rate::Of(Sampler {
            sampler: sampler(record),
            interfaces: [field::IN_INTERFACE, field::OUT_INTERFACE].map(|number| record.number(number)),
        }),
    }
}

fn scope(options: &Fields<'_>) -> Scope {
    let of_scope = || {
        options.of(SCOPE, INTERFACE_SCOPE).map(|bytes| bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    let interface =
        || [field::IN_INTERFACE, field::OUT_INTERFACE].iter().find_map(|&number| options.number(number));
    match sampler(options) {
        Some(number) => Scope::Sampler(number),
        None => of_scope().or_else(interface).map_or(Scope::All, Scope::Interface),
    }
}

fn sampler(fields: &Fields<'_>) -> Option<u64> {
    // The number 0 means that there is no sampler.
    fields.number(field::SELECTOR).or_else(|| fields.number(field::SAMPLER)).filter(|&id| id > 0)
}

/// The rate in these fields, rounded to a whole number; `None` if they state none.
fn stated_rate(fields: &Fields<'_>) -> Option<u32> {
    let whole = |number: u64| u32::try_from(number).ok().filter(|&rate| rate > 0);
    let ratio = |total: u64, part: u64| {
        let rounded = total.checked_add(part / 2)?.checked_div(part)?;
        whole(rounded)
    };
    match (fields.number(field::PACKET_INTERVAL), fields.number(field::PACKET_SPACE)) {
        (Some(taken), Some(passed)) => return ratio(taken.checked_add(passed)?, taken),
        // Without the number of packets that are passed over, exporters mean one packet in an interval.
        (Some(interval), None) => return whole(interval),
        _ => {}
    }
    if let (Some(size), Some(population)) =
        (fields.number(field::SAMPLE_SIZE), fields.number(field::SAMPLE_POPULATION))
    {
        return ratio(population, size);
    }
    if let Some(probability) = fields.float(field::PROBABILITY) {
        let rate = (1.0 / probability).round();
        return (1.0..=f64::from(u32::MAX)).contains(&rate).then_some(rate as u32);
    }
    [field::SAMPLING_INTERVAL, field::SAMPLER_INTERVAL]
        .into_iter()
        .find_map(|number| fields.number(number).and_then(whole))
}
