//! Sections of the time of a trace.

/// Number of sections of a trace. More have less power each, and are shorter than bursts in more traces.
pub(super) const SECTIONS: usize = 32;
/// Least number of intervals of a section, so that intervals which belong to a section in part count little.
const LEAST: usize = 4;

/// Splits intervals into sections of equal length, without a rest at the end; `None` if there are too few.
pub(super) fn sections(intervals: &[f64]) -> Option<impl Iterator<Item = &[f64]>> {
    let length = intervals.len() / SECTIONS;
    if length < LEAST {
        return None;
    }
    Some(intervals[..SECTIONS * length].chunks_exact(length))
}
