//! Synthetic traces: drawn from a rate, a burstiness, a distribution of sizes, a mix of reads and writes, and a
//! sequential share.
//!
//! The workloads of the thesis are private. It states their load and C^2, the squared coefficient of variation of the
//! gaps between requests (SLO table 3.1). The traces here share only these numbers with them. Their gaps are
//! independent, so they lack the clustered bursts of real traces; with [`Bursts`] they are correlated.
//!
//! To draw a trace of a given load: draw at any rate, and take the mean work of a request from
//! [`Statistics`](crate::statistics::Statistics). Then draw again at a rate of the load times the capacity, divided by
//! this mean. The work per second is then the load times the capacity.
//!
//! | C^2 | independent gaps |
//! | --- | --- |
//! | 0 | constant |
//! | below 1 | Gamma |
//! | 1 | exponential: a Poisson stream |
//! | above 1 | hyperexponential of two branches, each with half of the time ("balanced means") |

mod gaps;
mod places;

use leeward_fabric::Nanos;
use leeward_fabric::input::format_number;
use leeward_registry::random;
use rand::RngExt;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

pub use gaps::Bursts;
pub use places::Places;

use self::gaps::Gaps;
use crate::{Kind, Request};

/// Sizes and offsets are whole blocks, except for sizes chosen from a list.
const BLOCK: u64 = 512;

/// Distribution of request sizes.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// One of these sizes in bytes, with probabilities in proportion to their weights.
    Choice(Vec<(u64, f64)>),
    /// Log-normal, rounded up to whole blocks of 512 bytes and cut at `largest`.
    LogNormal {
        /// Mean in bytes, before rounding and cutting.
        mean: f64,
        /// Squared coefficient of variation.
        c2: f64,
        /// Largest size, in bytes; a multiple of 512.
        largest: u64,
    },
}

/// Parameters of a synthetic trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// Mean number of requests per second.
    pub rate: f64,
    /// C^2 of the gaps between requests.
    pub gap_c2: f64,
    /// Correlation of gaps; `None` for independent gaps. Only with a C^2 above 1.
    pub bursts: Option<Bursts>,
    /// Distribution of sizes.
    pub sizes: Sizes,
    /// Share of reads among all requests; from 0 to 1.
    pub read_share: f64,
    /// Share of requests that start at the end of the previous request, among all requests but the first; from 0 to 1.
    /// The other requests start at random blocks.
    pub sequential_share: f64,
    /// Size of the volume, in bytes.
    pub volume: u64,
}

/// A shape out of range.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field} {}: expected {expected}", format_number(*.number))]
pub struct ShapeError {
    /// Name of the invalid field.
    pub field: &'static str,
    /// The rejected number.
    pub number: f64,
    /// Description of valid values.
    pub expected: &'static str,
}

enum SizeDistribution {
    Choice(Vec<u64>, WeightedIndex<f64>),
    LogNormal(LogNormal<f64>, u64),
}

/// The endless requests of a synthetic trace. Arrivals, sizes, kinds and offsets have separate streams, so changing
/// one leaves the others unchanged.
pub struct Synthetic {
    shape: Shape,
    gaps: Gaps,
    sizes: SizeDistribution,
    /// Streams of gaps, sizes and kinds.
    streams: [ChaCha8Rng; 3],
    /// Time in nanoseconds; a double counts whole nanoseconds exactly up to 104 days.
    at: f64,
    places: Places,
}

impl Synthetic {
    /// The trace with this shape and seed. Its first request comes one gap after time 0.
    ///
    /// # Errors
    /// Fails with the name of the first field that is out of range.
    pub fn new(shape: Shape, seed: u64) -> Result<Synthetic, ShapeError> {
        check("rate", shape.rate, (1e-6..=1e9).contains(&shape.rate), "1e-6 to 1e9 requests a second")?;
        let gaps = Gaps::new(shape.gap_c2, shape.bursts)?;
        for (field, share) in [("read_share", shape.read_share), ("sequential_share", shape.sequential_share)]
        {
            check(field, share, (0.0..=1.0).contains(&share), "0 to 1")?;
        }
        let sizes = shape.sizes.distribution()?;
        let largest = shape.sizes.largest();
        let fits = shape.volume >= largest && shape.volume <= 1 << 60;
        check("volume", shape.volume as f64, fits, "bytes of at least the largest request, at most 2^60")?;
        let streams =
            ["gaps", "sizes", "kinds"].map(|name| random::stream(seed, random::Kind::named(name), 0));
        let places = Places::new(shape.volume, shape.sequential_share, seed)?;
        Ok(Synthetic { shape, gaps, sizes, streams, at: 0.0, places })
    }
}

