//! Reference results for whole workloads, flow by flow. They are not part of the repository: the tests read them from
//! the folder in `LEEWARD_SHARED`, and are skipped without it.

use leeward_fabric::Hop;
use leeward_fluid::Network;
use leeward_testing::golden;

use crate::support::hop;

const HOSTS: usize = 20;
const LINK: f64 = 1e9;
const RACK_LINK: f64 = 2e9;
const DISK: f64 = 50e6;

/// Racks of 20 hosts: host links up, then down, rack links up, then down, then one disk per host.
#[derive(Clone, Copy)]
struct Layout {
    racks: usize,
}

impl Layout {
    fn capacities(self) -> Vec<f64> {
        let hosts = self.racks * HOSTS;
        let mut capacities = vec![LINK; 2 * hosts];
        capacities.extend(vec![RACK_LINK; 2 * self.racks]);
        capacities.extend(vec![DISK; hosts]);
        capacities
    }

    fn up(self, host: usize) -> Hop {
        hop(host, 8.0)
    }

    fn down(self, host: usize) -> Hop {
        hop(self.racks * HOSTS + host, 8.0)
    }

    fn disk(self, host: usize) -> Hop {
        hop(2 * self.racks * (HOSTS + 1) + host, 1.0)
    }

    fn flow(self, from: usize, to: usize) -> Vec<Hop> {
        let (out_of, into) = (from / HOSTS, to / HOSTS);
        let rack = 2 * self.racks * HOSTS;
        if out_of == into {
            return vec![self.up(from), self.down(to)];
        }
        vec![self.up(from), hop(rack + out_of, 8.0), hop(rack + self.racks + into, 8.0), self.down(to)]
    }

    /// A block written to `first`, and from there to `second` in the same rack, as one flow.
    fn chain(self, from: usize, first: usize, second: usize) -> Vec<Hop> {
        let mut path = self.flow(from, first);
        path.extend([self.disk(first), self.up(first), self.down(second), self.disk(second)]);
        path
    }
}

fn rows(name: &str) -> Option<Vec<Vec<String>>> {
    let text = golden::text(&golden::folder("fluid")?.join(format!("{name}.csv.gz")));
    Some(text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect())
}

fn check(name: &str, racks: usize, path: impl Fn(Layout, &[String]) -> Vec<Hop>) {
    let Some(arrivals) = rows(&format!("{name}.arrivals")) else { return };
    let Some(expected) = rows(&format!("{name}.fct")) else { return };
    let layout = Layout { racks };
    let mut network = Network::new(&layout.capacities()).unwrap();
    let mut ids = std::collections::HashMap::new();
    let mut finished = Vec::new();
    for (index, row) in arrivals.iter().enumerate() {
        let (at, bytes) = (row[1].parse().unwrap(), row[row.len() - 1].parse().unwrap());
        let flow = network.start(at, &path(layout, row), bytes, 1.0, f64::INFINITY, None).unwrap();
        network.advance(at, &mut finished).unwrap();
        ids.insert(flow, (index, at));
    }
    network.advance(1e9, &mut finished).unwrap();
    assert_eq!(finished.len(), arrivals.len());
    let mut worst: f64 = 0.0;
    for done in finished {
        let (index, at) = ids[&done.flow];
        let fct: f64 = expected[index][2].parse().unwrap();
        worst = worst.max((done.at - at - fct).abs() / (2e-9 + 1e-9 * fct));
    }
    println!("{name}: {} flows, worst at {worst:.1e} of the tolerance", arrivals.len());
    assert!(worst <= 1.0, "{name}: {worst} times the tolerance of 2 ns and a billionth");
}

fn host(field: &str) -> usize {
    field.parse().unwrap()
}

#[test]
fn web_search_flows_finish_as_in_the_reference() {
    check("S_ws", 20, |layout, row| layout.flow(host(&row[2]), host(&row[3])));
}

#[test]
fn equal_blocks_finish_as_in_the_reference() {
    check("S_blk", 20, |layout, row| layout.flow(host(&row[2]), host(&row[3])));
}

#[test]
fn chained_writes_through_disks_finish_as_in_the_reference() {
    check("D_chain", 150, |layout, row| match row[2].as_str() {
        "write" => layout.chain(host(&row[3]), host(&row[4]), host(&row[5])),
        _ => layout.flow(host(&row[3]), host(&row[4])),
    });
}
