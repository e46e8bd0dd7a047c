//! Mesh of all paths between hosts: the order of measurement and the resulting cluster file.

use std::fmt::Write as _;

use crate::error::ProbeError;
use crate::numbers::quantile;

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
    /// One rate for each source.
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

impl Mesh {
    /// Converts the mesh to a cluster file. A pipe has the rate of each pair. A hose has, for each host, the median of
    /// its rates as the sending limit. Receiving limits were not measured. A receiving limit is the sum of the rates
    /// from all other hosts, so that it rarely limits. `racks` groups hosts, if known.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] if a rate is missing or is not from 1 to 10^18 bit/s.
    pub fn cluster(
        &self,
        name: &str,
        shape: Shape,
        racks: Option<&[Vec<usize>]>,
    ) -> Result<String, ProbeError> {
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
            let others = (0..count).filter(|&other| other != host);
            let out: Vec<f64> = others.clone().map(|to| self.rates_bps[host][to]).collect();
            match quantile(&out, 0.5) {
                Some(up) if shape == Shape::Hose => {
                    let down: f64 = others.map(|from| self.rates_bps[from][host]).sum();
                    format!("{{ name: {name}, nic: {{ up: {}bps, down: {}bps }} }}", up.round(), down.round())
                }
                _ => format!("{{ name: {name} }}"),
            }
        };
        // Writing to a string cannot fail.
        if let Some(racks) = racks {
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
        if shape == Shape::Pipe {
            text.push_str("pairs:\n");
            for (i, from) in self.hosts.iter().enumerate() {
                for (j, to) in self.hosts.iter().enumerate().filter(|&(j, _)| j != i) {
                    let rate = self.rates_bps[i][j].round();
                    let _ = writeln!(text, "  - {{ from: {from}, to: {to}, rate: {rate}bps }}");
                }
            }
        }
        Ok(text)
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
