//! What is to be written when, as pieces arrive.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

use super::{Place, Workload, WorkloadError};

/// A piece that is written now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// To which flow.
    pub flow: u32,
    /// How many bytes.
    pub bytes: u64,
    /// Whether it is the first of its flow: the connection opens.
    pub opens: bool,
    /// Whether it is the last of its flow: the connection closes after it.
    pub closes: bool,
}

/// Carries a workload out: it says which pieces are due, is told when they are written and what arrives.
#[derive(Clone, Debug)]
pub struct Driver {
    workload: Workload,
    /// By piece: how many it still waits for.
    missing: Vec<u32>,
    /// Pieces that wait for a piece, one after another, and where those of each begin.
    waiting: Vec<u32>,
    waiting_starts: Vec<usize>,
    flows: Vec<Progress>,
    left: usize,
}

/// A flow's pieces on their way.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Those written and not arrived: where each ends in the flow's bytes.
    underway: VecDeque<(u64, u32)>,
    written: u64,
    /// Pieces that are not written.
    left: u32,
}

impl Driver {
    /// A workload of which nothing was written.
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

    /// Sends a block that has not begun along a chain of hosts.
    ///
    /// # Errors
    /// As [`Workload::send_along`].
    pub fn send_along(&mut self, block: usize, chain: &[Place]) -> Result<(), WorkloadError> {
        self.workload.send_along(block, chain)
    }

    /// Pieces that wait for nothing, with the times at which they are written: by time, then by number.
    pub fn first(&self) -> Vec<(Nanos, u32)> {
        let pieces = self.workload.pieces().iter().enumerate();
        let mut first: Vec<(Nanos, u32)> = pieces
            .filter(|&(number, _)| self.missing[number] == 0)
            .map(|(number, piece)| (piece.wait, number as u32))
            .collect();
        first.sort_unstable();
        first
    }

    /// The time of a piece has come: what is to be written.
    ///
    /// # Panics
    /// If there is no such piece. Each is to be written once.
    pub fn write(&mut self, piece: u32) -> Written {
        let of = self.workload.pieces()[piece as usize];
        let flow = &mut self.flows[of.flow as usize];
        let opens = flow.written == 0;
        flow.written += of.bytes;
        flow.left -= 1;
        flow.underway.push_back((flow.written, piece));
        Written { flow: of.flow, bytes: of.bytes, opens, closes: flow.left == 0 }
    }

    /// A flow's receiver has `delivered` bytes in order. Adds to `due` the pieces that waited for what has arrived, with their times.
    ///
    /// # Panics
    /// If there is no such flow.
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

    /// A flow is given up: what it has left will not arrive, and what waits for that is never written.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn give_up(&mut self, flow: u32) {
        let of = &mut self.flows[flow as usize];
        self.left -= of.underway.len() + of.left as usize;
        of.underway.clear();
    }

    /// Whether every piece has arrived, but for those of flows that were given up.
    pub fn is_finished(&self) -> bool {
        self.left == 0
    }
}
