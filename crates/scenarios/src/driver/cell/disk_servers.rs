//! Traffic of disk servers (Hotspots section 3.2). They stay on their hosts, and the scheduler does not place them: it
//! sees them only in the telemetry of links.
//!
//! The rate of a server is drawn as a task's rate is. A server on a failed host is silent. When the host is up again,
//! the server sends from its next draw on, which is at most five minutes later.

use leeward_fabric::{DomainId, Fabric, HostId};
use leeward_workloads::DiskServer;

use super::levels::{Levels, Moment};
use super::loads::{Loads, Rates};
use crate::outage::Outages;

/// A disk server with its current rates.
#[derive(Debug)]
struct Running {
    server: DiskServer,
    rack: DomainId,
    /// Requested rates, out of the rack and into it.
    rates: Rates,
}

/// All disk servers.
#[derive(Debug)]
pub(super) struct DiskServers {
    levels: Levels,
    servers: Vec<Running>,
}

impl DiskServers {
    /// Creates silent servers; the first [`DiskServers::redraw`] draws the rates of all.
    pub fn new(fabric: &Fabric, servers: &[DiskServer], levels: Levels) -> DiskServers {
        let running =
            |&server: &DiskServer| Running { server, rack: fabric.rack_of(server.host), rates: [0; 2] };
        DiskServers { levels, servers: servers.iter().map(running).collect() }
    }

    /// Draws the rates that change at a step; at the first step, those of all servers.
    pub fn redraw(&mut self, step: u64, now: f64, outages: &Outages, loads: &mut Loads) {
        let (levels, moment) = (self.levels, Moment::new(now));
        let (first, stride) = if step == 0 { (0, 1) } else { (levels.changing(step), levels.groups()) };
        for (index, running) in self.servers.iter_mut().enumerate().skip(first).step_by(stride) {
            let DiskServer { host, bps, peak, day } = running.server;
            if outages.is_up(host) {
                let factor = levels.level(index as u32, step, peak) * (1.0 + day * moment.swing);
                running.send([(bps as f64 * factor).round() as i64; 2], loads);
            }
        }
    }

    /// Silences the servers of a failed host.
    pub fn stop(&mut self, host: HostId, loads: &mut Loads) {
        for running in self.servers.iter_mut().filter(|running| running.server.host == host) {
            running.send([0; 2], loads);
        }
    }
}

impl Running {
    /// Changes the rates.
    fn send(&mut self, rates: Rates, loads: &mut Loads) {
        let before = std::mem::replace(&mut self.rates, rates);
        loads.add_request(self.rack, [rates[0] - before[0], rates[1] - before[1]]);
    }
}
