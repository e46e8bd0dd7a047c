//! Numbers of jobs.

use std::fmt;

/// Number of a job: tasks that belong together and share a limit on evictions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct JobId(pub u64);

impl JobId {
    /// Number that no job has.
    pub const NONE: JobId = JobId(u64::MAX);
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
