//! What a device does with a request: its work, in seconds of service at saturation, and how long it takes without any queueing.
//!
//! ```text
//! device file --> Device --+-- Solid   bandwidth by kind and size
//!                          +-- Disk    seek by distance, transfer rate, sequential streams
//!                          \-- unloaded latency by kind, size and percentile
//! ```
//!
//! (SLO sections 2.3.2 and 2.3.3.) The file is described in `docs/reference/device-file.md`; `leeward device profile` measures one.

mod disk;
mod file;
mod solid;
mod table;
mod unloaded;

use leeward_fabric::input::{InputError, read_text};

use crate::work::WorkError;
use crate::{Kind, Request};

pub use disk::{Disk, Head, Seek};
pub use solid::Solid;
pub use table::{Rates, TableError};
pub use unloaded::{Latency, Unloaded, UnloadedError};

/// How long a device is busy with a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Service {
    /// By kind and size.
    Solid(Solid),
    /// By where the request is, too.
    Disk(Disk),
}

/// How many requests are given to a device at once. Nothing here depends on it; it is what was true when the profile was made, and
/// what an enforcer has to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outstanding {
    /// Reads, at most.
    pub reads: Option<u64>,
    /// Writes, at most.
    pub writes: Option<u64>,
    /// Bytes of reads, at most.
    pub read_bytes: Option<u64>,
    /// Bytes of writes, at most.
    pub write_bytes: Option<u64>,
}

/// The profile of a device and the software in front of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Device {
    /// What it is called, if the file says.
    pub name: Option<String>,
    /// How long it is busy with a request.
    pub service: Service,
    /// How long a request takes without queueing.
    pub unloaded: Unloaded,
    /// How many requests it is given at once.
    pub outstanding: Outstanding,
}

impl Device {
    /// Reads a device file.
    ///
    /// # Errors
    /// Names the line and the field.
    pub fn read(path: &str) -> Result<Device, InputError> {
        Device::from_text(path, &read_text(path)?)
    }

    /// Reads the text of a device file; `file` is its name in errors.
    ///
    /// # Errors
    /// Names the line and the field.
    pub fn from_text(file: &str, text: &str) -> Result<Device, InputError> {
        file::read(file, text)
    }

    /// Seconds of service that a request is, after those that `head` remembers; `head` then remembers it too.
    ///
    /// # Errors
    /// A request without an offset at a disk whose seek time depends on it.
    pub fn seconds(&self, head: &mut Head, request: &Request) -> Result<f64, WorkError> {
        match &self.service {
            Service::Solid(solid) => Ok(solid.seconds(request.kind, request.size)),
            Service::Disk(disk) => disk.seconds(head, request),
        }
    }

    /// Seconds that a request takes without any queueing, at a percentile in percent. None if the profile has no latencies.
    ///
    /// # Errors
    /// A percentile that the profile does not reach.
    pub fn unloaded(&self, kind: Kind, size: u64, percentile: f64) -> Result<Option<f64>, UnloadedError> {
        self.unloaded.seconds(kind, size, percentile)
    }
}
