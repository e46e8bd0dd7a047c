//! Blocks of files. The copies of a block are placed when the block begins.

use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;

use super::{Placer, Simulator, SimulatorError, Timer};

impl Simulator<'_> {
    /// Places the copies of each block with `placer` when the block begins; without a placer, copies go to the hosts of
    /// their layout.
    pub fn with_placer(mut self, placer: Placer) -> Self {
        self.schedule(placer.every().0, Timer::Report);
        self.placer = Some(placer);
        self.set_alarms();
        self
    }

    /// Starts a flow; the first flow of a block starts the block.
    pub(super) fn begin_block(&mut self, flow: u32) -> Result<(), SimulatorError> {
        let Some(number) = self.driver.workload().block_of_first_flow(flow) else { return Ok(()) };
        let block = self.driver.workload().blocks()[number];
        if let Some(placer) = &mut self.placer {
            let at = Nanos(self.now);
            let chain = placer.place_block(at, number, &block);
            let chain = chain.map_err(|problem| SimulatorError::Copies { block: number, at, problem })?;
            self.driver.set_chain(number, &chain)?;
        }
        let flows = self.driver.workload().flows();
        for hop in 0..2 * block.hops as usize {
            let flow = block.first as usize + hop;
            self.records.flows[flow].flow = flows[flow];
        }
        let record = &mut self.records.blocks[number];
        record.began = Some(Nanos(self.now));
        record.copies =
            (0..block.hops).map(|hop| flows[(block.first + 2 * hop) as usize].destination).collect();
        Ok(())
    }

    /// Ends a flow. The flow that carries answers to a block's writer ends the block.
    pub(super) fn end_block(&mut self, flow: u32) {
        let first = flow.checked_sub(1).and_then(|data| self.driver.workload().block_of_first_flow(data));
        let Some(number) = first else { return };
        let now = Nanos(self.now);
        self.records.blocks[number].finished.get_or_insert(now);
        if let Some(placer) = &mut self.placer {
            placer.release_block(now, number);
        }
    }

    /// Reports loads to the placer.
    pub(super) fn report(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        let switch = &self.switch;
        let carried =
            |from, to| switch.sent_bytes(from, to, Via::Packet) + switch.sent_bytes(from, to, Via::Circuit);
        placer.report(Nanos(self.now), carried);
        let next = self.now + placer.every().0;
        self.schedule(next, Timer::Report);
    }
}
