//! Demand of applications, by connection (Etalon, section 5.2): hosts report the bytes that programs write, the switch
//! sees sequence numbers.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use leeward_circuits::estimate::Adus;

use crate::frame::{Packet, Tuple};
use crate::names::Address;

/// Largest number of connections that the table knows; it ignores others.
const MOST: usize = 1 << 20;

/// One direction of a connection that was reported or that opened at the switch.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// Number in the estimate, if its host reported it.
    number: Option<usize>,
    written: u64,
    /// Sequence number before the first byte, if its opening was seen.
    first: Option<u32>,
    seen: u64,
    /// True if the program has closed it: the kernel still sends the bytes that it has taken.
    is_closed: bool,
}

/// Bytes that programs have written and the switch has not seen, by connection.
#[derive(Debug)]
pub(crate) struct AduTable {
    adus: Adus,
    connections: HashMap<Tuple, Connection, FixedState>,
    free: Vec<usize>,
    numbers: usize,
    most: usize,
    ignored: u64,
}

impl AduTable {
    /// Creates an empty table for `racks` racks.
    pub(crate) fn new(racks: usize) -> AduTable {
        AduTable::of(racks, MOST)
    }

    fn of(racks: usize, most: usize) -> AduTable {
        let connections = HashMap::with_hasher(FixedState::with_seed(0));
        AduTable { adus: Adus::new(racks), connections, free: Vec::new(), numbers: 0, most, ignored: 0 }
    }

    /// A TCP packet enters the switch.
    pub(crate) fn see(&mut self, packet: &Packet) {
        let (Some(tuple), Some(segment)) = (packet.tuple(), packet.segment) else { return };
        if segment.resets {
            self.remove(&tuple);
            self.remove(&tuple.reversed());
            return;
        }
        if segment.opens {
            let first = Some(segment.end);
            // A repeated SYN opens the same connection; another number is that of a later one.
            if self.connections.get(&tuple).is_some_and(|known| known.first != first) {
                self.remove(&tuple);
            }
            match self.connection(tuple) {
                Some(opened) => opened.first = first,
                None => self.ignored += 1,
            }
            return;
        }
        let Some(known) = self.connections.get_mut(&tuple) else { return };
        if let Some(first) = known.first {
            // Sequence numbers have 32 bits: the end nearest to the last one counts.
            let ahead = segment.end.wrapping_sub(first).wrapping_sub(known.seen as u32) as i32;
            if ahead > 0 {
                known.seen += ahead as u64;
            }
            if let Some(number) = known.number {
                self.adus.seen(number, known.seen);
            }
        }
        if segment.closes || (known.is_closed && known.seen >= known.written) {
            self.remove(&tuple);
        }
    }

    /// A program has written `total` bytes to a connection so far.
    pub(crate) fn written(&mut self, tuple: Tuple, total: u64) {
        let (Some(source), Some(destination)) =
            (Address::place(tuple.source.0), Address::place(tuple.destination.0))
        else {
            return;
        };
        let Some(known) = self.connection(tuple) else { return };
        let mut known = *known;
        known.is_closed = false;
        let number = known.number.unwrap_or_else(|| {
            self.free.pop().unwrap_or_else(|| {
                self.numbers += 1;
                self.numbers - 1
            })
        });
        known.number = Some(number);
        if known.written == 0
            && self.adus.open(number, source.rack as usize, destination.rack as usize).is_ok()
        {
            self.adus.seen(number, known.seen);
        }
        // A correction to fewer bytes belongs to a program that will write the rest later.
        let more = total.saturating_sub(known.written);
        known.written += more;
        let _ = self.adus.write(number, more);
        self.connections.insert(tuple, known);
    }

    /// A program has closed a connection. It remains until the switch has seen the written bytes, or an end without
    /// them. If its opening was not seen, bytes cannot be counted, and the rest is no demand.
    pub(crate) fn closed(&mut self, tuple: Tuple) {
        let Some(known) = self.connections.get_mut(&tuple) else { return };
        known.is_closed = true;
        if known.first.is_none() || known.seen >= known.written {
            self.remove(&tuple);
        }
    }

    /// Number of packets that open a connection and were ignored, because there were too many connections.
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// A connection, which is new if the table does not have it; `None` if the table is full.
    fn connection(&mut self, tuple: Tuple) -> Option<&mut Connection> {
        let has_room = self.connections.len() < self.most || self.connections.contains_key(&tuple);
        has_room.then(|| self.connections.entry(tuple).or_default())
    }

    fn remove(&mut self, tuple: &Tuple) {
        if let Some(Connection { number: Some(number), .. }) = self.connections.remove(tuple) {
            self.adus.close(number);
            self.free.push(number);
        }
    }

