//! Counts of hosts by their state and by their telemetry. Each host counts once in each of the two.

use leeward_fabric::HostId;
use leeward_service::{HostState, NetworkSnapshot};

/// Hosts of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounts {
    /// Hosts that are up and not draining.
    pub up: usize,
    /// Hosts that are up and draining.
    pub draining: usize,
    /// Hosts that are down.
    pub down: usize,
    /// Hosts with current telemetry of a link or a device.
    pub reporting: usize,
    /// Hosts whose telemetry is old.
    pub silent: usize,
    /// Hosts that are down, and hosts without telemetry since they came up, or since this service or the current leader started.
    pub absent: usize,
}

impl HostCounts {
    /// Counts the hosts of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot) -> HostCounts {
        let mut counts = HostCounts::default();
        for &HostState { host, up, draining, .. } in &snapshot.hosts {
            let state = match (up, draining) {
                (false, _) => &mut counts.down,
                (true, true) => &mut counts.draining,
                (true, false) => &mut counts.up,
            };
            *state += 1;
            // The links of a host that is down count as idle, although nobody reports them.
            let telemetry = match telemetry(snapshot, host) {
                _ if !up => &mut counts.absent,
                (true, _) => &mut counts.reporting,
                (false, true) => &mut counts.silent,
                (false, false) => &mut counts.absent,
            };
            *telemetry += 1;
        }
        counts
    }
}

/// Names of the first `most` hosts that are up and whose telemetry is old, in order of ids.
pub fn silent_hosts(snapshot: &NetworkSnapshot, most: usize) -> Vec<String> {
    let silent = snapshot.hosts.iter().filter(|one| one.up && telemetry(snapshot, one.host) == (false, true));
    silent.take(most).map(|one| snapshot.fabric.host_name(one.host).to_owned()).collect()
}

/// True if a link or device of a host is seen, and true if it ever was.
fn telemetry(snapshot: &NetworkSnapshot, host: HostId) -> (bool, bool) {
    let fabric = &snapshot.fabric;
    let links = [fabric.egress(host), fabric.ingress(host)].into_iter().flatten();
    let links = links.filter_map(|link| snapshot.link(link));
    let links = links.map(|link| (link.measured.is_some(), link.until.is_some()));
    let devices = (0..fabric.devices(host).len() as u16).filter_map(|index| fabric.device(host, index));
    let devices = devices.filter_map(|device| snapshot.device(device));
    let devices = devices.map(|device| (device.busy.is_some(), device.until.is_some()));
    links.chain(devices).fold((false, false), |(seen, ever), (is, was)| (seen | is, ever | was))
}
