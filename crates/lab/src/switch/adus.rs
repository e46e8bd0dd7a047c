//! Demand of applications, by connection (Etalon, section 5.2): hosts report the bytes that programs write, the switch
//! sees sequence numbers.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use leeward_circuits::estimate::Adus;

use crate::frame::{Packet, Tuple};
use crate::names::Address;

/// Largest number of connections that the table knows; others are ignored.
const MOST: usize = 1 << 20;

/// A connection that was reported or that opened at the switch.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// Number in the estimate, if its host reported it.
    number: Option<usize>,
    written: u64,
    /// Sequence number before the first byte, if its opening was seen.
    first: Option<u32>,
    seen: u64,
}

/// Bytes that programs have written and the switch has not seen, by connection.
#[derive(Debug)]
pub(crate) struct AduTable {
    adus: Adus,
    connections: HashMap<Tuple, Connection, FixedState>,
    free: Vec<usize>,
    numbers: usize,
}

impl AduTable {
    /// Creates an empty table for `racks` racks.
    pub(crate) fn new(racks: usize) -> AduTable {
        let connections = HashMap::with_hasher(FixedState::with_seed(0));
        AduTable { adus: Adus::new(racks), connections, free: Vec::new(), numbers: 0 }
    }

    /// A TCP packet enters the switch.
    pub(crate) fn see(&mut self, packet: &Packet) {
        let (Some(tuple), Some(segment)) = (packet.tuple(), packet.segment) else { return };
        if segment.opens {
            if self.connections.len() < MOST {
                let first = Some(segment.end);
                let opened = Connection { number: None, written: 0, first, seen: 0 };
                self.connections.entry(tuple).and_modify(|known| known.first = first).or_insert(opened);
            }
            return;
        }
        let Some(known) = self.connections.get_mut(&tuple) else { return };
        let Some(first) = known.first else { return };
        // Sequence numbers have 32 bits: the end nearest to the last one counts.
        let ahead = segment.end.wrapping_sub(first).wrapping_sub(known.seen as u32) as i32;
        if ahead > 0 {
            known.seen += ahead as u64;
        }
        match known.number {
            Some(number) => self.adus.seen(number, known.seen),
            None if segment.closes => drop(self.connections.remove(&tuple)),
            None => {}
        }
    }

    /// A program has written `total` bytes to a connection so far.
    pub(crate) fn written(&mut self, tuple: Tuple, total: u64) {
        let (Some(source), Some(destination)) =
            (Address::place(tuple.source.0), Address::place(tuple.destination.0))
        else {
            return;
        };
        if self.connections.len() >= MOST && !self.connections.contains_key(&tuple) {
            return;
        }
        let unseen = Connection { number: None, written: 0, first: None, seen: 0 };
        let known = self.connections.entry(tuple).or_insert(unseen);
        let number = *known.number.get_or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.numbers += 1;
                self.numbers - 1
            })
        });
        if known.written == 0
            && self.adus.open(number, source.rack as usize, destination.rack as usize).is_ok()
        {
            self.adus.seen(number, known.seen);
        }
        // A correction to fewer bytes belongs to a program that will write the rest later.
        let more = total.saturating_sub(known.written);
        known.written += more;
        let _ = self.adus.write(number, more);
    }

    /// A program has closed a connection: what is left of it is no demand.
    pub(crate) fn closed(&mut self, tuple: Tuple) {
        if let Some(Connection { number: Some(number), .. }) = self.connections.remove(&tuple) {
            self.adus.close(number);
            self.free.push(number);
        }
    }

    /// Demand by source rack, then destination.
    pub(crate) fn demand(&self) -> Vec<u64> {
        self.adus.demand()
    }
}
