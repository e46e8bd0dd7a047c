//! Mesh survey: measures every path between hosts and counts its hops.

use std::collections::BTreeMap;
use std::thread;

use serde::Serialize;

use super::{Host, ProgressObserver, hops, join, train};
use crate::control::Secret;
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::mesh::{Mesh, rounds};
use crate::topology::{Topology, fit};
use crate::train::Train;

/// Measurement of one path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathMeasurement {
    /// Hosts by number: from, to.
    pub pair: (usize, usize),
    /// Estimate from the train; `None` if the measurement failed.
    pub estimate: Option<Estimate>,
    /// Reason of the failure.
    pub error: Option<String>,
}

/// Measurements of all paths between hosts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeshMeasurement {
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Every ordered pair, by its first host and then its second.
    pub paths: Vec<PathMeasurement>,
}

impl MeshMeasurement {
    /// Rates of the mesh. A missing rate is NaN, so that no cluster file is made from it.
    pub fn mesh(&self) -> Mesh {
        let count = self.hosts.len();
        let mut rates_bps = vec![vec![f64::NAN; count]; count];
        for path in &self.paths {
            let (from, to) = path.pair;
            rates_bps[from][to] = path.estimate.map_or(f64::NAN, |estimate| estimate.rate_bps);
        }
        Mesh { hosts: self.hosts.iter().map(|host| host.name.clone()).collect(), rates_bps }
    }

    /// Round-trip times of the paths with one.
    pub fn rtts_ns(&self) -> BTreeMap<(usize, usize), u64> {
        let of_path = |path: &PathMeasurement| Some((path.pair, path.estimate?.rtt_ns?));
        self.paths.iter().filter_map(of_path).collect()
    }
}

/// Measures every ordered pair with a train, in rounds of pairs without a common host, with at most `at_once` trains at
/// a time. With one train at a time, trains do not meet inside the network either. A failed pair does not end the
/// survey.
///
/// # Errors
///
/// Returns [`ProbeError::Setting`] for fewer than two hosts, for hosts with equal names or addresses, or for a train out
/// of range. Returns [`ProbeError::Stopped`] if the caller stops the survey.
pub fn mesh(
    hosts: &[Host],
    what: &Train,
    at_once: usize,
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<MeshMeasurement, ProbeError> {
    what.check(&crate::train::Limits::default())?;
    check_hosts(hosts, 2)?;
    let total = hosts.len() * (hosts.len() - 1);
    let mut paths = Vec::with_capacity(total);
    for round in rounds(hosts.len()) {
        for pairs in round.chunks(at_once.max(1)) {
            let measured = thread::scope(|scope| {
                let one = |&(from, to): &(usize, usize)| {
                    let result = train(&hosts[from].place(), &hosts[to].address, what, secret);
                    let error = result.as_ref().err().map(ProbeError::to_string);
                    PathMeasurement { pair: (from, to), estimate: result.ok(), error }
                };
                let running: Vec<_> = pairs.iter().map(|pair| scope.spawn(move || one(pair))).collect();
                running.into_iter().map(|running| join(running.join())).collect::<Vec<_>>()
            });
            paths.extend(measured);
            progress(paths.len(), total)?;
        }
    }
    paths.sort_by_key(|path| path.pair);
    Ok(MeshMeasurement { hosts: hosts.to_vec(), paths })
}

/// Hop counts between hosts and the tree that fits them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HopMeasurement {
    /// Hops from each host to each other; `None` without a reply, and from a host to itself.
    pub hops: Vec<Vec<Option<u8>>>,
    /// Position of the hosts in the tree.
    pub topology: Topology,
}

impl HopMeasurement {
    /// Paths between hosts on one machine: one hop in either direction.
    pub fn same_machine(&self) -> Vec<(usize, usize)> {
        let rows = self.hops.iter().enumerate();
        let of_row = |(from, row): (usize, &Vec<Option<u8>>)| {
            let is_near = move |to: usize| row[to] == Some(1) || self.hops[to][from] == Some(1);
            let near = (0..row.len()).filter(move |&to| to != from && is_near(to));
            near.map(move |to| (from, to)).collect::<Vec<_>>()
        };
        rows.flat_map(of_row).collect()
    }
}

/// Counts the hops between all hosts and fits them to a tree.
///
/// # Errors
///
/// Returns [`ProbeError::Setting`] for fewer than two hosts, or for hosts with equal names or addresses. Returns the
/// error that prevents counting, and [`ProbeError::Stopped`] if the caller stops the survey.
pub fn topology(
    hosts: &[Host],
    secret: &Secret,
    progress: &mut ProgressObserver<'_>,
) -> Result<HopMeasurement, ProbeError> {
    check_hosts(hosts, 2)?;
    let total = hosts.len() * (hosts.len() - 1);
    let mut counted = vec![vec![None; hosts.len()]; hosts.len()];
    let mut done = 0;
    for round in rounds(hosts.len()) {
        let counts = thread::scope(|scope| {
            let one = |from: usize, to: usize| hops(&hosts[from].place(), &hosts[to].address, secret);
            let running: Vec<_> =
                round.iter().map(|&(from, to)| (from, to, scope.spawn(move || one(from, to)))).collect();
            running.into_iter().map(|(from, to, one)| (from, to, join(one.join()))).collect::<Vec<_>>()
        });
        for (from, to, hops) in counts {
            counted[from][to] = hops?;
            done += 1;
        }
        progress(done, total)?;
    }
    let topology = fit(&counted);
    Ok(HopMeasurement { hops: counted, topology })
}

/// Rejects too few hosts, and hosts with equal names or addresses.
pub(crate) fn check_hosts(hosts: &[Host], least: usize) -> Result<(), ProbeError> {
    if hosts.len() < least {
        let message = format!("{} given: expected at least {least}", hosts.len());
        return Err(ProbeError::setting("hosts", message));
    }
    for (index, host) in hosts.iter().enumerate() {
        let duplicate = |other: &&Host| other.name == host.name || other.address == host.address;
        if let Some(other) = hosts[..index].iter().find(duplicate) {
            let message = if other.name == host.name {
                format!("duplicate name `{}`", host.name)
            } else {
                format!("`{}` and `{}` have the same address {}", other.name, host.name, host.address)
            };
            return Err(ProbeError::setting("hosts", message));
        }
    }
    Ok(())
}
