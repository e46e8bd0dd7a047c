//! Traffic between hosts: flows, and pieces of them that may wait for each other.
//!
//! A [`Flow`] is a connection from one host to another. Its bytes come in [`Piece`]s. The application writes a piece
//! after the pieces that it waits for have arrived, and after a wait. A flow with one piece without dependencies is a
//! transfer with a start time; dependencies make pipelines and collectives of flows. [`Driver`] decides which pieces
//! are written at which time.
//!
//! [`Block`]s of files have a preliminary chain of hosts; when a block begins, a [`super::Placer`] may choose
//! another.
//!
//! [`trains`] are packets without a transport. [`lists`] are flows from a list, [`rings`] is the workload of Etalon's
//! section 5, [`pipeline`] writes files as HDFS does, [`collective`] is the communication of model training.

pub mod collective;
mod driver;
pub mod lists;
pub mod pipeline;
pub mod rings;
pub mod trains;

use std::fmt;

use leeward_fabric::Nanos;

pub use driver::{Driver, PieceWrite};
pub use trains::Train;

/// A host of a rack, both numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Number of the rack.
    pub rack: u32,
    /// Number of the host in its rack.
    pub host: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}h{}", self.rack, self.host)
    }
}

/// A one-way connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Sending host.
    pub source: Place,
    /// Receiving host.
    pub destination: Place,
    /// Class number that separates kinds of flows in results.
    pub class: u32,
}

/// Bytes that an application writes to a flow at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Number of the flow.
    pub flow: u32,
    /// Number of bytes; at least one.
    pub bytes: u64,
    /// Time between the last arrival that it waits for and its writing; for a piece without dependencies, its start
    /// time.
    pub wait: Nanos,
}

/// A block of a file, which is sent along a chain of hosts. Its flows have consecutive numbers: for each hop one
/// with data and one with answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Number of its first flow; the start of this flow is the start of the block. The next flow ends the block.
    pub first: u32,
    /// Number of hops: copies that cross the network.
    pub hops: u32,
    /// Number of the file.
    pub file: u32,
    /// Host that writes it.
    pub writer: Place,
    /// Size in bytes.
    pub bytes: u64,
    /// Blocks of the file that are not written when it begins, including itself.
    pub left: u64,
}

/// Flows between the hosts of racks, and their pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workload {
    racks: u32,
    hosts: u32,
    flows: Vec<Flow>,
    pieces: Vec<Piece>,
    /// Dependencies of all pieces, one piece after another, and the end of each piece's range.
    after: Vec<u32>,
    after_ends: Vec<usize>,
    /// Blocks, ordered by their first flows.
    blocks: Vec<Block>,
    trains: Vec<Train>,
    /// Packets of all trains.
    train_packets: u64,
}

/// Invalid workload.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WorkloadError {
    /// An end of a flow is not a host.
    #[error(
        "flow {flow}: {end} {place} does not exist: the workload has {racks} racks of {hosts} hosts, numbered from 0"
    )]
    NoHost {
        /// Number of the flow.
        flow: usize,
        /// `source` or `destination`.
        end: &'static str,
        /// The given host.
        place: Place,
        /// Number of racks.
        racks: u32,
        /// Hosts per rack.
        hosts: u32,
    },
    /// A flow from a host to itself.
    #[error("flow {flow}: {place} is both source and destination: expected two hosts")]
    Itself {
        /// Number of the flow.
        flow: usize,
        /// The host.
        place: Place,
    },
    /// A piece belongs to no flow.
    #[error("piece {piece}: flow {flow} does not exist: the workload has {flows}, numbered from 0")]
    NoFlow {
        /// Number of the piece.
        piece: usize,
        /// The given flow.
        flow: u32,
        /// Number of flows.
        flows: usize,
    },
    /// A piece has no bytes.
    #[error("piece {piece}: 0 bytes: must be above 0")]
    Empty {
        /// Number of the piece.
        piece: usize,
    },
    /// A piece waits for itself or for a later one.
    #[error("piece {piece}: waits for piece {after}: expected an earlier piece")]
    Later {
        /// Number of the piece.
        piece: usize,
        /// The piece it waits for.
        after: u32,
    },
    /// The workload has too many flows or pieces to number.
    #[error("{kind}: expected at most {most}")]
    Many {
        /// `flows` or `pieces`.
        kind: &'static str,
        /// Largest allowed count.
        most: u32,
    },
    /// A setting of a generator is out of its range.
    #[error("{name}: {value}: must be {expected}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The given value.
        value: String,
        /// Valid range.
        expected: &'static str,
    },
}

