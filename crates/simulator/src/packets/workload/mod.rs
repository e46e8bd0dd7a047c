//! What hosts send each other: flows, and pieces of them that may wait for each other.
//!
//! A [`Flow`] is a connection from one host to another. Its bytes come in [`Piece`]s: the application writes a piece once the
//! pieces that it waits for have arrived and some time has passed. A flow with one piece that waits for nothing is a transfer with a
//! start time; dependencies make pipelines and collectives of flows. [`Driver`] says what is to be written when.
//!
//! [`Block`]s of files may be laid out for any chain of hosts and sent along another once they begin: what decides that is asked
//! then ([`super::Placer`]).
//!
//! [`trains`] are packets without a transport. [`lists`] are flows as they are given, [`rings`] the workload of Etalon's section 5, [`pipeline`] files written as HDFS does,
//! [`collective`] what training of models does.

pub mod collective;
mod driver;
pub mod lists;
pub mod pipeline;
pub mod rings;
pub mod trains;

use std::fmt;

use leeward_fabric::Nanos;

pub use driver::{Driver, Written};
pub use trains::Train;

/// A host of a rack, both numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Which rack.
    pub rack: u32,
    /// Which of its hosts.
    pub host: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}h{}", self.rack, self.host)
    }
}

/// A connection that bytes go over one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Who sends.
    pub source: Place,
    /// Who receives.
    pub destination: Place,
    /// A number that tells kinds of flows apart in results.
    pub class: u32,
}

/// Bytes that an application writes to a flow at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which flow, by its number.
    pub flow: u32,
    /// How many; at least one.
    pub bytes: u64,
    /// Time between the last arrival that it waits for and its writing; its start if it waits for nothing.
    pub wait: Nanos,
}

/// A block of a file on its way along a chain of hosts. Its flows follow each other: for each hop one with data and one with answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first of its flows: when it begins the block does, and the next one ends when the block does.
    pub first: u32,
    /// How many hops it takes: copies that cross the network.
    pub hops: u32,
    /// The file, by number.
    pub file: u32,
    /// Who writes it.
    pub writer: Place,
    /// How many bytes it has.
    pub bytes: u64,
    /// Blocks of the file that are not written when it begins, itself included.
    pub left: u64,
}

/// Flows between the hosts of racks, and their pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workload {
    racks: u32,
    hosts: u32,
    flows: Vec<Flow>,
    pieces: Vec<Piece>,
    /// What pieces wait for, one after another, and where those of each piece end.
    after: Vec<u32>,
    after_ends: Vec<usize>,
    /// By their first flows.
    blocks: Vec<Block>,
    trains: Vec<Train>,
    /// Packets of all of these.
    train_packets: u64,
}

/// What is no workload.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A host that is not there.
    #[error("flow {flow}: {end} {place}: must be of {racks} racks and {hosts} hosts, numbered from 0")]
    NoHost {
        /// Which flow.
        flow: usize,
        /// `source` or `destination`.
        end: &'static str,
        /// As it was given.
        place: Place,
        /// Racks there are.
        racks: u32,
        /// Hosts of a rack.
        hosts: u32,
    },
    /// A flow from a host to itself.
    #[error("flow {flow}: from {place} to itself: must be between two hosts")]
    Itself {
        /// Which flow.
        flow: usize,
        /// The host.
        place: Place,
    },
    /// A piece of a flow that is not there.
    #[error("piece {piece}: flow {flow} of {flows}, numbered from 0")]
    NoFlow {
        /// Which piece.
        piece: usize,
        /// As it was given.
        flow: u32,
        /// How many there are.
        flows: usize,
    },
    /// A piece of nothing.
    #[error("piece {piece}: 0 bytes: must be above 0")]
    Empty {
        /// Which piece.
        piece: usize,
    },
    /// A piece that waits for itself or for a later one.
    #[error("piece {piece}: waits for piece {after}: must be an earlier one")]
    Later {
        /// Which piece.
        piece: usize,
        /// What it waits for.
        after: u32,
    },
    /// More than can be numbered.
    #[error("{what}: more than {most}: must be fewer")]
    Many {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: u32,
    },
    /// A setting of a generator that is out of its range.
    #[error("{name}: {value}: must be {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// As it was given.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
}

impl WorkloadError {
    pub(super) fn setting(name: &'static str, value: impl ToString, expected: &'static str) -> WorkloadError {
        WorkloadError::Setting { name, value: value.to_string(), expected }
    }
}

