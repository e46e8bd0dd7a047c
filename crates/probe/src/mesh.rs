//! Mesh of all paths between hosts: the order of measurement and the resulting cluster file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::bottleneck::FALL;
use crate::error::ProbeError;
use crate::numbers::quantile;
use crate::rules::Level;
use crate::shared_links::SharedLink;

/// All ordered pairs of hosts in rounds; a host is in at most one pair per round, as in a double round-robin
/// tournament. Trains of one round collide at no host. They may still collide inside the network, where hosts share
/// links.
pub fn rounds(hosts: usize) -> Vec<Vec<(usize, usize)>> {
    // Circle method: one host stays, and the others move by one place per round. With an odd number one host pauses
    // each round.
    let places = hosts + hosts % 2;
    let mut rounds = Vec::new();
    for round in 0..places.saturating_sub(1) {
        let turn = |place: usize| if place == 0 { 0 } else { (place - 1 + round) % (places - 1) + 1 };
        let pairs: Vec<_> = (0..places / 2)
            .map(|place| (turn(place), turn(places - 1 - place)))
            .filter(|&(a, b)| a < hosts && b < hosts)
            .collect();
        let back = pairs.iter().map(|&(a, b)| (b, a)).collect();
        rounds.push(pairs);
        rounds.push(back);
    }
    rounds.retain(|round| !round.is_empty());
    rounds
}

/// Form of a measured mesh in the cluster file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One rate for each ordered pair.
    Pipe,
    /// One rate for each ordered pair, and a limit of each source.
    Hose,
}

/// Rates between hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// `rates_bps[i][j]` from host i to host j, in bits per second; the diagonal is ignored.
    pub rates_bps: Vec<Vec<f64>>,
}

/// Parts of a measured network besides the rates of its paths.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parts {
    /// Hosts of each rack; `None` if unknown.
    pub racks: Option<Vec<Vec<usize>>>,
    /// Paths between hosts on one machine.
    pub same_machine: Vec<(usize, usize)>,
    /// Links out of racks and subtrees that their paths share.
    pub shared_links: Vec<SharedLink>,
    /// Round-trip times of paths, in nanoseconds.
    pub rtts_ns: BTreeMap<(usize, usize), u64>,
}

/// Limit of a source, from the rates of its paths: the median of the rates within 20 % of the greatest. Slower paths are
/// limited elsewhere. `None` without rates.
pub fn source_rate(rates_bps: &[f64]) -> Option<f64> {
    let greatest = rates_bps.iter().copied().fold(f64::NAN, f64::max);
    let near: Vec<f64> = rates_bps.iter().copied().filter(|rate| *rate >= (1.0 - FALL) * greatest).collect();
    quantile(&near, 0.5)
}

/// Round-trip time in a cluster file; at least a microsecond.
pub fn rtt_text(ns: u64) -> String {
    format!("{}us", ns.div_ceil(1000).max(1))
}

/// Name of a shared link in a cluster file. It does not depend on the numbers of racks, so a later survey of the same
/// hosts finds the same name.
pub fn shared_link_name(level: Level, first_host: &str) -> String {
    match level {
        Level::Rack => format!("rack-of-{first_host}"),
        Level::Subtree => format!("subtree-of-{first_host}"),
    }
}

