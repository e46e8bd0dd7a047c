//! Direction of sampled packets and of records: observed where they enter a switch, or where they leave it. A switch
//! that reports both reports a packet twice. Some exporters on hosts call one direction of a connection ingress and the
//! other one egress; they report each packet once. Flows are therefore compared by their ends.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use foldhash::fast::FixedState;

use super::Exporter;
use crate::discards::{Discards, Reason};
use crate::flow::Flow;

/// Largest number of pairs of addresses whose directions are compared; later pairs are not compared.
const MOST_PAIRS: usize = 1 << 18;

/// Place of observation in a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// At the interface where the packet enters.
    Ingress,
    /// At the interface where the packet leaves.
    Egress,
}

/// Directions that are counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Direction {
    /// All directions.
    #[default]
    Both,
    /// Packets that enter a switch.
    Ingress,
    /// Packets that leave a switch.
    Egress,
}

impl Direction {
    /// All choices.
    pub const ALL: [Direction; 3] = [Direction::Both, Direction::Ingress, Direction::Egress];

    /// Name of the choice in settings.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Both => "both",
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        }
    }

    /// The choice with this name.
    pub fn from_name(name: &str) -> Option<Direction> {
        Direction::ALL.into_iter().find(|direction| direction.name() == name)
    }
}

/// Number and bytes of flows: at ingress, and at egress.
type Seen = [(u64, u64); 2];

/// The chosen direction, and the directions that exporters report.
#[derive(Default)]
pub struct Directions {
    choice: Direction,
    /// The flows of each exporter and pair of addresses.
    seen: HashMap<(Exporter, IpAddr, IpAddr), Seen, FixedState>,
}

impl Directions {
    pub fn new(choice: Direction) -> Directions {
        Directions { choice, seen: HashMap::default() }
    }

    /// Decides whether a flow is counted; otherwise the flow is a discard.
    pub fn admit(
        &mut self,
        flow: &Flow,
        exporter: Exporter,
        way: Option<Way>,
        discards: &mut Discards,
    ) -> bool {
        let bytes = flow.bytes.saturating_mul(flow.rate.into());
        let example = || format!("{} to {}", flow.source, flow.destination);
        let chosen = match self.choice {
            Direction::Both => {
                let key = (exporter, flow.source, flow.destination);
                let room = self.seen.len() < MOST_PAIRS || self.seen.contains_key(&key);
                if let Some(way) = way.filter(|_| room) {
                    let seen = &mut self.seen.entry(key).or_default()[way as usize];
                    *seen = (seen.0 + 1, seen.1.saturating_add(bytes));
                }
                return true;
            }
            Direction::Ingress => Way::Ingress,
            Direction::Egress => Way::Egress,
        };
        match way {
            Some(way) if way != chosen => {
                discards.count(Reason::OtherDirection, "", bytes, example);
                false
            }
            Some(_) => true,
            None => {
                discards.count(Reason::NoDirection, "", bytes, example);
                true
            }
        }
    }

    /// Counts the flows that exporters report in both directions.
    pub fn finish(&mut self, discards: &mut Discards) {
        let mut twice = BTreeMap::<Exporter, [u64; 4]>::new();
        for ((exporter, _, _), [ingress, egress]) in std::mem::take(&mut self.seen) {
            let (count, bytes) = (ingress.0.min(egress.0), ingress.1.min(egress.1));
            if count > 0 {
                let sums = twice.entry(exporter).or_default();
                for (sum, more) in sums.iter_mut().zip([count, bytes, ingress.0, egress.0]) {
                    *sum = sum.saturating_add(more);
                }
            }
        }
        for (exporter, [count, bytes, ingress, egress]) in twice {
            discards.count_all(Reason::BothDirections, "", count, bytes, || {
                let (protocol, name) = (exporter.protocol, exporter.name());
                format!("{protocol} of {name}: {ingress} at ingress and {egress} at egress")
            });
        }
    }
}
