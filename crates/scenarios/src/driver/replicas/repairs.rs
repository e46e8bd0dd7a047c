//! Re-replication: blocks with copies, or chunks, on dead hosts get new ones, as in HDFS.
//!
//! A failed host counts as dead after a time. Its blocks then wait for repair. Rounds at intervals go through the
//! waiting blocks, those with the fewest holders left first. Holders with a free stream send, and the policy of the run
//! chooses the new hosts. A damaged stripe is rebuilt by the first of its new hosts, which reads as many chunks as the
//! code has of data, and sends the others on.
//!
//! A host that comes up again has its copies as before. Blocks that wait for no other host then stop waiting. A copy that
//! is on its way still arrives, and replaces that of the host.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::{Input, ReplicasAnswer};
use leeward_fabric::{Endpoint, HostId, Nanos};
use leeward_fluid::{Finished, FlowId};
use leeward_ledger::EntryId;
use leeward_placement::Constraints;
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_registry::random::{Draws, Kind};

use super::writes::{fault_domains, id, piece, stored_at};
use super::{Driver, FlowPurpose, Pending};
use crate::driver::error::RunError;
use crate::driver::world::World;
use crate::record::{Block, Repair};
use crate::scenario::{RepairFile, RepairSource, Scenario};

/// Numbers of requests from here on are repairs; smaller ones are writes.
pub(super) const FIRST_REPAIR: u64 = 1 << 32;

const SOURCES: Kind = Kind::named("repair.source");

/// State of re-replication.
pub(super) struct Repairs<'a> {
    /// Settings; nothing is repaired if `None`.
    settings: Option<&'a RepairFile>,
    draws: Draws,
    /// Time at which each host failed; `None` if it is up.
    failed: Vec<Option<Nanos>>,
    /// True for a failed host whose copies count as lost.
    dead: Vec<bool>,
    /// Hosts whose failure the engine learned of when they counted as dead.
    pub detected: BTreeSet<HostId>,
    waiting: BTreeMap<u32, Waiting>,
    /// Blocks with a request for hosts, or with flows.
    active: BTreeMap<u32, ActiveRepair>,
    /// Number of repairs for which each host sends.
    sending: Vec<u8>,
    /// True if the next round is scheduled.
    round_is_due: bool,
}

/// A block that waits for repair.
#[derive(Clone, Default)]
struct Waiting {
    /// Time at which its first copy was lost.
    lost: f64,
    /// Number of previous attempts.
    attempts: u64,
    /// Chosen hosts that were down.
    excluded: Vec<HostId>,
}

/// A repair in progress.
struct ActiveRepair {
    waited: Waiting,
    from: Vec<HostId>,
    /// Dead hosts, each replaced by the host in `to` at its position.
    missing: Vec<HostId>,
    to: Vec<HostId>,
    /// Its position in the record; `None` until the policy has chosen hosts.
    row: Option<usize>,
    flows: Vec<FlowId>,
    entries: Vec<EntryId>,
}

impl<'a> Repairs<'a> {
    pub fn new(scenario: &'a Scenario, seed: u64) -> Repairs<'a> {
        let hosts = scenario.cluster.fabric.host_count();
        Repairs {
            settings: scenario.repair.as_ref(),
            draws: Draws::new(seed, SOURCES),
            failed: vec![None; hosts],
            dead: vec![false; hosts],
            detected: BTreeSet::new(),
            waiting: BTreeMap::new(),
            active: BTreeMap::new(),
            sending: vec![0; hosts],
            round_is_due: false,
        }
    }

    /// Number of blocks with lost copies; `None` without settings.
    pub fn unrepaired(&self, blocks: &[Block]) -> Option<u64> {
        self.settings?;
        let open = self.waiting.keys().chain(self.active.keys());
        Some(open.filter(|&&block| self.has_lost_copies(&blocks[block as usize])).count() as u64)
    }

    fn has_lost_copies(&self, block: &Block) -> bool {
        block.deleted.is_none() && block.copies.iter().any(|host| self.dead[host.index()])
    }

    fn release_streams(&mut self, from: &[HostId]) {
        from.iter().for_each(|host| self.sending[host.index()] -= 1);
    }
}

impl Driver<'_> {
    /// Follows failures and recoveries of hosts.
    pub(super) fn watch_hosts(&mut self, now: f64) {
        let Some(settings) = self.repairs.settings else { return };
        let at = Nanos::from_secs_f64(now);
        for host in self.world.fabric.clone().all_hosts() {
            let failed = &mut self.repairs.failed[host.index()];
            match (self.world.outages.is_up(host), *failed) {
                (false, None) => {
                    *failed = Some(at);
                    self.world.schedule(at.plus(settings.after), Pending::Dead(host, at));
                }
                (true, Some(_)) => {
                    *failed = None;
                    self.repairs.dead[host.index()] = false;
                }
                _ => {}
            }
        }
    }

