//! Blocks of files: their copies are chosen as they begin.

use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;

use super::{Later, Placer, Plant, PlantError};

impl Plant<'_> {
    /// Has the copies of each block go where `placer` says when it begins; without it they go where they were laid out for.
    pub fn placing(mut self, placer: Placer) -> Self {
        self.order(placer.every().0, Later::Report);
        self.placer = Some(placer);
        self.set_alarms();
        self
    }

    /// A flow begins; if it is the first of a block, the block does.
    pub(super) fn begin_block(&mut self, flow: u32) -> Result<(), PlantError> {
        let Some(number) = self.driver.workload().block_from(flow) else { return Ok(()) };
        let block = self.driver.workload().blocks()[number];
        if let Some(placer) = &mut self.placer {
            let at = Nanos(self.now);
            let chain = placer.begins(at, number, &block);
            let chain = chain.map_err(|problem| PlantError::Copies { block: number, at, problem })?;
            self.driver.send_along(number, &chain)?;
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

    /// A flow is over; if it is the one that brings a block's writer the answers, the block is.
    pub(super) fn end_block(&mut self, flow: u32) {
        let first = flow.checked_sub(1).and_then(|data| self.driver.workload().block_from(data));
        let Some(number) = first else { return };
        let now = Nanos(self.now);
        self.records.blocks[number].finished.get_or_insert(now);
        if let Some(placer) = &mut self.placer {
            placer.ended(now, number);
        }
    }

    /// Tells the placer of loads.
    pub(super) fn report(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        let switch = &self.switch;
        let carried =
            |from, to| switch.carried(from, to, Via::Packet) + switch.carried(from, to, Via::Circuit);
        placer.report(Nanos(self.now), carried);
        let next = self.now + placer.every().0;
        self.order(next, Later::Report);
    }
}
