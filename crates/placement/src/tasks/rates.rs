//! Rate of a transfer between two hosts: the least rate that one more transfer gets on any link of the path. The rate
//! within a host is infinite.
//!
//! Choreo (section 5) uses R (c + 1) / (c + 1 + placed): the measured rate R, shared with c other flows and the placed
//! transfers. In the ledger's terms this is C / (N + 1). If telemetry shows more capacity left, that rate counts; see
//! [`View::share`]. A link that stopped reporting has rate 0.

use leeward_fabric::{Endpoint, Fabric, Hop, HostId, Nanos, ResourceId, ResourceKind, Shape};
use leeward_ledger::View;

use crate::estimate::Estimate;

/// Rate of a link without capacity in a search, in bit/s. Times then stay finite, and fewer bytes on such a link are
/// better.
pub(super) const SLOWEST: f64 = 1e-6;

/// Rates on a view, with the transfers that a policy has placed in addition.
pub(super) struct Rates<'v, 'l> {
    view: &'v View<'l>,
    estimate: Estimate,
    /// Rate of one more transfer on each link; NaN if not computed yet.
    known: Vec<f64>,
    /// Transfers placed on each link.
    placed: Vec<u32>,
    hops: Vec<Hop>,
    path: Vec<ResourceId>,
}

impl<'v, 'l> Rates<'v, 'l> {
    /// Rates without placed transfers.
    pub fn new(view: &'v View<'l>, estimate: Estimate) -> Rates<'v, 'l> {
        let links = view.fabric().resource_count();
        let (known, placed) = (vec![f64::NAN; links], vec![0; links]);
        Rates { view, estimate, known, placed, hops: Vec::new(), path: Vec::new() }
    }

    /// Rate of one more transfer from one host to another, in bit/s.
    pub fn between(&mut self, from: HostId, to: HostId) -> f64 {
        if from == to {
            return f64::INFINITY;
        }
        if let Some(pair) = only_link(self.view.fabric(), from, to) {
            return self.of_link(pair);
        }
        self.path(from, to);
        (0..self.path.len()).map(|at| self.of_link(self.path[at])).fold(f64::INFINITY, f64::min)
    }

    /// Counts a transfer from one host to another.
    pub fn place(&mut self, from: HostId, to: HostId) {
        self.path(from, to);
        for link in &self.path {
            self.placed[link.index()] += 1;
            self.known[link.index()] = f64::NAN;
        }
    }

    /// Upper bound on the rate of any transfer out of a host, in bit/s, to end a search early.
    pub fn bound(&mut self, from: HostId) -> f64 {
        let fabric = self.view.fabric();
        let egress = fabric.egress(from).filter(|_| !fabric.shares_machine(from));
        egress.map_or(f64::INFINITY, |link| self.of_link(link))
    }

    /// Rate of one more transfer on a link, in bit/s.
    pub fn of_link(&mut self, link: ResourceId) -> f64 {
        let known = self.known[link.index()];
        if !known.is_nan() {
            return known;
        }
        let (view, own) = (self.view, self.placed[link.index()] + 1);
        let rate = if self.estimate.flows_only {
            view.capacity(link).0 as f64 / (view.flows(link).max(0.0) + f64::from(own))
        } else if view.measured(link).is_none() && view.measured_until(link) > Nanos(0) {
            0.0
        } else {
            view.share(link, own).0 as f64 / f64::from(own)
        };
        let rate = rate.max(0.0);
        self.known[link.index()] = rate;
        rate
    }

    /// Result of the last [`Rates::path`].
    pub fn last_path(&self) -> &[ResourceId] {
        &self.path
    }

    /// Counted links between two hosts; empty within a host.
    pub fn path(&mut self, from: HostId, to: HostId) -> &[ResourceId] {
        self.hops.clear();
        self.path.clear();
        let fabric: &Fabric = self.view.fabric();
        if let Some(pair) = only_link(fabric, from, to) {
            self.path.push(pair);
            return &self.path;
        }
        if from != to {
            fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut self.hops);
        }
        let hose = fabric.shape() == Shape::Hose && !self.estimate.into_hosts;
        let counts = |link: &ResourceId| !hose || fabric.kind(*link) != ResourceKind::HostIngress;
        self.path.extend(self.hops.iter().map(|hop| hop.resource).filter(counts));
        &self.path
    }
}

/// The only link between two hosts, on a pipe mesh without shared links; `None` elsewhere.
fn only_link(fabric: &Fabric, from: HostId, to: HostId) -> Option<ResourceId> {
    if fabric.has_mesh_links() { None } else { fabric.pair(from, to) }
}