    /// Counts a host as dead, unless it has been up since `failed`.
    pub(super) fn lose_host(&mut self, now: f64, host: HostId, failed: Nanos) {
        if self.repairs.failed[host.index()] != Some(failed) {
            return;
        }
        self.repairs.dead[host.index()] = true;
        self.repairs.detected.insert(host);
        self.notify(now, Input::Health(host, false));
        for (block, record) in (0..).zip(&self.record.blocks) {
            let is_lost =
                record.finished.is_some() && record.deleted.is_none() && record.copies.contains(&host);
            if is_lost && !self.repairs.active.contains_key(&block) {
                let waiting = Waiting { lost: now, ..Waiting::default() };
                self.repairs.waiting.entry(block).or_insert(waiting);
            }
        }
        self.schedule_round(Nanos::from_secs_f64(now));
    }

    /// Schedules a round, if a block waits and the run has not ended.
    fn schedule_round(&mut self, at: Nanos) {
        if !self.repairs.round_is_due && !self.repairs.waiting.is_empty() && at <= self.scenario.horizon {
            self.repairs.round_is_due = true;
            self.world.schedule(at, Pending::Round);
        }
    }

    /// Starts the repairs that have free streams.
    pub(super) fn start_round(&mut self, now: f64) {
        self.repairs.round_is_due = false;
        let Some(settings) = self.repairs.settings else { return };
        let holders = |block: u32| {
            let copies = &self.record.blocks[block as usize].copies;
            copies.iter().filter(|host| !self.repairs.dead[host.index()]).count()
        };
        let mut blocks: Vec<(usize, u32)> =
            self.repairs.waiting.keys().map(|&block| (holders(block), block)).collect();
        blocks.sort_unstable();
        for (_, block) in blocks {
            self.request_repair(now, block, settings);
        }
        self.schedule_round(Nanos::from_secs_f64(now).plus(settings.every));
    }

