//! A recorded trace in place of drawn requests: at another pace, from another start, and repeated.

use leeward_fabric::Nanos;
use leeward_traces::Request;
use leeward_traces::select::rotate;
use leeward_traces::synthetic::Places;

/// A recorded trace from a start of its own, which is repeated without end.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Requests of one period, at times from 0.
    requests: Vec<Request>,
    /// Time from the first request to its repetition, in nanoseconds: the trace and a mean gap.
    period: f64,
}

impl Recorded {
    /// The trace from `start`, a share of its length.
    ///
    /// # Errors
    /// Fails with the problem of a trace without a rate.
    pub(super) fn new(requests: &[Request], start: f64) -> Result<Recorded, String> {
        let (count, first, last) = (requests.len(), requests.first(), requests.last());
        let span = first.zip(last).map_or(0, |(first, last)| last.at.since(first.at).0);
        if count < 2 || span == 0 {
            return Err(format!(
                "a recorded trace of {count} requests over {}: expected requests at two times or more",
                Nanos(span)
            ));
        }
        let period = span as f64 * (1.0 + 1.0 / (count as f64 - 1.0));
        Ok(Recorded { requests: rotate(requests, start), period })
    }

    /// Number of requests of one period.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The requests without end, `rate` of them in a second on average. The C^2 of gaps and their correlation are those
    /// of the trace. Requests without an offset get one from `places`.
    pub(super) fn requests(&self, rate: f64, mut places: Places) -> impl Iterator<Item = Request> + '_ {
        let count = self.requests.len();
        let pace = count as f64 / rate * 1e9 / self.period;
        self.requests.iter().cycle().enumerate().map(move |(number, request)| {
            let round = (number / count) as f64;
            let at = Nanos(((round * self.period + request.at.0 as f64) * pace) as u64);
            let offset = request.offset.unwrap_or_else(|| places.place(request.size));
            Request { at, offset: Some(offset), ..*request }
        })
    }
}
