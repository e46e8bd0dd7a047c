//! Machines of an experiment.

use leeward_slo::pack::{Client, Site};

use super::ExperimentError;

/// Machines around a non-blocking network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// Machines that workloads run on.
    pub clients: usize,
    /// Largest number of workloads of each client; `None` for no limit.
    pub slots: Option<u32>,
    /// Machines that hold volumes.
    pub servers: usize,
    /// Devices of each server.
    pub devices: usize,
    /// Bytes per second of each machine's link, in either direction.
    pub bytes: f64,
}

impl Shape {
    /// Returns a site of this shape.
    ///
    /// # Errors
    /// Returns an error for more than 100,000 clients, servers or devices, for an invalid link rate, or if no server
    /// has a device.
    pub fn site(&self) -> Result<Site, ExperimentError> {
        const LIMIT: usize = 100_000;
        let count = self.servers.saturating_mul(self.devices.max(1)).max(self.clients);
        if count > LIMIT {
            return Err(ExperimentError::draw(
                "site",
                format!("{count} machines or devices: expected at most {LIMIT}"),
            ));
        }
        let client = |index| Client { name: format!("c{index}"), slots: self.slots };
        let clients = (0..self.clients).map(client).collect();
        let servers = (0..self.servers).map(|index| (format!("s{index}"), self.devices)).collect();
        Ok(Site::star(clients, servers, self.bytes)?)
    }
}
