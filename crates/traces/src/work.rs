//! The work of the requests of one workload, stage by stage.

use crate::device::{Device, Head, UnloadedError};
use crate::error::WorkError;
use crate::{NetworkWork, Request, Stage};

/// The work of one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StageWork {
    /// Bytes from the client to the server.
    pub network_in: f64,
    /// Seconds of service at the device; `None` without a device.
    pub storage: Option<f64>,
    /// Bytes from the server to the client.
    pub network_out: f64,
}

impl StageWork {
    /// Work at one stage.
    pub fn at(self, stage: Stage) -> Option<f64> {
        match stage {
            Stage::NetworkIn => Some(self.network_in),
            Stage::Storage => self.storage,
            Stage::NetworkOut => Some(self.network_out),
        }
    }
}

/// Computes the work of each request of one workload. It tracks the state of the disk's head, so every request must be
/// passed exactly once and in order.
#[derive(Clone, Debug)]
pub struct Work<'d> {
    network: NetworkWork,
    device: Option<(&'d Device, Head)>,
}

impl<'d> Work<'d> {
    /// Work on this network and at this device. Without a device, storage work is `None`.
    pub fn new(network: NetworkWork, device: Option<&'d Device>) -> Work<'d> {
        Work { network, device: device.map(|device| (device, Head::default())) }
    }

    /// The work of the next request.
    ///
    /// # Errors
    /// Fails for a request without an offset at a disk whose seek time depends on it.
    pub fn of(&mut self, request: &Request) -> Result<StageWork, WorkError> {
        let storage = match &mut self.device {
            Some((device, head)) => Some(device.seconds(head, request)?),
            None => None,
        };
        let (network_in, network_out) = (self.network.bytes_in(request), self.network.bytes_out(request));
        Ok(StageWork { network_in, storage, network_out })
    }
}

/// The largest profiled latency without queueing among the requests of a workload; it is added to the workload's bound.
#[derive(Clone, Debug)]
pub struct Tail<'d> {
    device: &'d Device,
    percentile: f64,
    largest: Option<f64>,
}

impl<'d> Tail<'d> {
    /// Latency at this device, at a percentile in percent.
    pub fn new(device: &'d Device, percentile: f64) -> Tail<'d> {
        Tail { device, percentile, largest: None }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Fails for a percentile above all percentiles of the profile.
    pub fn push(&mut self, request: &Request) -> Result<(), UnloadedError> {
        let seconds = self.device.unloaded(request.kind, request.size, self.percentile)?;
        if let Some(seconds) = seconds {
            self.largest = Some(self.largest.unwrap_or(0.0).max(seconds));
        }
        Ok(())
    }

    /// The latency in seconds; `None` without a request, or if the device's profile has no latencies.
    pub fn seconds(&self) -> Option<f64> {
        self.largest
    }
}
