//! Account of the lines of a trace: every line is a request, or is counted with the reason for which it is none.

use std::fmt;

use leeward_fabric::Nanos;

/// Reason for which a line is no request of the workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rest {
    /// Names of columns.
    Heading,
    /// Another event of a block trace, such as a completion.
    Event,
    /// A request to another volume.
    Volume,
    /// A flush, a discard, or another operation without payload.
    NoPayload,
    /// Sums and messages of blkparse.
    Sums,
    /// A request of 0 bytes, which is no work.
    Empty,
}

impl Rest {
    /// All reasons.
    pub const ALL: [Rest; 6] =
        [Rest::Heading, Rest::Event, Rest::Volume, Rest::NoPayload, Rest::Sums, Rest::Empty];

    /// Name, for users.
    pub fn name(self) -> &'static str {
        match self {
            Rest::Heading => "headings",
            Rest::Event => "other events",
            Rest::Volume => "other volumes",
            Rest::NoPayload => "without payload",
            Rest::Sums => "sums of blkparse",
            Rest::Empty => "of 0 bytes",
        }
    }
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of lines by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Lines read, except empty lines.
    pub lines: u64,
    /// Requests.
    pub requests: u64,
    /// Other lines, in the order of [`Rest::ALL`].
    pub(super) rest: [u64; Rest::ALL.len()],
    /// Events that the tracer says it lost. The trace is then incomplete.
    pub lost: u64,
    /// Requests whose size had a fraction of a byte, which was rounded up.
    pub rounded: u64,
    /// Requests that were before the one above them, if they are sorted.
    pub moved: u64,
    /// Longest time by which a request was before the latest of those above it, if they are sorted.
    pub disorder: Nanos,
}

impl Tally {
    /// Number of lines that are no request, for a reason.
    pub fn rest(&self, reason: Rest) -> u64 {
        self.rest[reason as usize]
    }

    pub(super) fn add(&mut self, reason: Rest) {
        self.rest[reason as usize] += 1;
    }
}
