//! The machines of a study.

use leeward_placement::volumes::pack::{Client, Site};

use super::StudyError;

/// Machines around a network that does not block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// Machines that workloads run on.
    pub clients: usize,
    /// How many workloads each may run; None is without limit.
    pub slots: Option<u32>,
    /// Machines that hold volumes.
    pub servers: usize,
    /// Devices of each.
    pub devices: usize,
    /// Bytes a second of each machine's link, in either direction.
    pub bytes: f64,
}

impl Shape {
    /// The site of that shape.
    ///
    /// # Errors
    /// An invalid link, or nothing to put a volume on.
    pub fn site(&self) -> Result<Site, StudyError> {
        const MOST: usize = 100_000;
        let most = self.servers.saturating_mul(self.devices.max(1)).max(self.clients);
        if most > MOST {
            return Err(StudyError::draw(
                "site",
                format!("{most} machines or devices: expected at most {MOST}"),
            ));
        }
        let client = |at| Client { name: format!("c{at}"), slots: self.slots };
        let clients = (0..self.clients).map(client).collect();
        let servers = (0..self.servers).map(|at| (format!("s{at}"), self.devices)).collect();
        Ok(Site::star(clients, servers, self.bytes)?)
    }
}
