//! Driver of a workload: returns pieces to write when other pieces have arrived.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

use super::{Place, Workload, WorkloadError};

/// A piece to write now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceWrite {
    /// Number of its flow.
    pub flow: u32,
    /// Number of bytes.
    pub bytes: u64,
    /// True for the first piece of its flow: the connection opens.
    pub opens: bool,
    /// True for the last piece of its flow: the connection closes after it.
    pub closes: bool,
}

/// Driver of a workload. It returns due pieces; the caller reports writes and arrivals.
#[derive(Clone, Debug)]
pub struct Driver {
    workload: Workload,
    /// By piece: number of pieces that it still waits for.
    missing: Vec<u32>,
    /// Pieces that wait for each piece, one range after another, and the start of each range.
    waiting: Vec<u32>,
    waiting_starts: Vec<usize>,
    flows: Vec<Progress>,
    left: usize,
}

/// Progress of a flow's pieces.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Written pieces that have not arrived, each with its end in the flow's bytes.
    underway: VecDeque<(u64, u32)>,
    written: u64,
    /// Number of pieces that are not written.
    left: u32,
}

impl Driver {
    /// Creates a driver with nothing written.
    pub fn new(workload: Workload) -> Driver {
        let pieces = workload.pieces().len();
        let mut starts = vec![0; pieces + 1];
        for &after in &workload.after {
            starts[after as usize + 1] += 1;
        }
        for piece in 0..pieces {
            starts[piece + 1] += starts[piece];
        }
        let mut ends = starts.clone();
        let mut waiting = vec![0; workload.after.len()];
        let mut flows = vec![Progress::default(); workload.flows().len()];
        let mut missing = Vec::with_capacity(pieces);
        for (number, piece) in workload.pieces().iter().enumerate() {
            let after = workload.after(number as u32);
            for &after in after {
                waiting[ends[after as usize]] = number as u32;
                ends[after as usize] += 1;
            }
            missing.push(after.len() as u32);
            flows[piece.flow as usize].left += 1;
        }
        Driver { workload, missing, waiting, waiting_starts: starts, flows, left: pieces }
    }

    /// The workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Changes the chain of hosts of a block that has not begun.
    ///
    /// # Errors
    /// Returns the errors of [`Workload::set_chain`].
    pub fn set_chain(&mut self, block: usize, chain: &[Place]) -> Result<(), WorkloadError> {
        self.workload.set_chain(block, chain)
    }

    /// Returns the pieces that wait for no other piece, with their times, in order of time and then of number.
    pub fn first(&self) -> Vec<(Nanos, u32)> {
        let pieces = self.workload.pieces().iter().enumerate();
        let mut first: Vec<(Nanos, u32)> = pieces
            .filter(|&(number, _)| self.missing[number] == 0)
            .map(|(number, piece)| (piece.wait, number as u32))
            .collect();
        first.sort_unstable();
        first
    }

    /// Writes a piece at its time. The caller writes each piece once.
    ///
    /// # Panics
    /// Panics if there is no such piece.
    pub fn write(&mut self, piece: u32) -> PieceWrite {
        let entry = self.workload.pieces()[piece as usize];
        let flow = &mut self.flows[entry.flow as usize];
        let opens = flow.written == 0;
        flow.written += entry.bytes;
        flow.left -= 1;
        flow.underway.push_back((flow.written, piece));
        PieceWrite { flow: entry.flow, bytes: entry.bytes, opens, closes: flow.left == 0 }
    }

    /// Handles `delivered` bytes in order at a flow's receiver. Adds to `due` the pieces that waited for
    /// them, with their times.
    ///
    /// # Panics
    /// Panics if there is no such flow.
    pub fn arrive(&mut self, now: Nanos, flow: u32, delivered: u64, due: &mut Vec<(Nanos, u32)>) {
        let underway = &mut self.flows[flow as usize].underway;
        while let Some(&(_, piece)) = underway.front().filter(|(end, _)| *end <= delivered) {
            underway.pop_front();
            self.left -= 1;
            let [start, end] = [piece, piece + 1].map(|piece| self.waiting_starts[piece as usize]);
            for &next in &self.waiting[start..end] {
                let missing = &mut self.missing[next as usize];
                *missing -= 1;
                if *missing == 0 {
                    due.push((now.plus(self.workload.pieces()[next as usize].wait), next));
                }
            }
        }
    }

    /// Abandons a flow: its remaining pieces never arrive, and pieces that wait for them are never written.
    ///
    /// # Panics
    /// Panics if there is no such flow.
    pub fn give_up(&mut self, flow: u32) {
        let progress = &mut self.flows[flow as usize];
        self.left -= progress.underway.len() + progress.left as usize;
        progress.underway.clear();
    }

    /// Returns true if every piece has arrived, except for those of abandoned flows.
    pub fn is_finished(&self) -> bool {
        self.left == 0
    }
}
