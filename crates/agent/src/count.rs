//! Counts of an interface, and what they grew by between two readings.

/// Counters of an interface in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Bytes.
    pub bytes: u64,
    /// Packets, which distinguish a wrapped byte counter from a reset one.
    pub packets: u64,
}

/// Bytes between two counts; `None` if the counter was reset.
pub(crate) fn increase(before: Count, after: Count) -> Option<u64> {
    if after.packets < before.packets {
        return None;
    }
    match after.bytes.checked_sub(before.bytes) {
        Some(bytes) => Some(bytes),
        // A byte counter has wrapped if it fell while the packet counter rose. Counters of 32-bit drivers wrap often.
        None if before.bytes <= u64::from(u32::MAX) => Some((1 << 32) - before.bytes + after.bytes),
        // A 64-bit counter that wrapped fell by more than half of its range. A counter that fell by less was reset.
        None => Some(after.bytes.wrapping_sub(before.bytes)).filter(|&bytes| bytes < 1 << 63),
    }
}
