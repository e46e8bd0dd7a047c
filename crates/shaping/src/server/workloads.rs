//! Workloads of a server: they come, change and go while requests wait.

use leeward_fabric::Nanos;

use super::{Flow, FlowState, Server};
use crate::error::ShapingError;
use crate::limiter::Limiter;
use crate::order::Order;
use crate::pool::List;
use crate::workload::{OverLimit, Workload, WorkloadId};

impl<P> Server<P> {
    /// Adds a workload, with empty buckets. At equal times, workloads added earlier get their tokens first; a workload
    /// may take the place of one that has left.
    ///
    /// # Errors
    /// Returns an error for invalid settings.
    pub fn add(&mut self, workload: &Workload) -> Result<WorkloadId, ShapingError> {
        workload.check()?;
        let priority = self.own_priority(workload);
        self.use_priority(priority);
        let index = self.free_flows.pop().unwrap_or(self.flows.len() as u32);
        let flow = Flow {
            generation: self.flows.get(index as usize).map_or(0, |former| former.generation),
            state: FlowState::Active,
            priority,
            rank: self.rank(priority),
            over: workload.over,
            limiter: Limiter::new(&workload.limits),
            limited: List::EMPTY,
            requests: 0,
        };
        self.queue.add_flow(index, workload.weight);
        let id = WorkloadId { index, generation: flow.generation };
        match self.flows.get_mut(index as usize) {
            Some(former) => *former = flow,
            None => self.flows.push(flow),
        }
        Ok(id)
    }

    /// Changes the settings of a workload, also for its waiting requests. Buckets that stay the same keep their
    /// content; the others are as full as its fullest bucket was, so that a change gives no tokens back.
    ///
    /// # Errors
    /// Returns an error for invalid settings, and for a workload that was removed; nothing is changed then.
    pub fn change(&mut self, now: Nanos, id: WorkloadId, workload: &Workload) -> Result<(), ShapingError> {
        workload.check()?;
        let index = self.find(id).ok_or(ShapingError::Workload)?;
        self.set_priority(index, self.own_priority(workload));
        self.queue.set_weight(index, workload.weight);
        self.set_over(index, workload.over);
        self.flows[index as usize].limiter.replace(now.0, &workload.limits);
        self.set_timer(index, now);
        Ok(())
    }

    /// Suspends a workload: its requests, also those that wait, are best effort without limits until the next
    /// [`Server::change`]. Its buckets leak meanwhile, so that a workload that comes back has no more tokens than one that
    /// stayed. Returns false if it was removed.
    pub fn suspend(&mut self, now: Nanos, id: WorkloadId) -> bool {
        let Some(index) = self.find(id) else { return false };
        let best_effort = Workload::best_effort();
        self.set_priority(index, self.own_priority(&best_effort));
        self.set_over(index, best_effort.over);
        self.flows[index as usize].limiter.suspend(now.0);
        self.set_timer(index, now);
        true
    }

    /// Sets the weight of a workload, for [`Order::Shares`].
    ///
    /// # Errors
    /// Returns an error for an invalid weight, and for a workload that was removed.
    pub fn set_weight(&mut self, id: WorkloadId, weight: f64) -> Result<(), ShapingError> {
        Workload::check_weight(weight)?;
        let index = self.find(id).ok_or(ShapingError::Workload)?;
        self.queue.set_weight(index, weight);
        Ok(())
    }

    /// Removes a workload. Its waiting requests keep their places and limits, and are served. Returns false if it was
    /// removed before.
    pub fn remove(&mut self, id: WorkloadId) -> bool {
        let Some(index) = self.find(id) else { return false };
        self.flows[index as usize].state = FlowState::Leaving;
        self.free_if_done(index);
        true
    }

    fn set_priority(&mut self, index: u32, priority: u32) {
        if self.flows[index as usize].priority == priority {
            return;
        }
        self.use_priority(priority);
        let (from, to) = (self.flows[index as usize].rank, self.rank(priority));
        self.queue.move_flow(&mut self.pool, index, from, to);
        let flow = &mut self.flows[index as usize];
        (flow.priority, flow.rank) = (priority, to);
    }

    /// Adds the requests that wait for tokens to those that an idle server takes, or removes them.
    fn set_over(&mut self, index: u32, over: OverLimit) {
        let flow = &mut self.flows[index as usize];
        if std::mem::replace(&mut flow.over, over) == over {
            return;
        }
        let limited: Vec<u32> = flow.limited.iter(&self.pool).collect();
        match over {
            OverLimit::Demoted => self.over.merge(&mut self.pool, &limited),
            OverLimit::Held => limited.iter().for_each(|&id| self.over.remove(&mut self.pool, id)),
        }
    }

    /// Priority of a workload in the order of this server.
    fn own_priority(&self, workload: &Workload) -> u32 {
        if self.order == Order::Priority { workload.priority } else { 0 }
    }

    fn rank(&self, priority: u32) -> u32 {
        self.priorities.binary_search(&priority).unwrap_or_else(|rank| rank) as u32
    }

    /// Makes room for a priority, and forgets those that are no longer in use.
    fn use_priority(&mut self, priority: u32) {
        if self.priorities.binary_search(&priority).is_ok() {
            return;
        }
        let of_flows = self.flows.iter().filter(|flow| flow.state != FlowState::Free);
        let mut used: Vec<u32> = of_flows.map(|flow| flow.priority).collect();
        used.extend(self.priorities.iter().filter(|&&known| self.in_service.has_priority(known)));
        used.push(priority);
        used.sort_unstable();
        used.dedup();
        self.queue.set_priorities(&self.priorities, &used);
        self.in_service.set_priorities(&used);
        self.priorities = used;
        for at in 0..self.flows.len() {
            self.flows[at].rank = self.rank(self.flows[at].priority);
        }
    }
}
