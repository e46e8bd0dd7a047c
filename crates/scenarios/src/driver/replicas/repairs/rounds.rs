//! Rounds of repairs: the order of waiting blocks, the holders that send, and the requests for new hosts.

use leeward_fabric::{HostId, Nanos};
use leeward_placement::Constraints;
use leeward_placement::replicas::{Layout, ReplicaRequest};
use leeward_workloads::FileWrite;

use super::super::writes::{fault_domains, id, piece};
use super::super::{Driver, Pending};
use super::{ActiveRepair, FIRST_REPAIR};
use crate::record::Block;
use crate::scenario::{RepairFile, RepairSource};

/// Urgency of a repair; smaller ones are more urgent. Blocks that nothing can repair now come last.
type Urgency = (bool, isize);

impl Driver<'_> {
    /// Schedules a round, if a block waits and the run has not ended.
    pub(super) fn schedule_round(&mut self, at: Nanos) {
        if !self.repairs.round_is_due && !self.repairs.waiting.is_empty() && at <= self.scenario.horizon {
            self.repairs.round_is_due = true;
            self.world.schedule(at, Pending::Round);
        }
    }

    /// Starts the repairs that have free streams.
    pub(in super::super) fn start_round(&mut self, now: f64) {
        self.repairs.round_is_due = false;
        let Some(settings) = self.repairs.settings else { return };
        let waiting = self.repairs.waiting.keys();
        let mut blocks: Vec<(Urgency, u32)> = waiting.map(|&block| (self.urgency(block), block)).collect();
        blocks.sort_unstable();
        for (_, block) in blocks {
            self.request_repair(now, block, settings);
        }
        self.schedule_round(Nanos::from_secs_f64(now).plus(settings.every));
    }

    /// Returns the urgency of a block by the number of holders that it can still lose.
    fn urgency(&self, block: u32) -> Urgency {
        let record = &self.record.blocks[block as usize];
        let needed = holders_needed(&self.workload.files[record.file as usize]);
        let holders = self.holders(record).count();
        (holders < needed, holders as isize - needed as isize)
    }

    /// Hosts with copies, or chunks, that are not lost.
    fn holders(&self, record: &Block) -> impl Iterator<Item = HostId> {
        record.copies.iter().copied().filter(move |&host| !self.repairs.is_dead(host))
    }

    /// Requests new hosts for a waiting block, if enough holders have a free stream.
    fn request_repair(&mut self, now: f64, block: u32, settings: &RepairFile) {
        let (record, workload) = (&self.record.blocks[block as usize], self.workload);
        let file = &workload.files[record.file as usize];
        let lost = self.repairs.time_of_loss(record);
        let (Some(lost), Some(waited)) = (lost, self.repairs.waiting.get(&block).cloned()) else {
            self.repairs.waiting.remove(&block);
            return;
        };
        let existing: Vec<HostId> = self.holders(record).collect();
        let is_dead = |host: &HostId| self.repairs.is_dead(*host);
        let missing: Vec<HostId> = record.copies.iter().copied().filter(is_dead).collect();
        let is_up = |host: &HostId| self.world.outages.is_up(*host);
        let has_stream = |host: &HostId| self.repairs.sending[host.index()] < settings.streams.get();
        let senders: Vec<HostId> =
            existing.iter().copied().filter(|host| is_up(host) && has_stream(host)).collect();
        let needed = holders_needed(file);
        if senders.len() < needed {
            return;
        }
        // A dead host may be up again when the policy decides, and then still has its copy.
        let down = waited.excluded.iter().copied().filter(|host| !is_up(host));
        let mut excluded_hosts: Vec<HostId> = missing.iter().copied().chain(down).collect();
        excluded_hosts.sort_unstable();
        let mut request = ReplicaRequest {
            id: id(record),
            file: u64::from(record.file),
            writer: None,
            size: piece(record, file),
            replicas: missing.len() as u8,
            layout: file.layout,
            fault_domains: fault_domains(self.scenario, file),
            // Repairs are background: policies that order waiting blocks serve them after all writes.
            blocks_left: u64::MAX,
            job: None,
            constraints: Constraints {
                excluded_hosts,
                max_imbalance: self.scenario.max_imbalance,
                existing,
                ..Constraints::default()
            },
        };
        let senders = self.order_senders(now, &request, senders, waited.attempts, settings.source);
        let Some(from) = senders.get(..needed).map(<[HostId]>::to_vec) else { return };
        request.writer = from.first().copied();
        if file.layout != Layout::Chain {
            // The first chunks of a stripe are the ones that the rebuilding host reads.
            request.constraints.existing.sort_by_key(|host| !from.contains(host));
        }
        from.iter().for_each(|host| self.repairs.sending[host.index()] += 1);
        self.repairs.waiting.remove(&block);
        let (to, flows, entries) = (Vec::new(), Vec::new(), Vec::new());
        let repair = ActiveRepair { waited, lost, from, missing, to, row: None, flows, entries };
        self.repairs.active.insert(block, repair);
        self.working += 1;
        self.request_hosts(now, FIRST_REPAIR + u64::from(block), request);
    }

    /// Orders the holders that can send, the preferred one first.
    fn order_senders(
        &mut self,
        now: f64,
        request: &ReplicaRequest,
        mut senders: Vec<HostId>,
        attempts: u64,
        source: RepairSource,
    ) -> Vec<HostId> {
        match source {
            RepairSource::Drawn => {
                let draws = self.repairs.draws;
                for last in (1..senders.len()).rev() {
                    let number = attempts.wrapping_mul(256).wrapping_add(last as u64);
                    let drawn = (draws.draw(request.id, number) * (last + 1) as f64) as usize;
                    senders.swap(last, drawn.min(last));
                }
                senders
            }
            RepairSource::Fastest => {
                let mut ordered = Vec::with_capacity(senders.len());
                while !senders.is_empty() {
                    let constraints = Constraints { existing: senders.clone(), ..Constraints::default() };
                    let request = ReplicaRequest { layout: Layout::Chain, constraints, ..request.clone() };
                    let at = Nanos::from_secs_f64(now);
                    let Some(fastest) = self.engine.with_source(at, request).writer else { break };
                    senders.retain(|&host| host != fastest);
                    ordered.push(fastest);
                }
                ordered
            }
        }
    }
}

/// Returns the number of holders without which a block of a file cannot be repaired: one copy, or as many chunks as the code
/// has of data.
fn holders_needed(file: &FileWrite) -> usize {
    match file.layout {
        Layout::Chain => 1,
        Layout::Stripe { parity } => usize::from(file.replicas - parity),
    }
}
