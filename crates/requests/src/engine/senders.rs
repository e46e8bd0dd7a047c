//! Senders: the next request of each workload and its time.

use leeward_fabric::Nanos;
use leeward_traces::Stage;

use super::Engine;
use crate::arrival::{Arrival, Source};
use crate::clock::NEVER;
use crate::error::{LATEST, RequestsError};
use crate::live::Live;
use crate::observer::Observer;

/// A workload that sends requests.
pub(super) struct Sender<'a> {
    pub(super) requests: Box<dyn Iterator<Item = Arrival> + 'a>,
    /// Next request; `None` at the end.
    pub(super) next: Option<Arrival>,
    /// Number of requests that a closed loop may send now; `None` for an open loop.
    pub(super) closed: Option<u32>,
    /// Number of requests read from the source, including the next one.
    pub(super) seen: u64,
    pub(super) slot: u32,
}

impl<'a, W: Observer> Engine<'a, W> {
    pub(super) fn add_sender(&mut self, workload: usize, source: Source<'a>) -> Result<(), RequestsError> {
        let slot = (self.events.len() - self.setup.workloads.len() + workload) as u32;
        let (requests, closed, from) = match source {
            Source::Open(requests) => (requests, None, 0),
            Source::Closed { outstanding: 0, .. } => {
                let problem = "0 requests outstanding in a closed loop: expected at least 1".into();
                return Err(RequestsError::Workload {
                    workload: self.setup.workloads[workload].name.clone(),
                    problem,
                });
            }
            Source::Closed { outstanding, from, requests } => (requests, Some(outstanding), from.0),
        };
        self.senders.push(Sender { requests, next: None, closed, seen: 0, slot });
        self.fetch(workload)?;
        if closed.is_some() && self.senders[workload].next.is_some() {
            self.clock.set(slot, from.min(LATEST + 1));
        }
        Ok(())
    }

    /// Reads the next request of a workload's source. For an open loop, also sets its time.
    pub(super) fn fetch(&mut self, workload: usize) -> Result<(), RequestsError> {
        let sender = &mut self.senders[workload];
        let before = sender.next.map(|arrival| arrival.at);
        sender.next = sender.requests.next();
        let index = sender.seen;
        let Some(next) = sender.next else {
            if sender.closed.is_none() {
                self.clock.set(sender.slot, NEVER);
            }
            return Ok(());
        };
        sender.seen += 1;
        let reject = |problem: String| {
            let workload = self.setup.workloads[workload].name.clone();
            Err(RequestsError::Request { workload, index, problem })
        };
        for (work, stage) in next.work.iter().zip(Stage::ALL) {
            if !(0.0..=1e15).contains(work) {
                return reject(format!("work {work} at {stage}: expected from 0 to 1e15"));
            }
        }
        if next.size > 1 << 53 {
            return reject(format!("{} bytes: expected at most {}", next.size, 1u64 << 53));
        }
        if sender.closed.is_some() {
            // A closed loop would send requests without work endlessly at the same time.
            let (from, to) = self.plan.hop_ranges[workload];
            let hops = &self.plan.hops[from as usize..to as usize];
            if hops.iter().all(|hop| next.work[hop.stage as usize] <= 0.0) {
                return reject("no work on its route: expected some in a closed loop".into());
            }
            return Ok(());
        }
        if before.is_some_and(|before| next.at < before) {
            let before = before.unwrap_or_default();
            return reject(format!(
                "at {}, before the previous one at {before}: expected in order of time",
                next.at
            ));
        }
        if next.at.0 > LATEST {
            return reject(format!("at {}: expected within 146 years", next.at));
        }
        let is_over = self.setup.until.is_some_and(|until| next.at >= until);
        self.clock.set(sender.slot, if is_over { NEVER } else { next.at.0 });
        Ok(())
    }

    /// Returns true if a workload will send a request. Controllers alone must not extend the run.
    pub(super) fn has_requests_to_send(&self) -> bool {
        let until = self.setup.until.unwrap_or(Nanos(NEVER));
        let sends = |sender: &Sender<'_>| match (sender.next, sender.closed) {
            (Some(next), None) => next.at < until,
            (next, _) => next.is_some() && Nanos(self.now) < until,
        };
        self.controllers.is_empty() || self.senders.iter().any(sends)
    }

    /// A workload sends its next request.
    pub(super) fn send(&mut self, workload: usize) -> Result<(), RequestsError> {
        if self.now > LATEST {
            return self.too_long(format!("workload {}", self.setup.workloads[workload].name));
        }
        let sender = &mut self.senders[workload];
        let is_over = self.setup.until.is_some_and(|until| self.now >= until.0);
        let Some(arrival) = sender.next.filter(|_| !is_over) else {
            self.clock.set(sender.slot, NEVER);
            return Ok(());
        };
        if let Some(left) = &mut sender.closed {
            *left -= 1;
            let again = if *left > 0 { self.now } else { NEVER };
            self.clock.set(sender.slot, again);
        }
        let (hop, end) = self.plan.hop_ranges[workload];
        // The current request is the last one read.
        let tails = self.setup.tails.get(workload).filter(|tails| !tails.is_empty());
        let tail = tails.map_or(0, |tails| tails[((sender.seen - 1) % tails.len() as u64) as usize].0);
        let id = self.pool.add(Live {
            workload: workload as u32,
            hop,
            level: 0,
            kind: arrival.kind,
            is_packet: false,
            was_demoted: false,
            ticket: None,
            number: self.next_number,
            arrived: self.now,
            since: self.now,
            left: 0.0,
            work: arrival.work,
            size: arrival.size,
            offset: arrival.offset,
            tail,
            spent: [0; 3],
        });
        self.next_number += 1;
        self.under_way += 1;
        if hop == end {
            self.done(id);
        } else {
            self.enter(id)?;
        }
        self.fetch(workload)
    }
}