impl Workload {
    /// No flows between `hosts` hosts in each of `racks` racks.
    pub fn new(racks: u32, hosts: u32) -> Workload {
        Workload {
            racks,
            hosts,
            flows: Vec::new(),
            pieces: Vec::new(),
            after: Vec::new(),
            after_ends: Vec::new(),
            blocks: Vec::new(),
            trains: Vec::new(),
            train_packets: 0,
        }
    }

    /// Adds a flow; returns its number.
    ///
    /// # Errors
    /// An end that is no host, or both the same.
    pub fn add_flow(&mut self, flow: Flow) -> Result<u32, WorkloadError> {
        let number = self.flows.len();
        for (end, place) in [("source", flow.source), ("destination", flow.destination)] {
            if place.rack >= self.racks || place.host >= self.hosts {
                let (racks, hosts) = (self.racks, self.hosts);
                return Err(WorkloadError::NoHost { flow: number, end, place, racks, hosts });
            }
        }
        if flow.source == flow.destination {
            return Err(WorkloadError::Itself { flow: number, place: flow.source });
        }
        self.flows.push(flow);
        numbered(number, "flows")
    }

    /// Adds a piece that is written when all of `after` have arrived; returns its number.
    ///
    /// # Errors
    /// A piece of no flow, of no bytes, or that waits for what is not before it.
    pub fn add_piece(&mut self, piece: Piece, after: &[u32]) -> Result<u32, WorkloadError> {
        let number = self.pieces.len();
        if piece.flow as usize >= self.flows.len() {
            return Err(WorkloadError::NoFlow { piece: number, flow: piece.flow, flows: self.flows.len() });
        }
        if piece.bytes == 0 {
            return Err(WorkloadError::Empty { piece: number });
        }
        if let Some(&after) = after.iter().find(|&&after| after as usize >= number) {
            return Err(WorkloadError::Later { piece: number, after });
        }
        let count = numbered(number, "pieces")?;
        self.pieces.push(piece);
        self.after.extend_from_slice(after);
        self.after_ends.push(self.after.len());
        Ok(count)
    }

    /// Adds a train of packets.
    ///
    /// # Errors
    /// An end that is no host, or both the same; a train of nothing, or of more than memory may hold.
    pub fn add_train(&mut self, train: Train) -> Result<(), WorkloadError> {
        train.check(self.racks, self.hosts, self.train_packets)?;
        self.train_packets += train.total();
        self.trains.push(train);
        Ok(())
    }

    /// How many racks there are.
    pub fn racks(&self) -> u32 {
        self.racks
    }

    /// Hosts of each rack.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Blocks of files among what it sends, by number.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The block that a flow is the first of, by its number.
    pub fn block_from(&self, flow: u32) -> Option<usize> {
        self.blocks.binary_search_by_key(&flow, |block| block.first).ok()
    }

    /// Sends a block along another chain than it was laid out for, the writer first.
    ///
    /// # Errors
    /// A chain of another length, two copies on a host, a host that is not there.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn send_along(&mut self, block: usize, chain: &[Place]) -> Result<(), WorkloadError> {
        let Block { first, hops, writer, .. } = self.blocks[block];
        let twice = (1..chain.len()).any(|number| chain[..number].contains(&chain[number]));
        let away = chain.iter().any(|place| place.rack >= self.racks || place.host >= self.hosts);
        if twice || away || chain.len() != hops as usize + 1 || chain.first() != Some(&writer) {
            let places: Vec<String> = chain.iter().map(Place::to_string).collect();
            let value = format!("block {block} on {}", places.join(", "));
            return Err(WorkloadError::setting(
                "copies",
                value,
                "the writer's, and as many as it was laid out for",
            ));
        }
        for (hop, ends) in chain.windows(2).enumerate() {
            let data = first as usize + 2 * hop;
            (self.flows[data].source, self.flows[data].destination) = (ends[0], ends[1]);
            (self.flows[data + 1].source, self.flows[data + 1].destination) = (ends[1], ends[0]);
        }
        Ok(())
    }

    /// Its flows, by number.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Its pieces, by number.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Its trains, by number.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// The pieces that a piece waits for.
    ///
    /// # Panics
    /// If there is no such piece.
    pub fn after(&self, piece: u32) -> &[u32] {
        let piece = piece as usize;
        let start = piece.checked_sub(1).map_or(0, |before| self.after_ends[before]);
        &self.after[start..self.after_ends[piece]]
    }

    /// Bytes of all pieces.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

/// A number of something, below the largest there is.
fn numbered(number: usize, what: &'static str) -> Result<u32, WorkloadError> {
    match u32::try_from(number) {
        Ok(number) if number < u32::MAX => Ok(number),
        _ => Err(WorkloadError::Many { what, most: u32::MAX }),
    }
}