    /// Requests new hosts for a waiting block, if enough holders have a free stream.
    fn request_repair(&mut self, now: f64, block: u32, settings: &RepairFile) {
        let (record, workload) = (&self.record.blocks[block as usize], self.workload);
        let file = &workload.files[record.file as usize];
        let (missing, existing): (Vec<HostId>, Vec<HostId>) =
            record.copies.iter().copied().partition(|host| self.repairs.dead[host.index()]);
        let is_lost = self.repairs.has_lost_copies(record);
        let Some(waiting) = self.repairs.waiting.get(&block).filter(|_| is_lost) else {
            self.repairs.waiting.remove(&block);
            return;
        };
        let (waited, is_up) = (waiting.clone(), |host: &HostId| self.world.outages.is_up(*host));
        let has_stream = |host: &HostId| self.repairs.sending[host.index()] < settings.streams.get();
        let senders: Vec<HostId> =
            existing.iter().copied().filter(|host| is_up(host) && has_stream(host)).collect();
        let needed = match file.layout {
            Layout::Chain => 1,
            Layout::Stripe { parity } => usize::from(file.replicas - parity),
        };
        if senders.len() < needed {
            return;
        }
        let mut request = ReplicaRequest {
            id: id(record),
            file: u64::from(record.file),
            writer: None,
            size: piece(record, file),
            replicas: missing.len() as u8,
            layout: file.layout,
            fault_domains: fault_domains(self.scenario, file),
            blocks_left: 1,
            job_blocks_left: None,
            constraints: Constraints {
                excluded_hosts: waited.excluded.iter().copied().filter(|host| !is_up(host)).collect(),
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
        let repair = ActiveRepair { waited, from, missing, to, row: None, flows, entries };
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

    /// Starts the flows of a repair on its new hosts, or lets the block wait again.
    pub(super) fn start_repair(
        &mut self,
        now: f64,
        block: u32,
        answer: ReplicasAnswer,
    ) -> Result<(), RunError> {
        let Ok(placed) = answer else {
            self.wait_again(now, block, None);
            return Ok(());
        };
        let (to, entries) = (placed.decision.choice, placed.entries);
        let repair = &self.repairs.active[&block];
        let is_down = |host: &&HostId| !self.world.outages.is_up(**host);
        let failed_host = to.iter().find(is_down).copied();
        if failed_host.is_some() || repair.from.iter().any(|host| is_down(&host)) {
            self.undo(now, block, &to, &entries);
            self.wait_again(now, block, failed_host);
            return Ok(());
        }
        let record = &self.record.blocks[block as usize];
        let file = &self.workload.files[record.file as usize];
        let World { fabric, network, hops, .. } = &mut self.world;
        let rate = self.repairs.settings.and_then(|settings| settings.rate);
        let cap = rate.map_or(f64::INFINITY, |rate| rate.0 as f64 / 8.0);
        let (bytes, number) = (piece(record, file), id(record));
        let mut flows = Vec::with_capacity(1);
        let mut start = |route: &[Endpoint]| {
            hops.clear();
            fabric.path(route, hops);
            flows.push(network.start(now, hops, bytes.0 as f64, 1.0, cap, None));
        };
        match file.layout {
            Layout::Chain => {
                let source = stored_at(fabric, repair.from[0], number);
                replicas::routes(fabric, file.layout, number, None, None, &to, |route| {
                    start(&[&[source], route].concat());
                });
            }
            Layout::Stripe { .. } => {
                for &source in &repair.from {
                    start(&[stored_at(fabric, source, number), Endpoint::Host(to[0])]);
                }
                replicas::routes(fabric, file.layout, number, None, Some(to[0]), &to, start);
            }
        }
        let flows = flows.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.purposes.extend(flows.iter().map(|&flow| (flow, FlowPurpose::Repair(block))));
        let row = self.record.repairs.len();
        let repair = self.repairs.active.get_mut(&block).expect("a repair is active until it ends");
        self.record.repairs.push(Repair {
            block,
            from: repair.from.clone().into(),
            missing: repair.missing.clone().into(),
            to: to.clone().into(),
            bytes,
            lost: repair.waited.lost,
            started: now,
            finished: None,
            abandoned: None,
        });
        (repair.to, repair.row, repair.flows, repair.entries) = (to, Some(row), flows, entries);
        Ok(())
    }

    /// Handles the end of a flow of a repair; the last one ends the repair.
    pub(super) fn finish_repair_flow(&mut self, block: u32, done: Finished) {
        let repair = self.repairs.active.get_mut(&block).expect("a repair is active while its flows are");
        repair.flows.retain(|&flow| flow != done.flow);
        if !repair.flows.is_empty() {
            return;
        }
        let repair = self.repairs.active.remove(&block).expect("the repair was found above");
        self.repairs.release_streams(&repair.from);
        self.working -= 1;
        self.notify(done.at, Input::Release(&repair.entries));
        if let Some(row) = repair.row {
            self.record.repairs[row].finished = Some(done.at);
        }
        let record = &self.record.blocks[block as usize];
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        if record.deleted.is_some() {
            repair.to.iter().for_each(|&host| self.notify(done.at, Input::Unstored(host, bytes)));
            return;
        }
        for (&lost, &new) in repair.missing.iter().zip(&repair.to) {
            let copies = &mut self.record.blocks[block as usize].copies;
            copies.iter_mut().filter(|copy| **copy == lost).for_each(|copy| *copy = new);
            for (host, sign) in [(lost, -1), (new, 1)] {
                let stored = &mut self.record.hosts[host.index()];
                stored.bytes.0 = stored.bytes.0.saturating_add_signed(sign * bytes.0 as i64);
                stored.blocks = stored.blocks.saturating_add_signed(sign);
            }
            self.notify(done.at, Input::Unstored(lost, bytes));
        }
        // Another of its hosts may have been lost in the meantime.
        if self.repairs.has_lost_copies(&self.record.blocks[block as usize]) {
            self.repairs.waiting.insert(block, Waiting { lost: done.at, ..Waiting::default() });
            self.schedule_round(Nanos::from_secs_f64(done.at));
        }
    }

    /// Abandons the repairs of failed hosts; their blocks wait again.
    pub(super) fn abandon_repairs(&mut self, now: f64) -> Result<(), RunError> {
        let down = |host: &HostId| !self.world.outages.is_up(*host);
        let has_failed = |repair: &ActiveRepair| {
            !repair.flows.is_empty() && repair.from.iter().chain(&repair.to).any(down)
        };
        let failed = self.repairs.active.iter().filter(|(_, repair)| has_failed(repair));
        let failed: Vec<u32> = failed.map(|(&block, _)| block).collect();
        for block in failed {
            let repair = self.repairs.active.get_mut(&block).expect("the list has active repairs only");
            let (flows, to) = (std::mem::take(&mut repair.flows), std::mem::take(&mut repair.to));
            let (entries, row) = (std::mem::take(&mut repair.entries), repair.row);
            if let Some(row) = row {
                self.record.repairs[row].abandoned = Some(now);
            }
            for flow in flows {
                self.world.network.cancel(now, flow)?;
                self.purposes.remove(&flow);
            }
            self.undo(now, block, &to, &entries);
            self.wait_again(now, block, None);
        }
        Ok(())
    }

    /// Ends an attempt; the block waits for the next round.
    fn wait_again(&mut self, now: f64, block: u32, failed_host: Option<HostId>) {
        let repair = self.repairs.active.remove(&block).expect("an attempt is active until it ends");
        self.repairs.release_streams(&repair.from);
        self.working -= 1;
        let mut waiting = Waiting { attempts: repair.waited.attempts + 1, ..repair.waited };
        waiting.excluded.extend(failed_host);
        self.repairs.waiting.insert(block, waiting);
        let every = self.repairs.settings.map_or(Nanos(0), |settings| settings.every);
        self.schedule_round(Nanos::from_secs_f64(now).plus(every));
    }
}
