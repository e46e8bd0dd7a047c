//! Packet trace: the racks that forwarded a packet, in the few bits that a queue has room for.

use crate::routing::MOST_HOPS;

/// At most three racks: their number in the two highest bits, then ten bits per rack, with the last rack in the lowest
/// bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PacketTrace(u32);

const RACK: u32 = 10;
const MOST: u8 = 3;
const _: () = assert!(MOST == MOST_HOPS - 1 && super::settings::MOST_RACKS <= 1 << RACK);

impl PacketTrace {
    /// Number of racks in the trace.
    #[inline]
    pub(super) fn len(self) -> u8 {
        (self.0 >> (3 * RACK)) as u8
    }

    /// Returns true if the rack forwarded the packet.
    #[inline]
    pub(super) fn has(self, rack: usize) -> bool {
        let at = |place: u8| self.0 >> (u32::from(place) * RACK) & ((1 << RACK) - 1);
        (0..self.len()).any(|place| at(place) as usize == rack)
    }

    /// Returns the trace with one more rack. A full trace drops its first rack; no routing reaches that length.
    #[inline]
    pub(super) fn with(self, rack: usize) -> PacketTrace {
        let racks = (self.0 << RACK | rack as u32) & ((1 << (3 * RACK)) - 1);
        PacketTrace(u32::from((self.len() + 1).min(MOST)) << (3 * RACK) | racks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_trace_has_exactly_the_added_racks(
            racks in prop::collection::vec(0_usize..1024, 0..=3),
            other in 0_usize..1024,
        ) {
            let trace = racks.iter().fold(PacketTrace::default(), |trace, &rack| trace.with(rack));
            prop_assert_eq!(usize::from(trace.len()), racks.len());
            prop_assert!(racks.iter().all(|&rack| trace.has(rack)));
            prop_assert_eq!(trace.has(other), racks.contains(&other));
        }
    }
}
