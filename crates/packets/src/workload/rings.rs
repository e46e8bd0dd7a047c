//! Big flows along rings of racks, and small flows between all other pairs (Etalon, section 5.3).
//!
//! Each pair of racks has flows of one kind, one after another. The next flow starts when the previous one would end at
//! its pair's share of the bandwidth. Sizes and hosts are uniform draws. Big flows go from rack i to i + 1, and with
//! two rings also to i + 2; the rings share a rack's rate of big flows.

use std::ops::RangeInclusive;

use leeward_fabric::{Bandwidth, Nanos};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;

use super::lists::{Transfer, add};
use super::{Flow, Piece, Place, Workload, WorkloadError};

const PAIR: Kind = Kind::named("ring-pair");

/// Class of small flows.
pub const SMALL: u32 = 0;

/// Class of big flows.
pub const BIG: u32 = 1;

/// Difference between the class of an answer and the class of its flow.
pub const ANSWER: u32 = 2;

/// Settings of the workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Rings {
    /// Number of racks.
    pub racks: u32,
    /// Hosts per rack.
    pub hosts: u32,
    /// Number of rings.
    pub rings: u32,
    /// Total rate of big flows that a rack offers.
    pub big_rate: Bandwidth,
    /// Total rate of small flows that a rack offers.
    pub small_rate: Bandwidth,
    /// Range of the bytes of a big flow.
    pub big_bytes: RangeInclusive<u64>,
    /// Range of the bytes of a small flow.
    pub small_bytes: RangeInclusive<u64>,
    /// If true, follows the authors' generator: small flows also go inside a rack. Each pair, including the pairs of
    /// rings, counts for one share of the small rate. If false, a rack offers its whole small rate to other racks.
    pub own_rack: bool,
    /// Bytes of the answer to each flow, sent when the whole flow has arrived; 0 for no answer. An answer has the next
    /// flow number after its flow, and its flow's class plus [`ANSWER`].
    pub answer: u64,
    /// Time after which no flow starts.
    pub end: Nanos,
    /// Seed of the draws.
    pub seed: u64,
}

impl Rings {
    /// The paper's settings: 8 racks of 16 hosts, for 2 s. Big flows of 1,000 to 10,000 packets of 9000 bytes offer a
    /// third of 80 Gbps. Small flows of 10 to 100 packets offer a third of 10 Gbps. The rest is as in the authors'
    /// generator.
    pub fn paper(rings: u32, seed: u64) -> Rings {
        Rings {
            racks: 8,
            hosts: 16,
            rings,
            big_rate: Bandwidth(80_000_000_000 / 3),
            small_rate: Bandwidth(10_000_000_000 / 3),
            big_bytes: 9_000_000..=90_000_000,
            small_bytes: 90_000..=900_000,
            own_rack: true,
            answer: 0,
            end: Nanos(2_000_000_000),
            seed,
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        // A host sends no flow to itself.
        let (least, expected) = if self.own_rack { (2, "at least 2") } else { (1, "at least 1") };
        if self.hosts < least {
            return Err(WorkloadError::setting("hosts", self.hosts, expected));
        }
        if self.rings == 0 || self.rings >= self.racks {
            return Err(WorkloadError::setting("rings", self.rings, "above 0 and below the number of racks"));
        }
        for (name, rate) in [("big_rate", self.big_rate), ("small_rate", self.small_rate)] {
            if rate.0 == 0 {
                return Err(WorkloadError::setting(name, rate, "above 0"));
            }
        }
        for (name, bytes) in [("big_bytes", &self.big_bytes), ("small_bytes", &self.small_bytes)] {
            if *bytes.start() == 0 || bytes.is_empty() {
                let value = format!("{} to {}", bytes.start(), bytes.end());
                return Err(WorkloadError::setting(
                    name,
                    value,
                    "a range that starts above 0 and ends no lower",
                ));
            }
        }
        Ok(())
    }

    /// Generates the workload, ordered by source rack, destination rack and start.
    ///
    /// # Errors
    /// Returns an error for the first setting out of its range.
    pub fn workload(&self) -> Result<Workload, WorkloadError> {
        self.check()?;
        let mut workload = Workload::new(self.racks, self.hosts);
        for from in 0..self.racks {
            for to in 0..self.racks {
                self.pair(from, to, &mut workload)?;
            }
        }
        Ok(workload)
    }

    /// Generates the flows of a pair of racks. Each pair draws from its own stream, so an additional ring or a later
    /// end does not change the pair's draws.
    fn pair(&self, from: u32, to: u32, workload: &mut Workload) -> Result<(), WorkloadError> {
        let ahead = (to + self.racks - from) % self.racks;
        if ahead == 0 && !self.own_rack {
            return Ok(());
        }
        let big = (1..=self.rings).contains(&ahead);
        let small_pairs = if self.own_rack { self.racks } else { self.racks - 1 - self.rings };
        let (bytes, rate, pairs, class) = match big {
            true => (&self.big_bytes, self.big_rate, self.rings, BIG),
            false => (&self.small_bytes, self.small_rate, small_pairs, SMALL),
        };
        let ns_per_byte = rate.ns_per_byte() * f64::from(pairs);
        let mut random = stream(self.seed, PAIR, u64::from(from) * u64::from(self.racks) + u64::from(to));
        let mut start = 0.0;
        while start < self.end.0 as f64 {
            let source = random.random_range(0..self.hosts);
            let destination = match ahead {
                // Any host except the source.
                0 => (source + random.random_range(1..self.hosts)) % self.hosts,
                _ => random.random_range(0..self.hosts),
            };
            let bytes = random.random_range(bytes.clone());
            let [source, destination] =
                [(from, source), (to, destination)].map(|(rack, host)| Place { rack, host });
            let flow = Flow { source, destination, class };
            let piece = add(workload, &Transfer { flow, start: Nanos(start as u64), bytes })?;
            if self.answer > 0 {
                let back = Flow { source: destination, destination: source, class: class + ANSWER };
                let flow = workload.add_flow(back)?;
                workload.add_piece(Piece { flow, bytes: self.answer, wait: Nanos(0) }, &[piece])?;
            }
            start += bytes as f64 * ns_per_byte;
        }
        Ok(())
    }
}
