//! Device profiles: the work of a request, in seconds of service at saturation, and its latency without any queueing.
//!
//! ```text
//! device file --> Device --+-- Solid   bandwidth by kind and size
//!                          +-- Disk    seek by distance, transfer rate, sequential streams
//!                          \-- unloaded latency by kind, size and percentile
//! ```
//!
//! (SLO sections 2.3.2 and 2.3.3.) `docs/reference/device-file.md` describes the format; `leeward device profile`
//! measures a device.

mod disk;
mod file;
mod form;
mod solid;
mod table;
mod unloaded;

use leeward_fabric::input::{InputError, read_text};

use crate::error::WorkError;
use crate::{Kind, Request};

pub use disk::{Disk, Head, Seek};
pub use form::DeviceFile;
pub use solid::Solid;
pub use table::{Rates, TableError};
pub use unloaded::{Latency, Unloaded, UnloadedError};

/// Service time of a device per request.
#[derive(Clone, PartialEq, Debug)]
pub enum Service {
    /// The time depends on kind and size.
    Solid(Solid),
    /// The time also depends on the offset of the request.
    Disk(Disk),
}

/// Limits on the requests outstanding at a device. They were in force when the profile was measured, or are those of
/// its enforcer: enforcers and replays keep them, and bounds assume their number of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outstanding {
    /// Largest number of outstanding requests, reads and writes together.
    pub all: Option<u64>,
    /// Largest number of outstanding reads.
    pub reads: Option<u64>,
    /// Largest number of outstanding writes.
    pub writes: Option<u64>,
    /// Largest number of outstanding bytes of reads.
    pub read_bytes: Option<u64>,
    /// Largest number of outstanding bytes of writes.
    pub write_bytes: Option<u64>,
    /// Largest numbers of requests and bytes that start behind a request of a higher priority.
    pub behind: Option<Behind>,
    /// Batches in which nearly sequential writes start together.
    pub write_batch: Option<WriteBatch>,
}

/// Limits on starts while a request of a higher priority is outstanding, counted from the start of the oldest such
/// request (SLO section 2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Number of requests; the largest number if the file states none.
    pub requests: u64,
    /// Bytes of reads and writes together; the largest number if the file states none.
    pub bytes: u64,
}

/// Writes of one workload that start together, each near the end of the one before it (SLO section 2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBatch {
    /// Largest number of bytes of a batch, except for its first write.
    pub bytes: u64,
    /// Largest distance from the end of a write to the start of the next one, in bytes, in either direction.
    pub gap: u64,
}

/// The profile of a device and the software in front of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Device {
    /// Name of the device, if the file states one.
    pub name: Option<String>,
    /// Service time per request.
    pub service: Service,
    /// Latency of a request without queueing.
    pub unloaded: Unloaded,
    /// Limits on outstanding requests.
    pub outstanding: Outstanding,
}

impl Outstanding {
    /// Number of requests that the device has at once, reads and writes together: the limit on all, or else the sum of the
    /// limits on reads and on writes. `None` if the profile states none.
    pub fn requests(&self) -> Option<u32> {
        let sum = [self.reads, self.writes].into_iter().flatten().reduce(u64::saturating_add);
        let stated = [self.all, sum].into_iter().flatten().min()?;
        Some(u32::try_from(stated).unwrap_or(u32::MAX))
    }
}

impl Device {
    /// Reads a device file.
    ///
    /// # Errors
    /// Fails with the line and the field in the message.
    pub fn read(path: &str) -> Result<Device, InputError> {
        Device::from_text(path, &read_text(path)?)
    }

    /// Reads the text of a device file; `file` is its name in errors.
    ///
    /// # Errors
    /// Fails with the line and the field in the message.
    pub fn from_text(file: &str, text: &str) -> Result<Device, InputError> {
        file::read(file, text)
    }

    /// Seconds of service of a request after the requests in `head`. The call also records the request in `head`.
    ///
    /// # Errors
    /// Fails for a request without an offset at a disk whose seek time depends on it.
    pub fn seconds(&self, head: &mut Head, request: &Request) -> Result<f64, WorkError> {
        match &self.service {
            Service::Solid(solid) => Ok(solid.seconds(request.kind, request.size)),
            Service::Disk(disk) => disk.seconds(head, request),
        }
    }

    /// Latency in seconds of a request without any queueing, at a percentile in percent. `None` if the profile has no
    /// latencies.
    ///
    /// # Errors
    /// Fails for a percentile above all percentiles of the profile.
    pub fn unloaded(&self, kind: Kind, size: u64, percentile: f64) -> Result<Option<f64>, UnloadedError> {
        self.unloaded.seconds(kind, size, percentile)
    }
}