impl Iterator for Synthetic {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.at += self.gaps.draw(&mut self.streams[0]) / self.shape.rate * 1e9;
        let size = match &self.sizes {
            SizeDistribution::Choice(sizes, weights) => sizes[weights.sample(&mut self.streams[1])],
            SizeDistribution::LogNormal(distribution, largest) => {
                let size = distribution.sample(&mut self.streams[1]).min(*largest as f64);
                (size as u64).max(1).next_multiple_of(BLOCK).min(*largest)
            }
        };
        let reads = self.streams[2].random::<f64>() < self.shape.read_share;
        let kind = if reads { Kind::Read } else { Kind::Write };
        let offset = Some(self.places.place(size));
        Some(Request { at: Nanos(self.at as u64), kind, size, offset })
    }
}

impl Sizes {
    fn largest(&self) -> u64 {
        match self {
            Sizes::Choice(sizes) => sizes.iter().map(|size| size.0).max().unwrap_or(0),
            Sizes::LogNormal { largest, .. } => *largest,
        }
    }

    fn distribution(&self) -> Result<SizeDistribution, ShapeError> {
        match self {
            Sizes::Choice(choice) => {
                for &(size, weight) in choice {
                    check("size", size as f64, size > 0 && size <= 1 << 40, "1 to 2^40 bytes")?;
                    check("weight", weight, (0.0..=1e9).contains(&weight), "0 to 1e9")?;
                }
                let weights = WeightedIndex::new(choice.iter().map(|size| size.1));
                let empty = |_| ShapeError {
                    field: "sizes",
                    number: choice.len() as f64,
                    expected: "at least one with a weight above 0",
                };
                Ok(SizeDistribution::Choice(
                    choice.iter().map(|size| size.0).collect(),
                    weights.map_err(empty)?,
                ))
            }
            &Sizes::LogNormal { mean, c2, largest } => {
                let whole = largest > 0 && largest <= 1 << 40 && largest.is_multiple_of(BLOCK);
                check("largest", largest as f64, whole, "a multiple of 512 up to 2^40 bytes")?;
                let within = mean >= 1.0 && mean <= largest as f64;
                check("mean", mean, within, "1 byte to the largest")?;
                check("c2", c2, (0.0..=1e6).contains(&c2), "0 to 1e6")?;
                let invalid = |_| ShapeError { field: "c2", number: c2, expected: "0 to 1e6" };
                let distribution = LogNormal::from_mean_cv(mean, c2.sqrt()).map_err(invalid)?;
                Ok(SizeDistribution::LogNormal(distribution, largest))
            }
        }
    }
}

/// A workload of the thesis, as far as its table 3.1 describes it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishedWorkload {
    /// Letter of the workload.
    pub letter: char,
    /// Load of the disk, as a share of its capacity; `None` if the data was in memory.
    pub storage_load: Option<f64>,
    /// Load of the network, as a share of its capacity.
    pub network_load: f64,
    /// C^2 of the gaps between requests.
    pub gap_c2: f64,
}

/// The open-loop workloads of SLO table 3.1. For workload E, the table only says that the load on the disk exceeds the
/// capacity. Workload L copies files in a closed loop, so it is not a trace.
pub const TABLE_3_1: [PublishedWorkload; 11] = [
    workload('A', Some(0.05), 0.05, 1.3),
    workload('B', Some(0.05), 0.05, 14.0),
    workload('C', Some(0.55), 0.05, 2.2),
    workload('D', Some(0.10), 0.05, 23.0),
    workload('E', Some(1.00), 0.15, 145.0),
    workload('F', Some(0.25), 0.05, 1.0),
    workload('G', Some(0.25), 0.05, 20.0),
    workload('H', Some(0.25), 0.05, 40.0),
    workload('I', Some(0.35), 0.20, 1.0),
    workload('J', Some(0.45), 0.25, 1.0),
    workload('K', None, 0.35, 3.6),
];

const fn workload(
    letter: char,
    storage_load: Option<f64>,
    network_load: f64,
    gap_c2: f64,
) -> PublishedWorkload {
    PublishedWorkload { letter, storage_load, network_load, gap_c2 }
}

fn check(field: &'static str, number: f64, valid: bool, expected: &'static str) -> Result<(), ShapeError> {
    if valid { Ok(()) } else { Err(ShapeError { field, number, expected }) }
}
