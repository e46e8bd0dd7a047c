//! Numbers of jobs.

use std::fmt;

/// Number of a job: tasks that belong together and share a limit on evictions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct JobId(pub u64);

impl JobId {
    /// Number that no job has.
    pub const NONE: JobId = JobId(u64::MAX);
    /// Bit of the numbers of jobs without a name: no later app belongs to them.
    pub const UNNAMED: u64 = 1 << 63;

    /// True for a job without a name.
    pub fn is_unnamed(self) -> bool {
        self.0 & JobId::UNNAMED != 0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