impl Mesh {
    /// Converts the mesh to a cluster file with the rate and the round-trip time of each path. A hose also has, for each host, its limit as a
    /// source; see [`source_rate`]. Receiving limits were not measured. A receiving limit is the sum of the rates from
    /// all other hosts, so that it rarely limits.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] if a rate is missing or is not from 1 to 10^18 bit/s.
    pub fn cluster(&self, name: &str, shape: Shape, parts: &Parts) -> Result<String, ProbeError> {
        let count = self.hosts.len();
        for (from, to) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))).filter(|(i, j)| i != j) {
            if !(1.0..1e18).contains(&self.rates_bps[from][to]) {
                let (from, to) = (&self.hosts[from], &self.hosts[to]);
                return Err(ProbeError::Nothing(format!("no rate from {from} to {to}")));
            }
        }
        let mut text = format!("# Measured by `leeward probe mesh`.\n\nname: {name}\n");
        text.push_str(if shape == Shape::Pipe { "shape: pipe\n" } else { "shape: hose\n" });
        let host = |host: usize| {
            let name = &self.hosts[host];
            if shape == Shape::Pipe {
                return format!("{{ name: {name} }}");
            }
            let (up, down) = (self.sending_limit(host, parts), self.receiving_limit(host));
            format!("{{ name: {name}, nic: {{ up: {}bps, down: {}bps }} }}", up.round(), down.round())
        };
        // Writing to a string cannot fail.
        if let Some(racks) = &parts.racks {
            text.push_str("racks:\n");
            for hosts in racks {
                text.push_str("  - hosts:\n");
                for &at in hosts {
                    let _ = writeln!(text, "      - {}", host(at));
                }
            }
        } else {
            text.push_str("hosts:\n");
            for at in 0..count {
                let _ = writeln!(text, "  - {}", host(at));
            }
        }
        // On a pipe mesh without shared links, a path crosses its pair only, so its machine has no effect.
        let machines_count = shape == Shape::Hose || !parts.shared_links.is_empty();
        text.push_str("pairs:\n");
        for (i, from) in self.hosts.iter().enumerate() {
            for (j, to) in self.hosts.iter().enumerate().filter(|&(j, _)| j != i) {
                let rate = self.rates_bps[i][j].round();
                let same = machines_count && parts.same_machine.contains(&(i, j));
                let same = if same { ", same_machine: true" } else { "" };
                let rtt = parts
                    .rtts_ns
                    .get(&(i, j))
                    .map_or(String::new(), |&ns| format!(", rtt: {}", rtt_text(ns)));
                let _ = writeln!(text, "  - {{ from: {from}, to: {to}, rate: {rate}bps{same}{rtt} }}");
            }
        }
        if !parts.shared_links.is_empty() {
            text.push_str("shared_links:\n");
        }
        for link in &parts.shared_links {
            let names: Vec<&str> = link.group.hosts.iter().map(|&host| self.hosts[host].as_str()).collect();
            let name = shared_link_name(link.group.level, names.first().copied().unwrap_or_default());
            let (rate, names) = (link.rate_bps.round(), names.join(", "));
            let _ = writeln!(text, "  - {{ name: {name}, rate: {rate}bps, out_of: [{names}] }}");
        }
        Ok(text)
    }

    /// Limit of a host as a source. Paths that stay within its machine do not count, unless there are no others.
    fn sending_limit(&self, host: usize, parts: &Parts) -> f64 {
        let rates = |within: bool| -> Vec<f64> {
            let others = (0..self.hosts.len()).filter(|&to| to != host);
            let others = others.filter(|&to| within || !parts.same_machine.contains(&(host, to)));
            others.map(|to| self.rates_bps[host][to]).collect()
        };
        source_rate(&rates(false)).or_else(|| source_rate(&rates(true))).unwrap_or(f64::NAN)
    }

    fn receiving_limit(&self, host: usize) -> f64 {
        (0..self.hosts.len()).filter(|&from| from != host).map(|from| self.rates_bps[from][host]).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_pair_is_measured_once_and_no_host_twice_at_a_time() {
        for hosts in 0..24 {
            let rounds = rounds(hosts);
            let mut all = BTreeSet::new();
            for round in &rounds {
                let mut busy = BTreeSet::new();
                for &(a, b) in round {
                    assert!(a != b && busy.insert(a) && busy.insert(b), "{hosts}: {round:?}");
                    assert!(all.insert((a, b)), "{hosts}: {a} {b} twice");
                }
            }
            assert_eq!(all.len(), hosts * hosts.saturating_sub(1));
            let expected = if hosts < 2 { 0 } else { 2 * (hosts + hosts % 2 - 1) };
            assert_eq!(rounds.len(), expected, "{hosts}");
        }
    }
}
