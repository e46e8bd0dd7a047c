//! Files written as HDFS writes them: block after block, packets from copy to copy, and acknowledgements
//! back.
//!
//! A block has a chain of hosts. The writer sends packets to the first host, and each host forwards a packet to the
//! next host when the packet is complete. The last host answers each packet, and answers travel back host by host. The
//! writer has at most a window of unanswered packets. It starts the next block when the last packet of the previous one
//! is answered. A copy on the writer's own host crosses no network.

use leeward_fabric::Nanos;

use super::{Block, Flow, Piece, Place, Workload, WorkloadError};

/// Class of flows that carry packets.
pub const DATA: u32 = 0;

/// Class of flows that carry answers.
pub const ANSWERS: u32 = 1;

/// Settings of file writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// Bytes of a block; the last of a file may be smaller.
    pub block: u64,
    /// Bytes of a packet (`dfs.client-write-packet-size`).
    pub packet: u64,
    /// Largest number of packets without an answer (`dfs.client.write.max-packets-in-flight`).
    pub window: u32,
    /// Bytes of an answer.
    pub answer: u64,
    /// Time in which the last host stores a packet before it answers; 0 for RAM disks.
    pub store: Nanos,
}

impl Default for Pipeline {
    /// HDFS's settings, in memory.
    fn default() -> Pipeline {
        Pipeline { block: 128 << 20, packet: 64 << 10, window: 80, answer: 32, store: Nanos(0) }
    }
}

/// Flows of a hop of a chain.
#[derive(Clone, Copy)]
struct Hop {
    data: u32,
    answers: u32,
}

impl Pipeline {
    fn check(&self) -> Result<(), WorkloadError> {
        let zeros = [
            ("block", self.block),
            ("packet", self.packet),
            ("window", self.window.into()),
            ("answer", self.answer),
        ];
        match zeros.iter().find(|(_, value)| *value == 0) {
            Some(&(name, value)) => Err(WorkloadError::setting(name, value, "above 0")),
            None => Ok(()),
        }
    }

    /// Adds a file of `bytes` that `writer` writes from `start` on. `copies` returns the hosts of a block's
    /// copies, in order, given the block's number.
    ///
    /// # Errors
    /// Returns an error for a setting of 0, a block without a copy elsewhere or with two on a host, or an
    /// unknown host.
    pub fn write(
        &self,
        workload: &mut Workload,
        writer: Place,
        start: Nanos,
        bytes: u64,
        mut copies: impl FnMut(u32) -> Vec<Place>,
    ) -> Result<(), WorkloadError> {
        self.check()?;
        let mut before = None;
        let file = workload.blocks.last().map_or(0, |block| block.file + 1);
        let blocks = bytes.div_ceil(self.block);
        for block in 0..blocks {
            let size = self.block.min(bytes - block * self.block);
            let number = u32::try_from(block).unwrap_or(u32::MAX);
            let mut chain = copies(number);
            chain.insert(0, writer);
            chain.dedup();
            let twice = (1..chain.len()).any(|number| chain[..number].contains(&chain[number]));
            if twice || chain.len() < 2 {
                let found = if twice { "two on one host" } else { "none on another host" };
                let expected = "on distinct hosts, and at least one of them not the writer's";
                return Err(WorkloadError::setting("copies", format!("block {block}: {found}"), expected));
            }
            let first = workload.flows.len() as u32;
            before = self.write_block(workload, &chain, start, size, before)?;
            let (hops, left) = (chain.len() as u32 - 1, blocks - block);
            workload.blocks.push(Block { first, hops, file, writer, bytes: size, left });
        }
        Ok(())
    }

    /// Adds a block; returns its last answer.
    fn write_block(
        &self,
        workload: &mut Workload,
        chain: &[Place],
        start: Nanos,
        bytes: u64,
        before: Option<u32>,
    ) -> Result<Option<u32>, WorkloadError> {
        let hops = chain.windows(2).map(|ends| {
            let flow = Flow { source: ends[0], destination: ends[1], class: DATA };
            let back = Flow { source: ends[1], destination: ends[0], class: ANSWERS };
            Ok(Hop { data: workload.add_flow(flow)?, answers: workload.add_flow(back)? })
        });
        let hops: Vec<Hop> = hops.collect::<Result<_, WorkloadError>>()?;
        // Answers to the last packets at the writer, for at most one window of packets. A packet waits for the answer
        // to the packet one window before it.
        let mut answered: Vec<u32> = Vec::with_capacity(self.window as usize);
        let packets = bytes.div_ceil(self.packet);
        for packet in 0..packets {
            let size = self.packet.min(bytes - packet * self.packet);
            let slot = (packet % u64::from(self.window)) as usize;
            let mut after = answered.get(slot).copied().or(before);
            let wait = if after.is_none() { start } else { Nanos(0) };
            for (number, hop) in hops.iter().enumerate() {
                let wait = if number == 0 { wait } else { Nanos(0) };
                after =
                    Some(workload.add_piece(Piece { flow: hop.data, bytes: size, wait }, after.as_slice())?);
            }
            let mut wait = self.store;
            for hop in hops.iter().rev() {
                let piece = Piece { flow: hop.answers, bytes: self.answer, wait };
                after = Some(workload.add_piece(piece, after.as_slice())?);
                wait = Nanos(0);
            }
            let Some(answer) = after else { continue };
            match answered.get_mut(slot) {
                Some(slot) => *slot = answer,
                None => answered.push(answer),
            }
        }
        let last = (packets - 1) % u64::from(self.window);
        Ok(answered.get(last as usize).copied())
    }
}

/// The write half of TestDFSIO: `mappers` on the first hosts of each rack write one file each (Etalon,
/// section 6: 8 mappers per rack, 400 MB each).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dfsio {
    /// Number of racks.
    pub racks: u32,
    /// Hosts per rack.
    pub hosts: u32,
    /// Number of mappers in each rack, distributed evenly over its hosts.
    pub mappers: u32,
    /// Bytes of each file.
    pub file: u64,
    /// Settings of file writes.
    pub pipeline: Pipeline,
}

impl Dfsio {
    /// Generates the workload; `copies` returns the hosts of the copies of a writer's block.
    ///
    /// # Errors
    /// Returns the errors of [`Pipeline::write`], or an error if there are no racks or hosts.
    pub fn workload(
        &self,
        mut copies: impl FnMut(Place, u32) -> Vec<Place>,
    ) -> Result<Workload, WorkloadError> {
        for (name, value) in [("racks", self.racks), ("hosts", self.hosts)] {
            if value == 0 {
                return Err(WorkloadError::setting(name, value, "above 0"));
            }
        }
        let mut workload = Workload::new(self.racks, self.hosts);
        for rack in 0..self.racks {
            for mapper in 0..self.mappers {
                let writer = Place { rack, host: mapper % self.hosts };
                self.pipeline
                    .write(&mut workload, writer, Nanos(0), self.file, |block| copies(writer, block))?;
            }
        }
        Ok(workload)
    }
}
