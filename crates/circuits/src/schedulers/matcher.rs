//! What searches for matchings share.

/// No rack.
pub(super) const NONE: u32 = u32::MAX;
