//! Blocks of a workload: the policy of copies chooses their hosts when they begin.

use leeward_fabric::Nanos;
use leeward_packets::SimulatorError;

use super::Traffic;
use crate::error::LabError;

impl Traffic<'_> {
    /// The first flow of a block begins the block, whose hosts the policy chooses then.
    pub(super) fn begin_block(&mut self, flow: u32) -> Result<(), LabError> {
        let Some(number) = self.driver.workload().block_of_first_flow(flow) else { return Ok(()) };
        let block = self.driver.workload().blocks()[number];
        let at = self.now();
        if let Some(mut placer) = self.shared.placer() {
            let chain = placer.place_block(at, number, &block);
            let chain = chain.map_err(|problem| SimulatorError::Copies { block: number, at, problem })?;
            self.driver.set_chain(number, &chain).map_err(SimulatorError::from)?;
        }
        let flows = self.driver.workload().flows();
        for hop in 0..2 * block.hops as usize {
            let flow = block.first as usize + hop;
            self.records.flows[flow].flow = flows[flow];
            let mut progress = self.shared.flows();
            progress[flow].source = flows[flow].source.rack as usize;
            progress[flow].destination = flows[flow].destination.rack as usize;
        }
        let record = &mut self.records.blocks[number];
        record.began = Some(at);
        record.copies =
            (0..block.hops).map(|hop| flows[(block.first + 2 * hop) as usize].destination).collect();
        Ok(())
    }

    pub(super) fn end_block(&mut self, flow: u32, now: Nanos) {
        let first = flow.checked_sub(1).and_then(|data| self.driver.workload().block_of_first_flow(data));
        let Some(number) = first else { return };
        self.records.blocks[number].finished.get_or_insert(now);
        if let Some(mut placer) = self.shared.placer() {
            placer.release_block(now, number);
        }
    }
}
