//! Requests of a replay: times after its start, sizes, and places in the file.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Nanos};
use leeward_traces::{Kind, Request};

use super::settings::{MOST_PAYLOAD, ReplaySettings};

/// Alignment of the places of a trace without offsets, in bytes.
const BLOCK: u64 = 4096;

/// A request of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Planned {
    /// Time after the start.
    pub at: Nanos,
    /// Read or write.
    pub kind: Kind,
    /// Payload in bytes, at least 1.
    pub size: u32,
    /// Place in the file, in bytes; the payload is within the file.
    pub offset: u64,
}

/// The requests of a trace from its start on, in order of time.
///
/// # Errors
/// Fails for a request that is too large for a call, and if there is none within the time of the replay.
pub(super) fn plan(
    settings: &ReplaySettings,
    trace: &str,
    requests: &[Request],
) -> Result<Vec<Planned>, InputError> {
    let from = settings.from.or_else(|| requests.first().map(|first| first.at)).unwrap_or_default();
    // A closed loop has its own times, and repeats the trace.
    let until = settings.duration.filter(|_| settings.closed.is_none());
    let mut plan = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let Some(at) = request.at.0.checked_sub(from.0).map(Nanos) else { continue };
        if until.is_some_and(|until| at >= until) {
            break;
        }
        if request.size > MOST_PAYLOAD {
            let message = format!(
                "a request of {} at {} s: expected at most {}, the largest call of most servers",
                Bytes(request.size),
                request.at.as_secs_f64(),
                Bytes(MOST_PAYLOAD)
            );
            return Err(InputError::new(trace, message));
        }
        let size = (request.size as u32).max(1);
        plan.push(Planned {
            at,
            kind: request.kind,
            size,
            offset: place(request.offset, number, size, settings),
        });
    }
    if plan.is_empty() {
        let until =
            until.map_or("the end".to_owned(), |until| format!("{} s", from.plus(until).as_secs_f64()));
        let message = format!("no request from {} s to {until}", from.as_secs_f64());
        return Err(InputError::new(trace, message));
    }
    Ok(plan)
}

/// Place of a request in the file. Requests that follow each other in the trace do so in the file, but for its end. The
/// requests of a trace without offsets have places that look random, the same in each replay.
fn place(offset: Option<u64>, number: usize, size: u32, settings: &ReplaySettings) -> u64 {
    let last = settings.size - u64::from(size);
    match offset {
        Some(offset) => (offset % settings.size).min(last),
        None => FixedState::with_seed(0).hash_one(number) % (last / BLOCK + 1) * BLOCK,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::replay::ReplayArguments;

    fn settings(change: impl FnOnce(&mut ReplaySettings)) -> ReplaySettings {
        let given = ReplayArguments { nfs: "nas:/vol".to_owned(), ..ReplayArguments::default() };
        let mut settings = ReplaySettings::new(given).unwrap();
        change(&mut settings);
        settings
    }

    fn request(millis: u64, size: u64, offset: Option<u64>) -> Request {
        Request { at: Nanos(millis * 1_000_000), kind: Kind::Read, size, offset }
    }

    proptest! {
        #[test]
        fn each_request_is_within_the_file(
            rows in prop::collection::vec((0u64..=MOST_PAYLOAD, prop::option::of(any::<u64>())), 1..50),
            size in MOST_PAYLOAD..1 << 30,
        ) {
            let settings = settings(|settings| settings.size = size);
            let requests: Vec<Request> =
                rows.iter().enumerate().map(|(at, &(bytes, offset))| request(at as u64, bytes, offset)).collect();
            for planned in plan(&settings, "t", &requests).unwrap() {
                prop_assert!(planned.size > 0 && planned.offset + u64::from(planned.size) <= size);
            }
        }
    }

    #[test]
    fn times_count_from_the_first_request_or_from_a_time_of_the_trace() {
        let requests =
            [request(500, 4096, Some(0)), request(700, 4096, Some(4096)), request(900, 4096, None)];
        let times = |settings: ReplaySettings| -> Vec<u64> {
            let plan = plan(&settings, "t", &requests).unwrap();
            plan.iter().map(|planned| planned.at.0 / 1_000_000).collect()
        };
        assert_eq!(times(settings(|_| {})), [0, 200, 400]);
        assert_eq!(times(settings(|one| one.from = Some(Nanos(0)))), [500, 700, 900]);
        assert_eq!(times(settings(|one| one.from = Some(Nanos(600_000_000)))), [100, 300]);
        assert_eq!(times(settings(|one| one.duration = Some(Nanos(400_000_000)))), [0, 200]);
        let closed = settings(|one| (one.duration, one.closed) = (Some(Nanos(1)), Some(4)));
        assert_eq!(times(closed), [0, 200, 400]);
    }

    #[test]
    fn a_trace_without_a_usable_request_is_rejected() {
        let none = plan(&settings(|one| one.from = Some(Nanos(1 << 40))), "t.csv", &[request(1, 4096, None)]);
        assert_eq!(none.unwrap_err().to_string(), "t.csv: no request from 1099.511627776 s to the end");
        let large = plan(&settings(|_| {}), "t.csv", &[request(500, MOST_PAYLOAD + 1, None)]);
        let message = large.unwrap_err().to_string();
        assert!(message.starts_with("t.csv: a request of ") && message.contains("at 0.5 s"), "{message}");
    }
}
