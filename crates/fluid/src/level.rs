//! Comparison of levels.

/// Relative tolerance within which two levels, or a load and a capacity, count as equal.
pub(super) const SAME: f64 = 1e-13;

/// Returns the lesser of two numbers that are never NaN, in one instruction.
#[inline(always)]
pub(super) fn least(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}
