//! Sampling rates of NetFlow and IPFIX exporters. An exporter states its rate in each record, or once in options that
//! records refer to.

use std::collections::BTreeMap;

use super::fields::{Fields, field};

/// Largest number of samplers of one exporter.
const MOST_SAMPLERS: usize = 10_000;

/// The rates of one exporter.
#[derive(Default)]
pub struct Sampling {
    /// Sampling rates by number of the sampler or selector; `None` is the rate of all records without a number.
    rates: BTreeMap<Option<u64>, u32>,
    /// Number of records before the first sampling rate.
    unsampled: u64,
}

/// Sampling rate of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    Stated(u32),
    /// The exporter does not state its rate.
    Unknown,
}

impl Sampling {
    /// Reads a record of options. If it is the first with a sampling rate, returns the number of records before it.
    pub fn learn(&mut self, options: &Fields<'_>) -> u64 {
        let Some(rate) = stated_rate(options) else { return 0 };
        let (first, sampler) = (self.rates.is_empty(), sampler(options));
        if self.rates.len() < MOST_SAMPLERS || self.rates.contains_key(&sampler) {
            self.rates.insert(sampler, rate);
        }
        if first && rate > 1 { std::mem::take(&mut self.unsampled) } else { 0 }
    }

    /// The rate of a record.
    pub fn of(&mut self, record: &Fields<'_>) -> Rate {
        if let Some(rate) = stated_rate(record) {
            return Rate::Stated(rate);
        }
        let named = sampler(record);
        let only = || if self.rates.len() == 1 { self.rates.values().next() } else { None };
        let rate = match named {
            Some(_) => self.rates.get(&named).or_else(|| self.rates.get(&None)),
            // Many exporters have one sampler, and do not state its number in each record.
            None => self.rates.get(&None).or_else(only),
        };
        match rate {
            Some(&rate) => Rate::Stated(rate),
            None => {
                self.unsampled += 1;
                Rate::Unknown
            }
        }
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
    if let Some(taken) = fields.number(field::PACKET_INTERVAL) {
        let passed = fields.number(field::PACKET_SPACE)?;
        return ratio(taken.checked_add(passed)?, taken);
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
