//! Writes: a block loads the links of its chain of copies from its start to its end.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::EntryId;

use super::Simulation;
use crate::agenda::{Event, Message};
use crate::geometry::Direction;

/// A running write.
#[derive(Debug)]
struct Write {
    /// Number of its block.
    number: usize,
    /// The writer, and the hosts of the copies.
    chain: Vec<HostId>,
    /// Entries in the ledger of its home.
    entries: Vec<EntryId>,
    /// Cell that granted the copies, if another one did.
    granted_by: Option<u32>,
}

/// Running writes, in slots that are used again.
#[derive(Debug, Default)]
pub(super) struct Writes {
    slots: Vec<Option<Write>>,
    free: Vec<u32>,
    running: u64,
}

impl Writes {
    /// Number of running writes.
    pub fn running(&self) -> u64 {
        self.running
    }

    fn insert(&mut self, write: Write) -> u32 {
        self.running += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(write);
                slot
            }
            None => {
                self.slots.push(Some(write));
                self.slots.len() as u32 - 1
            }
        }
    }

    fn remove(&mut self, slot: u32) -> Option<Write> {
        let write = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.running -= 1;
        Some(write)
    }
}

impl Simulation<'_> {
    /// Starts the write of a block onto `hosts`. `entries` are those in the ledger of its home.
    pub(super) fn start(
        &mut self,
        now: Nanos,
        number: usize,
        hosts: &[HostId],
        entries: Vec<EntryId>,
        granted_by: Option<u32>,
    ) {
        let arrival = self.arrivals[number];
        let chain: Vec<HostId> = std::iter::once(arrival.writer).chain(hosts.iter().copied()).collect();
        let is_hot = self.load(now, &chain, arrival.rate_bps as i64);
        let home = self.geometry.cell_of(arrival.writer);
        let crosses = hosts.iter().any(|&host| self.geometry.cell_of(host) != home);
        if let Some(counts) = self.counts(now) {
            counts.placed += 1;
            counts.crossed += u64::from(crosses);
            counts.hot += u64::from(is_hot);
        }
        let slot = self.writes.insert(Write { number, chain, entries, granted_by });
        self.agenda.add(now.plus(arrival.duration()), Event::Ends(slot));
    }

    /// Ends the write in a slot.
    pub(super) fn end(&mut self, now: Nanos, slot: u32) {
        let Some(Write { number, chain, entries, granted_by }) = self.writes.remove(slot) else { return };
        let arrival = self.arrivals[number];
        self.load(now, &chain, -(arrival.rate_bps as i64));
        let home = self.geometry.cell_of(arrival.writer);
        self.controller(home).release(now, entries);
        if let Some(cell) = granted_by {
            self.cells[home as usize].asks.end(number as u64);
            if self.controllers[home as usize].is_present() {
                self.send(now, home, cell, Message::Ended(number as u64));
            }
        }
    }

    /// Changes the load of the links of a chain. Returns true if a link from the core, into the pod or the rack of a
    /// copy, is hot then.
    fn load(&mut self, now: Nanos, chain: &[HostId], bps: i64) -> bool {
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        self.geometry.path(chain, &mut links);
        for &link in &links {
            self.truth.add(now, link, bps);
            if let Some(at) = link.checked_sub(self.geometry.rack_links()) {
                self.placed[at % 2] += bps;
            }
        }
        let (truth, hot) = (&self.truth, self.plan.ledger.hot);
        let is_hot = |&link: &usize| truth.load(link) as f64 > hot * truth.capacity(link) as f64;
        let is_down = |link: &&usize| **link % 2 == Direction::Down as usize;
        let any_hot = links.iter().filter(is_down).any(is_hot);
        self.links = links;
        any_hot
    }
}
