//! Ends of requests: of those that are in service, and of those that wait.

use leeward_fabric::Nanos;

use super::{FlowState, Server};
use crate::in_service::DEMOTED;
use crate::pool::Place;
use crate::request::{Request, Ticket};
use crate::workload::OverLimit;

impl<P> Server<P> {
    /// A started request ends and frees its caps. Returns false if it has ended before or has not started.
    #[inline]
    pub fn complete(&mut self, ticket: Ticket) -> bool {
        let Some(id) = self.find_started(ticket) else { return false };
        self.in_service.end(&mut self.pool, id);
        self.forget(id);
        true
    }

    /// A started request is interrupted, with `work` left. It is the next one of its priority again.
    ///
    /// # Errors
    /// Returns the payload if the request has ended or has not started.
    pub fn put_back(&mut self, ticket: Ticket, work: f64, payload: P) -> Result<(), P> {
        let Some(id) = self.find_started(ticket) else { return Err(payload) };
        self.in_service.end(&mut self.pool, id);
        let entry = self.pool.get_mut(id);
        entry.request = Request { work, ..entry.request }.with_finite_work();
        self.payloads[id as usize] = Some(payload);
        if entry.priority == DEMOTED {
            entry.place = Place::Demoted;
            self.demoted.merge(&mut self.pool, &[id]);
        } else {
            entry.place = Place::Ordered;
            let rank = self.flows[entry.flow as usize].rank;
            self.queue.put_back(&mut self.pool, rank, id);
        }
        Ok(())
    }

    /// Removes a waiting request, for example because its connection is closed, and returns its payload. Tokens that it
    /// has taken are not given back. `None` if the request has started or ended: a started one needs
    /// [`Server::complete`].
    pub fn cancel(&mut self, now: Nanos, ticket: Ticket) -> Option<P> {
        let id = self.pool.find(ticket)?;
        let entry = self.pool.get(id);
        let (place, index) = (entry.place, entry.flow);
        let flow = &mut self.flows[index as usize];
        match place {
            Place::Limited => {
                let was_first = flow.limited.head() == id;
                flow.limited.remove(&mut self.pool, id);
                if flow.over == OverLimit::Demoted {
                    self.over.remove(&mut self.pool, id);
                }
                if was_first {
                    self.set_timer(index, now);
                }
            }
            Place::Ordered => self.queue.remove(&mut self.pool, flow.rank, id),
            Place::Demoted => self.demoted.remove(&mut self.pool, id),
            Place::Started | Place::Free => return None,
        }
        let payload = self.payloads[id as usize].take();
        self.forget(id);
        payload
    }

    #[inline]
    fn find_started(&self, ticket: Ticket) -> Option<u32> {
        self.pool.find(ticket).filter(|&id| self.pool.get(id).place == Place::Started)
    }

    /// Removes a request that has ended.
    #[inline]
    fn forget(&mut self, id: u32) {
        let index = self.pool.get(id).flow;
        self.pool.remove(id);
        self.flows[index as usize].requests -= 1;
        self.free_if_done(index);
    }

    /// Gives up the place of a removed workload after its last request.
    #[inline]
    pub(super) fn free_if_done(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.state == FlowState::Leaving && flow.requests == 0 {
            (flow.state, flow.generation) = (FlowState::Free, flow.generation.wrapping_add(1));
            self.free_flows.push(index);
        }
    }
}
