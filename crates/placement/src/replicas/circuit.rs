//! Partner racks for networks of circuits: at any time, a rack writes its copies to one other rack.
//!
//! A circuit joins each rack with one other at a time, and during a change (a night) no rack can send. So at any time
//! all writes of a rack go to one other rack, and no two racks have the same partner. This is a permutation, and one
//! configuration of the circuits serves it. The permutation depends on time alone. In one round, every other rack is
//! the partner once, so a rack's data does not depend on one other rack. Etalon section 6.1 names this concern and this
//! solution.

use leeward_fabric::{DomainId, Fabric, Nanos, Shape};

/// Duration of each permutation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turns(pub Nanos);

impl Turns {
    /// Partner of rack i at a time: rack i + k in a ring of N racks. k starts at 1, grows by 1 at each step,
    /// and starts again after N - 1. `None` without links between racks, or with a single rack.
    pub fn partner(self, fabric: &Fabric, rack: DomainId, now: Nanos) -> Option<DomainId> {
        let racks = fabric.rack_count() as u64;
        if fabric.shape() != Shape::Tree || racks < 2 {
            return None;
        }
        let ahead = 1 + now.0 / self.0.0.max(1) % (racks - 1);
        Some(DomainId(((u64::from(rack.0) + ahead) % racks) as u32))
    }
}
