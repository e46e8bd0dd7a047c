//! Caps of a device on the requests that it has at once, as an enforcer keeps them (SLO section 2.2.1).

use leeward_traces::device::Outstanding;

use crate::error::ShapingError;

/// Caps on requests started and not completed. The next request in order starts if all caps allow it; no other request
/// starts before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Largest number of requests, at least 1. A batch counts as one.
    pub outstanding: u32,
    /// Largest number of reads, at least 1.
    pub reads: u32,
    /// Largest number of writes, at least 1. Each write of a batch counts.
    pub writes: u32,
    /// Largest number of bytes of reads. One read may always be in progress.
    pub read_bytes: u64,
    /// Largest number of bytes of writes. One write may always be in progress, and a batch starts with its first write.
    pub write_bytes: u64,
    /// Caps on starts while a request of a higher priority is in progress.
    pub behind: Option<StartCaps>,
    /// Batching of consecutive writes, if any.
    pub batch: Option<Batch>,
}

/// Caps on starts while a request of a higher priority is in progress. A request waits if, since the oldest such
/// request, this number of requests or bytes of any priority was started (as in the released enforcer). The caps apply
/// only to strict priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartCaps {
    /// Number of requests.
    pub requests: u32,
    /// Bytes, reads and writes together.
    pub bytes: u64,
}

/// Batch limits. A batch starts consecutive writes of one workload together, without interruption, if each starts near
/// the end of the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Largest number of bytes of a batch, except for its first write.
    pub bytes: u64,
    /// Largest distance from the end of a write to the start of the next, in bytes, in either direction.
    pub gap: u64,
}

impl Caps {
    /// No caps and no batches.
    pub const NONE: Caps = Caps {
        outstanding: u32::MAX,
        reads: u32::MAX,
        writes: u32::MAX,
        read_bytes: u64::MAX,
        write_bytes: u64::MAX,
        behind: None,
        batch: None,
    };

    /// Caps that a device file states, except for the number of requests; what it does not state is no cap. Bounds
    /// assume 1 request if no file states a number.
    pub fn of_profile(profile: &Outstanding, outstanding: u32) -> Caps {
        let requests =
            |stated: Option<u64>| stated.map_or(u32::MAX, |stated| u32::try_from(stated).unwrap_or(u32::MAX));
        Caps {
            outstanding,
            reads: requests(profile.reads),
            writes: requests(profile.writes),
            read_bytes: profile.read_bytes.unwrap_or(u64::MAX),
            write_bytes: profile.write_bytes.unwrap_or(u64::MAX),
            behind: profile
                .behind
                .map(|behind| StartCaps { requests: requests(Some(behind.requests)), bytes: behind.bytes }),
            batch: profile.write_batch.map(|batch| Batch { bytes: batch.bytes, gap: batch.gap }),
        }
    }

    /// Checks that a request can start.
    ///
    /// # Errors
    /// Returns the first cap of 0 requests.
    pub fn check(&self) -> Result<(), ShapingError> {
        let caps = [("outstanding", self.outstanding), ("reads", self.reads), ("writes", self.writes)];
        caps.into_iter()
            .find(|&(_, most)| most == 0)
            .map_or(Ok(()), |(cap, _)| Err(ShapingError::Cap { cap }))
    }
}

impl Default for Caps {
    fn default() -> Caps {
        Caps::NONE
    }
}
