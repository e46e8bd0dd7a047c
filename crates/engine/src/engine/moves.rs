//! Moves of tasks out of hot racks.

use leeward_fabric::{DomainId, HostId};
use leeward_ledger::{Entry, EntryId};
use leeward_moves::{HotLoad, MoveRequest};
use leeward_placement::Context;
use leeward_placement::tasks::Traffic;

use super::{BEST_EFFORT, Engine};
use crate::message::{Advice, MoveRule, Output, Rates, is_in_share};
use crate::open_moves::OpenMove;

impl Engine {
    /// Moves tasks out of hot racks, if there is a policy for moves and the rule allows it.
    pub(super) fn relieve(&mut self, out: &mut Vec<Output>) {
        let rule = self.move_rule;
        let Some(policy) = self.policies.moves.as_ref().filter(|_| rule != MoveRule::Off) else { return };
        let (fabric, test) = (self.pool.fabric().clone(), self.policies.hot_test);
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        if test.load == HotLoad::Window {
            self.open_moves.drop_shown(&fabric, view);
            self.open_moves.add_to(&fabric, view);
        }
        let (considered, now, cooldown) = (&self.considered, self.now, self.policies.cooldown);
        let takes_part = |rack: DomainId| match rule {
            MoveRule::Canary(share) => is_in_share(fabric.domain_name(rack).as_bytes(), share),
            // Nothing moves, so the rack stays hot: without a pause, each report would choose further tasks.
            MoveRule::Shadow => considered.get(&rack).is_none_or(|at| now > at.plus(cooldown)),
            MoveRule::Off | MoveRule::On => true,
        };
        let is_hot = |rack: &DomainId| {
            let links = [fabric.out_of_domain(*rack), fabric.into_domain(*rack)];
            links.into_iter().flatten().any(|link| test.is_hot(view, link))
        };
        let racks: Vec<DomainId> =
            fabric.all_racks().filter(is_hot).filter(|&rack| takes_part(rack)).collect();
        if racks.is_empty() {
            return;
        }
        let mut request = self.cell.request(&racks, self.policies.cooldown, self.now);
        request.test = test;
        if let Some(history) = &self.history {
            let estimates = request.budgets.iter().map(|budget| history.estimate(budget.job, self.now));
            let estimates: Vec<[Traffic; 2]> = estimates.collect();
            for running in &mut request.running {
                running.demand = running.demand.with_measured(estimates[running.job as usize]);
            }
        }
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        let answer = policy.place_one(&request, &mut context);
        let Ok(mut decision) = answer else { return };
        let advice = decision.choice.moves.iter().map(|planned| {
            let running = &request.running[planned.at as usize];
            Advice { task: running.task, from: running.host, to: planned.to, link: planned.link }
        });
        let advice: Vec<Advice> = advice.collect();
        if advice.is_empty() {
            return;
        }
        if rule == MoveRule::Shadow {
            let racks = advice.iter().map(|advice| (fabric.rack_of(advice.from), self.now));
            self.considered.extend(racks);
            return out.push(Output::MovesConsidered(advice));
        }
        let entries = self.ledger.commit(std::mem::take(&mut decision.change), self.now).expect(BEST_EFFORT);
        let mut entries = entries.into_iter();
        for planned in &decision.choice.moves {
            let entries = &mut entries;
            self.move_task(&request, planned.at, planned.to, |count| entries.take(count).collect());
        }
        out.push(Output::MovesAdvised(advice));
    }

    /// Moves a task of a request for moves. `take` returns the next entries of the committed decision.
    fn move_task(
        &mut self,
        request: &MoveRequest,
        at: u32,
        to: HostId,
        take: impl FnOnce(usize) -> Vec<EntryId>,
    ) {
        let running = &request.running[at as usize];
        let (from, demand) = (running.host, running.demand);
        let job = request.budgets[running.job as usize].job;
        let new = take(running.assumed_demand().entry_count());
        let current = self.cell.entries(running.task).iter();
        let before: Vec<Entry> = current.filter_map(|&entry| self.ledger.entry(entry).cloned()).collect();
        let fabric = self.pool.fabric().clone();
        // A held peak is beside the measured load, so only the mean leaves the windows with its entry.
        let released = Rates::of_entries(&fabric, from, &before, !self.ledger.settings().hold_peak);
        let former = self.cell.move_to(&fabric, running.task, to, (new, before), self.now);
        self.ledger.release(&former, self.now);
        self.reroute(running.task, from);
        if self.policies.hot_test.load == HotLoad::Window {
            let [egress, ingress] = running.assumed_traffic();
            let open = OpenMove {
                from,
                to,
                at: self.now,
                measured: Rates { egress_bps: running.egress_bps, ingress_bps: running.ingress_bps },
                released,
                assumed: Rates { egress_bps: egress.peak_bps, ingress_bps: ingress.peak_bps },
                done: None,
            };
            self.open_moves.add(running.task, open);
        }
        self.pool.vacate(from, job, demand.cpus, demand.memory);
        self.pool.occupy(to, job, demand.cpus, demand.memory);
    }
}
