//! The requests of a trace, and batches of them.

/// One request of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// Seconds from the start of the trace.
    pub at: f64,
    /// Work of the request.
    pub work: f64,
}

/// Merges the requests of each batch into one request, at the time of the first.
pub(super) fn merge(trace: &[Request], batch: f64) -> Vec<Request> {
    let mut merged: Vec<Request> = Vec::new();
    for &request in trace {
        match merged.last_mut() {
            Some(first) if request.at - first.at < batch => first.work += request.work,
            _ => merged.push(request),
        }
    }
    merged
}
