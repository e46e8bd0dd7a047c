//! Blocks whose copies another cell places: requests, answers, and what happens if messages are lost.

use std::sync::Arc;

use leeward_fabric::{HostId, Nanos};

use super::Simulation;
use crate::agenda::{Event, Message};
use crate::arrivals::Scope;
use crate::asks::{Answered, Timeout};
use crate::grants::Grant;

impl Simulation<'_> {
    /// Sends a message, which may be late or lost.
    pub(super) fn send(&mut self, now: Nanos, from: u32, to: u32, message: Message) {
        let late = self.channel.send(from);
        if let Some(counts) = self.counts(now) {
            counts.messages += 1;
            counts.lost += u64::from(late.is_none());
        }
        if let Some(late) = late {
            self.agenda.add(now.plus(late), Event::Arrives { from, to, message });
        }
    }

    /// Chooses a cell for the copies of a block, but none of `except`. Returns it with its room.
    pub(super) fn choose(
        &mut self,
        now: Nanos,
        number: usize,
        home: u32,
        except: &[u32],
    ) -> Option<(u32, f64)> {
        self.refresh(now, home);
        let directory = &self.cells[home as usize].directory;
        directory.choose(self.plan.choice, self.plan.seed ^ number as u64, except, now)
    }

    /// Asks a cell to place the copies of a block.
    pub(super) fn ask(&mut self, now: Nanos, number: usize, home: u32, cell: u32) {
        let message = self.cells[home as usize].asks.ask(number as u64, cell, now);
        self.send_ask(now, number, home, cell, message);
    }

    fn send_ask(&mut self, now: Nanos, number: usize, home: u32, cell: u32, message: u32) {
        let key = number as u64;
        self.send(now, home, cell, Message::Ask(key));
        self.agenda.add(now.plus(self.plan.exchange.timeout), Event::TimeOut(key, message));
    }

    /// A message arrives at a cell. A controller that is away hears nothing.
    pub(super) fn receive(&mut self, now: Nanos, from: u32, to: u32, message: Message) {
        if !self.controllers[to as usize].is_present() {
            self.counts(now).into_iter().for_each(|counts| counts.lost += 1);
            return;
        }
        match message {
            Message::Digest(digest) => self.cells[to as usize].directory.update(from, &digest),
            Message::Ask(key) => self.decide(now, from, to, key),
            Message::Answer(key, hosts, digest) => {
                if let Some(digest) = digest {
                    self.cells[to as usize].directory.update(from, &digest);
                }
                self.answered(now, to, from, key, hosts);
            }
            Message::Ended(key) => {
                let (entries, _) = self.cells[to as usize].grants.end(key);
                self.controllers[to as usize].release(now, entries);
            }
            Message::Cancelled(key) => {
                let (entries, hosts) = self.cells[to as usize].grants.end(key);
                let arrival = &self.arrivals[key as usize];
                self.controllers[to as usize].discard(now, hosts, arrival);
                self.controllers[to as usize].release(now, entries);
            }
        }
    }

    /// A cell decides on a request of another, or repeats its decision.
    fn decide(&mut self, now: Nanos, from: u32, to: u32, key: u64) {
        let controller = &mut self.controllers[to as usize];
        let grants = &mut self.cells[to as usize].grants;
        if grants.get(key).is_none() {
            let arrival = &self.arrivals[key as usize];
            match controller.place_inbound(now, key, arrival) {
                Ok(placed) => grants.insert(key, Grant::Hosts(placed.decision.choice), placed.entries),
                Err(_) => grants.insert(key, Grant::Refused, Vec::new()),
            }
            self.agenda.add(now.plus(self.plan.exchange.lease), Event::Lease(to, key));
        }
        let hosts = match grants.get(key) {
            Some(Grant::Hosts(hosts)) => Some(hosts.clone()),
            Some(Grant::Refused) | None => None,
        };
        let digest = self.plan.exchange.answers_carry_state.then(|| Arc::new(controller.digest(now)));
        self.send(now, to, from, Message::Answer(key, hosts, digest));
    }

    /// A cell has answered a request of its home.
    fn answered(&mut self, now: Nanos, home: u32, cell: u32, key: u64, hosts: Option<Vec<HostId>>) {
        let number = key as usize;
        match self.cells[home as usize].asks.answer(key, cell, hosts.is_some()) {
            Answered::Granted(began) => {
                let arrival = self.arrivals[number];
                let entries = self.controllers[home as usize].commit_outbound(now, key, &arrival);
                let granting = &self.controllers[cell as usize];
                let hosts: Vec<HostId> =
                    hosts.into_iter().flatten().map(|host| granting.global(host)).collect();
                if now >= self.plan.warmup {
                    self.record.waits.push(now.since(began).as_secs_f64() as f32);
                }
                self.start(now, number, &hosts, entries, Some(cell));
            }
            Answered::Refused => self.ask_next(now, number, home),
            Answered::Repeated => {}
            Answered::Unwanted => {
                self.counts(now).into_iter().for_each(|counts| counts.cancelled += 1);
                self.send(now, home, cell, Message::Cancelled(key));
            }
        }
    }

    /// A request was not answered in time.
    pub(super) fn time_out(&mut self, now: Nanos, key: u64, message: u32) {
        let number = key as usize;
        let home = self.geometry.cell_of(self.arrivals[number].writer);
        let step = self.cells[home as usize].asks.time_out(key, message);
        if step == Timeout::Stale {
            return;
        }
        if !self.controllers[home as usize].is_present() {
            // The writer waits for its controller in vain.
            self.cells[home as usize].asks.end(key);
            return self.place_without(now, number, home);
        }
        match step {
            Timeout::Stale => {}
            Timeout::Repeat(cell, message) => {
                self.counts(now).into_iter().for_each(|counts| counts.repeated += 1);
                self.send_ask(now, number, home, cell, message);
            }
            Timeout::Leave(cell) => {
                // The cell may have granted the request, and only its answers were lost.
                self.send(now, home, cell, Message::Cancelled(key));
                self.ask_next(now, number, home);
            }
        }
    }

    /// Asks the next cell, or gives up.
    fn ask_next(&mut self, now: Nanos, number: usize, home: u32) {
        let key = number as u64;
        let except = self.cells[home as usize].asks.asked(key).map(|asked| [asked, &[home]].concat());
        match except.and_then(|except| self.choose(now, number, home, &except)) {
            Some((cell, _)) => self.ask(now, number, home, cell),
            None => self.reject(now, number, home),
        }
    }

    /// No cell takes the copies of a block: they stay at home if they may.
    pub(super) fn reject(&mut self, now: Nanos, number: usize, home: u32) {
        self.cells[home as usize].asks.end(number as u64);
        if self.arrivals[number].scope == Scope::Anywhere {
            self.counts(now).into_iter().for_each(|counts| counts.stayed += 1);
            return self.place(now, number, home, &[]);
        }
        self.counts(now).into_iter().for_each(|counts| counts.unplaced += 1);
    }

    /// The lease of a grant is over.
    pub(super) fn expire(&mut self, now: Nanos, cell: u32, key: u64) {
        let entries = self.cells[cell as usize].grants.expire(key);
        if !entries.is_empty() {
            self.counts(now).into_iter().for_each(|counts| counts.expired += 1);
            self.controllers[cell as usize].release(now, entries);
        }
    }
}
