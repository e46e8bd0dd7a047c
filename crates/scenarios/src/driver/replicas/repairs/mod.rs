//! Re-replication: blocks with copies, or chunks, on dead hosts get new ones, as in HDFS.
//!
//! A host that is down has *failed*. After a time it counts as *dead*, and its copies as *lost*. Its blocks then wait for
//! repair. Rounds at intervals go through the waiting blocks, those that can lose the fewest further holders first. Holders
//! with a free stream send, and the policy of the run chooses the new hosts. A damaged stripe is rebuilt by the first of its
//! new hosts, which reads as many chunks as the code has of data, and sends the others on.
//!
//! A host that comes up again has its copies as before. Blocks that wait for no other host then stop waiting. A copy that
//! is on its way still arrives, and replaces that of the host.
//!
//! Two limits of HDFS are not modeled. A holder of a block with one copy left sends up to 4 of them at once
//! (`dfs.namenode.replication.max-streams-hard-limit`). A round starts at most 2 blocks for each live DataNode
//! (`dfs.namenode.replication.work.multiplier.per.iteration`).

mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::{Input, ReplicasAnswer};
use leeward_fabric::{Bandwidth, Endpoint, HostId, Nanos};
use leeward_fluid::{Finished, FlowId};
use leeward_ledger::EntryId;
use leeward_placement::replicas::{self, Layout};
use leeward_registry::random::{Draws, Kind};

use super::writes::{id, piece, stored_at};
use super::{Driver, FlowPurpose, Pending};
use crate::driver::error::RunError;
use crate::driver::world::World;
use crate::record::{Block, Repair};
use crate::scenario::{RepairFile, Scenario};

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
    /// Time from which each host counts as dead; `None` if it does not.
    dead: Vec<Option<f64>>,
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
    /// Number of previous attempts.
    attempts: u64,
    /// Chosen hosts that were down.
    excluded: Vec<HostId>,
}

/// A repair in progress.
struct ActiveRepair {
    waited: Waiting,
    /// Time at which the first of the lost copies was lost.
    lost: f64,
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
            dead: vec![None; hosts],
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
        let is_damaged = |block: &&u32| self.time_of_loss(&blocks[**block as usize]).is_some();
        Some(open.filter(is_damaged).count() as u64)
    }

    fn is_dead(&self, host: HostId) -> bool {
        self.dead[host.index()].is_some()
    }

    /// Time at which the first of a block's lost copies was lost; `None` if it has none.
    fn time_of_loss(&self, block: &Block) -> Option<f64> {
        let losses = block.copies.iter().filter_map(|host| self.dead[host.index()]);
        losses.min_by(f64::total_cmp).filter(|_| block.deleted.is_none())
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
                    self.repairs.dead[host.index()] = None;
                }
                _ => {}
            }
        }
    }

    /// Counts a host as dead, unless it has been up since `failed`. After the horizon no host does, because nothing would be
    /// repaired.
    pub(super) fn lose_host(&mut self, now: f64, host: HostId, failed: Nanos) {
        let at = Nanos::from_secs_f64(now);
        if self.repairs.failed[host.index()] != Some(failed) || at > self.scenario.horizon {
            return;
        }
        self.repairs.dead[host.index()] = Some(now);
        self.repairs.detected.insert(host);
        self.notify(now, Input::Health(host, false));
        for (block, record) in (0..).zip(&self.record.blocks) {
            let is_lost =
                record.finished.is_some() && record.deleted.is_none() && record.copies.contains(&host);
            if is_lost && !self.repairs.active.contains_key(&block) {
                self.repairs.waiting.entry(block).or_default();
            }
        }
        self.schedule_round(at);
    }

    /// Starts the flows of a repair on its new hosts, or lets the block wait again.
    pub(super) fn start_repair(
        &mut self,
        now: f64,
        block: u32,
        answer: ReplicasAnswer,
    ) -> Result<(), RunError> {
        if self.record.blocks[block as usize].deleted.is_some() {
            if let Ok(placed) = answer {
                self.undo(now, block, &placed.decision.choice, &placed.entries);
            }
            self.end_attempt(block);
            return Ok(());
        }
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
        let cap = rate.map_or(f64::INFINITY, Bandwidth::bytes_per_second);
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
            lost: repair.lost,
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
        let repair = self.end_attempt(block);
        self.notify(done.at, Input::Release(&repair.entries));
        if let Some(row) = repair.row {
            self.record.repairs[row].finished = Some(done.at);
        }
        let record = &self.record.blocks[block as usize];
        let bytes = piece(record, &self.workload.files[record.file as usize]);
        let replaced = || repair.missing.iter().copied().zip(repair.to.iter().copied());
        for copy in &mut self.record.blocks[block as usize].copies {
            *copy = replaced().find(|&(lost, _)| lost == *copy).map_or(*copy, |(_, new)| new);
        }
        for (lost, new) in replaced() {
            for (host, sign) in [(lost, -1), (new, 1)] {
                let stored = &mut self.record.hosts[host.index()];
                stored.bytes.0 = stored.bytes.0.saturating_add_signed(sign * bytes.0 as i64);
                stored.blocks = stored.blocks.saturating_add_signed(sign);
            }
            self.notify(done.at, Input::Unstored(lost, bytes));
        }
        // Another of its hosts may have been lost in the meantime.
        if self.repairs.time_of_loss(&self.record.blocks[block as usize]).is_some() {
            self.repairs.waiting.insert(block, Waiting::default());
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
            self.cancel_repair(now, block)?;
            self.wait_again(now, block, None);
        }
        Ok(())
    }

    /// Ends the repair of a block that is deleted. A repair that waits for the policy ends with its answer.
    pub(super) fn drop_repair(&mut self, now: f64, block: u32) -> Result<(), RunError> {
        self.repairs.waiting.remove(&block);
        if self.repairs.active.get(&block).is_some_and(|repair| !repair.flows.is_empty()) {
            self.cancel_repair(now, block)?;
            self.end_attempt(block);
        }
        Ok(())
    }

    /// Cancels the flows of a repair, and reverts its placement.
    fn cancel_repair(&mut self, now: f64, block: u32) -> Result<(), RunError> {
        let repair = self.repairs.active.get_mut(&block).expect("a repair is active until it ends");
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
        Ok(())
    }

    /// Ends an attempt; its holders can send others.
    fn end_attempt(&mut self, block: u32) -> ActiveRepair {
        let repair = self.repairs.active.remove(&block).expect("an attempt is active until it ends");
        repair.from.iter().for_each(|host| self.repairs.sending[host.index()] -= 1);
        self.working -= 1;
        repair
    }

    /// Ends an attempt; the block waits for the next round.
    fn wait_again(&mut self, now: f64, block: u32, failed_host: Option<HostId>) {
        let repair = self.end_attempt(block);
        let mut waiting = Waiting { attempts: repair.waited.attempts + 1, ..repair.waited };
        waiting.excluded.extend(failed_host);
        self.repairs.waiting.insert(block, waiting);
        let every = self.repairs.settings.map_or(Nanos(0), |settings| settings.every);
        self.schedule_round(Nanos::from_secs_f64(now).plus(every));
    }
}
