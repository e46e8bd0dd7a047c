//! Parts of a trace, and rotated traces.

use leeward_fabric::Nanos;

use crate::Request;

/// The requests at or after `from` and before `to`, at their original times. Reads no further than `to`.
///
/// # Errors
///
/// Passes on an error of the input unchanged.
pub fn window<E>(
    requests: impl Iterator<Item = Result<Request, E>>,
    from: Nanos,
    to: Nanos,
) -> impl Iterator<Item = Result<Request, E>> {
    requests
        .skip_while(move |request| request.as_ref().is_ok_and(|request| request.at < from))
        .take_while(move |request| request.as_ref().map_or(true, |request| request.at < to))
}

/// The two halves of a trace by time. Models are fitted to the first half and tested on the second (SLO section 4.3). A
/// request exactly in the middle belongs to the second half.
pub fn halves(requests: &[Request]) -> (&[Request], &[Request]) {
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return (requests, requests) };
    let middle = first.at.plus(Nanos(last.at.since(first.at).0.div_ceil(2)));
    requests.split_at(requests.partition_point(|request| request.at < middle))
}

/// The trace rotated to start at `share` of its length, from 0 to below 1. Several workloads can then use one trace
/// without coinciding bursts.
///
/// The first request follows the last after the mean gap. Times count from the new start, stay in order, and end within
/// the same length.
pub fn rotate(requests: &[Request], share: f64) -> Vec<Request> {
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Vec::new() };
    let span = last.at.since(first.at).0;
    let period = span.saturating_add(span / (requests.len() as u64 - 1).max(1)).max(1);
    let share = if share.is_finite() { share.rem_euclid(1.0) } else { 0.0 };
    let start = ((period as f64 * share) as u64).min(period - 1);
    let cut = requests.partition_point(|request| request.at.since(first.at).0 < start);
    let (before, after) = requests.split_at(cut);
    let moved = |request: &Request, by: u64| {
        // Without subtracting `first.at` first, a time could overflow.
        let at = request.at.since(first.at).0;
        Request { at: Nanos(if by > 0 { by.saturating_add(at) } else { at - start }), ..*request }
    };
    let later = after.iter().map(|request| moved(request, 0));
    later.chain(before.iter().map(|request| moved(request, period - start))).collect()
}
