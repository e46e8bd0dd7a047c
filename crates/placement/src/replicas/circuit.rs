//! Which rack the copies of a rack go to, so that circuits can serve them, and when that changes.
//!
//! Circuits join each rack with one other at a time, and to change them costs all racks a night. So at any time all
//! writes of a rack go to one other rack, and no two racks share one: a permutation, which one setting of the circuits
//! serves. Which permutation changes by time alone, so that over a round every other rack has had its turn and a rack's data
//! does not hang on one other rack (Etalon section 6.1 names the concern and this way out).

use leeward_fabric::{DomainId, Fabric, Nanos, Shape};

/// For how long a permutation holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turns(pub Nanos);

impl Turns {
    /// The rack that a rack's copies go to at a time: rack i + k of N in a ring, where k is one more in each turn, from 1 to
    /// N - 1 and round again. None where racks have no links of their own, or there is one.
    pub fn partner(self, fabric: &Fabric, rack: DomainId, now: Nanos) -> Option<DomainId> {
        let racks = fabric.rack_count() as u64;
        if fabric.shape() != Shape::Tree || racks < 2 {
            return None;
        }
        let ahead = 1 + now.0 / self.0.0.max(1) % (racks - 1);
        Some(DomainId(((u64::from(rack.0) + ahead) % racks) as u32))
    }
}