impl WorkloadError {
    pub(super) fn setting(name: &'static str, value: impl ToString, expected: &'static str) -> WorkloadError {
        WorkloadError::Setting { name, value: value.to_string(), expected }
    }
}

impl Workload {
    /// Creates an empty workload for `hosts` hosts in each of `racks` racks.
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
    /// Returns an error if an end is not a host, or if both are the same.
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
        to_number(number, "flows")
    }

    /// Adds a piece that is written when all pieces of `after` have arrived; returns its number.
    ///
    /// # Errors
    /// Returns an error if the flow does not exist, the piece has no bytes, or it waits for a piece that is
    /// not before it.
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
        let count = to_number(number, "pieces")?;
        self.pieces.push(piece);
        self.after.extend_from_slice(after);
        self.after_ends.push(self.after.len());
        Ok(count)
    }

    /// Adds a train of packets.
    ///
    /// # Errors
    /// Returns an error for an invalid end, equal ends, an empty train, or more packets than memory may hold.
    pub fn add_train(&mut self, train: Train) -> Result<(), WorkloadError> {
        train.check(self.racks, self.hosts, self.train_packets)?;
        self.train_packets += train.total();
        self.trains.push(train);
        Ok(())
    }

    /// Number of racks.
    pub fn racks(&self) -> u32 {
        self.racks
    }

    /// Hosts of each rack.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Blocks of files, by number.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the number of the block whose first flow is `flow`.
    pub fn block_of_first_flow(&self, flow: u32) -> Option<usize> {
        self.blocks.binary_search_by_key(&flow, |block| block.first).ok()
    }

    /// Changes the chain of hosts of a block, the writer first.
    ///
    /// # Errors
    /// Returns an error for a chain of another length or writer, two copies on a host, or an unknown host.
    ///
    /// # Panics
    /// Panics if there is no such block.
    pub fn set_chain(&mut self, block: usize, chain: &[Place]) -> Result<(), WorkloadError> {
        let Block { first, hops, writer, .. } = self.blocks[block];
        let twice = (1..chain.len()).any(|number| chain[..number].contains(&chain[number]));
        let is_unknown = chain.iter().any(|place| place.rack >= self.racks || place.host >= self.hosts);
        if twice || is_unknown || chain.len() != hops as usize + 1 || chain.first() != Some(&writer) {
            let places: Vec<String> = chain.iter().map(Place::to_string).collect();
            let value = format!("block {block} on {}", places.join(", "));
            return Err(WorkloadError::setting(
                "copies",
                value,
                "the writer's host first, and as many distinct hosts as the layout has",
            ));
        }
        for (hop, ends) in chain.windows(2).enumerate() {
            let data = first as usize + 2 * hop;
            (self.flows[data].source, self.flows[data].destination) = (ends[0], ends[1]);
            (self.flows[data + 1].source, self.flows[data + 1].destination) = (ends[1], ends[0]);
        }
        Ok(())
    }

    /// Flows, by number.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Pieces, by number.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Trains, by number.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// Returns the pieces that a piece waits for.
    ///
    /// # Panics
    /// Panics if there is no such piece.
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

/// Converts an index to a number below the largest `u32`.
fn to_number(number: usize, kind: &'static str) -> Result<u32, WorkloadError> {
    match u32::try_from(number) {
        Ok(number) if number < u32::MAX => Ok(number),
        _ => Err(WorkloadError::Many { kind, most: u32::MAX }),
    }
}
