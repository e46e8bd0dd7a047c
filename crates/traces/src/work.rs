//! The work of the requests of one workload, stage by stage.

use leeward_fabric::input::shown;

use crate::device::{Device, Head, UnloadedError};
use crate::{NetworkWork, Request, Stage};

/// Why work cannot be said.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WorkError {
    /// A setting out of range.
    #[error("{name} {}: expected a number from 0 to 1e9", shown(*.number))]
    Setting {
        /// Which.
        name: &'static str,
        /// What was given.
        number: f64,
    },
    /// A disk's seeks depend on offsets, and a request has none.
    #[error(
        "the request at {at} s has no offset, and the disk's seek time depends on it; take a trace with offsets, \
         or a constant seek time"
    )]
    NoOffset {
        /// When it was made, in seconds.
        at: f64,
    },
}

/// The work of one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StageWork {
    /// Bytes from the client to the server.
    pub network_in: f64,
    /// Seconds of service at the device; None if no device was given.
    pub storage: Option<f64>,
    /// Bytes from the server to the client.
    pub network_out: f64,
}

impl StageWork {
    /// At one stage.
    pub fn at(self, stage: Stage) -> Option<f64> {
        match stage {
            Stage::NetworkIn => Some(self.network_in),
            Stage::Storage => self.storage,
            Stage::NetworkOut => Some(self.network_out),
        }
    }
}

/// Gives the work of each request of one workload. It keeps what a disk remembers of the requests before, so each request is
/// asked for once, and in order.
#[derive(Clone, Debug)]
pub struct Work<'d> {
    network: NetworkWork,
    device: Option<(&'d Device, Head)>,
}

impl<'d> Work<'d> {
    /// On this network, and at this device. Without one, nothing is said of storage.
    pub fn new(network: NetworkWork, device: Option<&'d Device>) -> Work<'d> {
        Work { network, device: device.map(|device| (device, Head::default())) }
    }

    /// The work of the next request.
    ///
    /// # Errors
    /// A request without an offset at a disk whose seek time depends on it.
    pub fn of(&mut self, request: &Request) -> Result<StageWork, WorkError> {
        let storage = match &mut self.device {
            Some((device, head)) => Some(device.seconds(head, request)?),
            None => None,
        };
        let (network_in, network_out) = (self.network.bytes_in(request), self.network.bytes_out(request));
        Ok(StageWork { network_in, storage, network_out })
    }
}

/// The largest profiled latency without queueing of the requests of a workload: what its bound is raised by.
#[derive(Clone, Debug)]
pub struct Tail<'d> {
    device: &'d Device,
    percentile: f64,
    largest: Option<f64>,
}

impl<'d> Tail<'d> {
    /// At this device, at a percentile in percent.
    pub fn new(device: &'d Device, percentile: f64) -> Tail<'d> {
        Tail { device, percentile, largest: None }
    }

    /// Takes in a request.
    ///
    /// # Errors
    /// A percentile that the profile does not reach.
    pub fn push(&mut self, request: &Request) -> Result<(), UnloadedError> {
        let seconds = self.device.unloaded(request.kind, request.size, self.percentile)?;
        if let Some(seconds) = seconds {
            self.largest = Some(self.largest.unwrap_or(0.0).max(seconds));
        }
        Ok(())
    }

    /// Seconds; None without a request, or if the device's profile has no latencies.
    pub fn seconds(&self) -> Option<f64> {
        self.largest
    }
}
