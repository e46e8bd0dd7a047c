//! Sampling rates of NetFlow and IPFIX exporters. An exporter states its rate in each record, or once in options that
//! records refer to.

use std::collections::BTreeMap;

use super::fields::{Fields, field, to_number};
use super::templates::SCOPE;

/// Largest number of samplers of one exporter.
const MOST_SAMPLERS: usize = 10_000;
/// Numbers of scopes in NetFlow 9 that are an interface and a template.
const INTERFACE_SCOPE: u16 = 2;
const TEMPLATE_SCOPE: u16 = 5;
/// Numbers of scopes in NetFlow 9, and fields of IPFIX, that are a part of an exporter which records do not name: line
/// cards, caches, metering processes.
const PART_SCOPES: [u16; 2] = [3, 4];
const PART_FIELDS: [u16; 2] = [141, 143];

/// Records that a sampling rate applies to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// All records that no other rate applies to.
    All,
    /// Records with the number of a sampler or selector.
    Sampler(u64),
    /// Records of an interface.
    Interface(u64),
    /// Records of a template.
    Template(u64),
    /// Records of a part of the exporter, which do not name it.
    Part(u16, u64),
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
    template: u16,
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
        let named = interface().or_else(|| rate(Scope::Template(of.template.into())));
        if let Some(number) = of.sampler {
            return rate(Scope::Sampler(number)).or(named).or_else(|| rate(Scope::All));
        }
        named.or_else(|| rate(Scope::All)).or_else(|| self.only())
    }

    /// The rate of records that do not name their sampler or part of the exporter, if all of them have one rate.
    fn only(&self) -> Option<Stated> {
        let mut rates =
            self.rates.iter().filter(|(scope, _)| matches!(scope, Scope::Sampler(_) | Scope::Part(..)));
        let (_, &first) = rates.next()?;
        let equal = |stated: &Stated| (stated.first, stated.latest) == (first.first, first.latest);
        rates.all(|(_, stated)| equal(stated)).then_some(first)
    }
}

/// The rate of a record of a template: in its fields, or in options that its fields refer to.
pub fn rate(record: &Fields<'_>, template: u16) -> Rate {
    match stated_rate(record) {
        Some(rate) => Rate::Stated(rate),
        None => Rate::Of(Sampler {
            sampler: sampler(record),
            interfaces: [field::IN_INTERFACE, field::OUT_INTERFACE].map(|number| record.number(number)),
            template,
        }),
    }
}

/// The records that options apply to.
fn scope(options: &Fields<'_>) -> Scope {
    let of_scope = |number| options.of(SCOPE, number).and_then(to_number);
    let field = |number| options.number(number);
    let interface = || field(field::IN_INTERFACE).or_else(|| field(field::OUT_INTERFACE));
    let parts = PART_SCOPES.into_iter().filter_map(|number| Some((number, of_scope(number)?)));
    let fields = PART_FIELDS.into_iter().filter_map(|number| Some((number, field(number)?)));
    sampler(options)
        .map(Scope::Sampler)
        .or_else(|| of_scope(INTERFACE_SCOPE).or_else(interface).map(Scope::Interface))
        .or_else(|| of_scope(TEMPLATE_SCOPE).or_else(|| field(field::TEMPLATE)).map(Scope::Template))
        .or_else(|| parts.chain(fields).next().map(|(number, part)| Scope::Part(number, part)))
        .unwrap_or(Scope::All)
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