    /// Demand by source rack, then destination.
    pub(crate) fn demand(&self) -> Vec<u64> {
        self.adus.demand()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use leeward_circuits::switch::Ecn;
    use proptest::prelude::*;

    use super::*;
    use crate::frame::Segment;

    const FIRST: u32 = u32::MAX - 1000;

    fn tuple(port: u16) -> Tuple {
        Tuple { source: (Ipv4Addr::new(10, 0, 0, 2), port), destination: (Ipv4Addr::new(10, 1, 0, 2), 5001) }
    }

    /// Packet whose last byte is the `end`th of its direction, with flags `S`, `F` and `R`.
    fn packet(of: Tuple, end: u32, flags: &str) -> Packet {
        let segment = Segment {
            ports: (of.source.1, of.destination.1),
            end: FIRST.wrapping_add(end),
            opens: flags.contains('S'),
            closes: flags.contains('F'),
            resets: flags.contains('R'),
        };
        Packet {
            source: of.source.0,
            destination: of.destination.0,
            bytes: 1500,
            ecn: Ecn::Incapable,
            segment: Some(segment),
            has_data: true,
        }
    }

    fn opened() -> AduTable {
        let mut table = AduTable::new(2);
        for of in [tuple(1), tuple(1).reversed()] {
            table.see(&packet(of, 0, "S"));
        }
        table
    }

    #[test]
    fn closed_connections_have_demand_until_the_switch_has_seen_their_bytes() {
        let mut table = opened();
        table.written(tuple(1), 500_000);
        table.closed(tuple(1));
        assert_eq!(table.demand(), [0, 500_000, 0, 0]);
        table.see(&packet(tuple(1), 300_000, ""));
        assert_eq!(table.demand(), [0, 200_000, 0, 0]);
        // A second report of the end changes nothing.
        table.closed(tuple(1));
        table.see(&packet(tuple(1), 500_000, ""));
        assert_eq!(table.demand(), [0; 4]);
        assert!(!table.connections.contains_key(&tuple(1)));
    }

    #[test]
    fn the_end_of_a_direction_removes_its_demand_and_a_reset_that_of_both() {
        for (end_of, flags, left) in [
            (tuple(1), "F", [0, 0, 70, 0]),
            (tuple(1).reversed(), "F", [0, 50, 0, 0]),
            (tuple(1), "R", [0; 4]),
            (tuple(1).reversed(), "R", [0; 4]),
        ] {
            let mut table = opened();
            table.written(tuple(1), 50);
            table.written(tuple(1).reversed(), 70);
            table.see(&packet(end_of, 10, flags));
            assert_eq!(table.demand(), left, "{flags} of {end_of:?}");
        }
    }

    #[test]
    fn a_later_connection_of_the_same_ends_begins_without_demand() {
        let mut table = opened();
        table.written(tuple(1), 50);
        table.see(&packet(tuple(1), 0, "S"));
        assert_eq!(table.demand(), [0, 50, 0, 0], "the same SYN again");
        table.see(&packet(tuple(1), 7, "S"));
        assert_eq!(table.demand(), [0; 4]);
        table.written(tuple(1), 30);
        table.see(&packet(tuple(1), 17, ""));
        assert_eq!(table.demand(), [0, 20, 0, 0]);
    }

    #[test]
    fn a_connection_whose_opening_was_not_seen_has_demand_until_it_is_closed() {
        let mut table = AduTable::new(2);
        table.written(tuple(1), 50);
        table.see(&packet(tuple(1), 20, ""));
        assert_eq!(table.demand(), [0, 50, 0, 0]);
        table.closed(tuple(1));
        assert_eq!(table.demand(), [0; 4]);
    }

    #[test]
    fn a_full_table_ignores_connections_and_counts_them() {
        let mut table = AduTable::of(2, 1);
        table.written(tuple(1), 50);
        table.written(tuple(2), 50);
        table.see(&packet(tuple(3), 0, "S"));
        assert_eq!(table.ignored(), 1);
        assert_eq!(table.demand(), [0, 50, 0, 0]);
    }

    proptest! {
        #[test]
        fn after_the_ends_of_all_connections_there_is_no_demand(
            events in prop::collection::vec((0..3_u16, 0..5_u8, 0..5000_u32), 0..60),
        ) {
            let mut table = AduTable::new(2);
            for (port, kind, bytes) in events {
                match kind {
                    0 => table.see(&packet(tuple(port), bytes, "S")),
                    1 => table.see(&packet(tuple(port), bytes, "")),
                    2 => table.written(tuple(port), u64::from(bytes)),
                    3 => table.closed(tuple(port)),
                    _ => table.see(&packet(tuple(port), bytes, "F")),
                }
                prop_assert!(table.demand()[1] <= 3 * 5000);
            }
            for port in 0..3 {
                table.see(&packet(tuple(port).reversed(), 0, "R"));
            }
            prop_assert_eq!(table.demand(), vec![0; 4]);
            prop_assert!(table.connections.is_empty());
            prop_assert_eq!(table.free.len(), table.numbers);
        }
    }
}
