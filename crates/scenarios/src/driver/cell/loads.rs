//! Requested and carried loads of the links of racks and pods.

use std::sync::Arc;

use leeward_fabric::{Capacities, DomainId, Fabric, ResourceId};

/// One direction of the link of a rack or pod.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// Load that tasks request, in bit/s; for a pod, the load that its racks' links would carry.
    requested: i64,
    /// Carried share of the requested load on this link alone.
    own: f64,
    /// Carried share on all links from here to the core.
    share: f64,
    /// Carried load, in bit/s.
    load: f64,
    /// Bits carried up to the beginning of the step.
    work: f64,
    /// True if the link was hot in the last step.
    hot: bool,
}

/// All links of racks and pods.
#[derive(Debug)]
pub(super) struct Loads {
    fabric: Arc<Fabric>,
    /// Resource id of the first link.
    first: u32,
    /// Loads by link.
    sides: Vec<Side>,
    hot: f64,
}

/// Rates out of a rack, and into it.
pub(super) type Rates = [i64; 2];

impl Loads {
    /// Creates the links without load. A link is hot above a utilization of `hot`.
    pub fn new(fabric: Arc<Fabric>, hot: f64) -> Loads {
        let first = fabric.out_of_domain(DomainId(0)).map_or(0, |link| link.0);
        let side = Side { requested: 0, own: 1.0, share: 1.0, load: 0.0, work: 0.0, hot: false };
        Loads { sides: vec![side; 2 * fabric.domain_count()], first, fabric, hot }
    }

    /// Changes the requested load of a rack's tasks; `more` may be negative.
    pub fn add_request(&mut self, rack: DomainId, more: Rates) {
        for (side, more) in self.sides[2 * rack.index()..].iter_mut().zip(more) {
            side.requested += more;
        }
    }

    /// Computes the carried loads from the requested ones.
    pub fn settle(&mut self, truth: &Capacities) {
        let racks = 2 * self.fabric.rack_count();
        let first = self.first;
        let capacity = |index: usize| truth.get(ResourceId(first + index as u32)).0 as f64;
        self.sides[racks..].iter_mut().for_each(|side| side.requested = 0);
        for index in 0..self.sides.len() {
            let side = &mut self.sides[index];
            let requested = side.requested as f64;
            side.own = if requested > capacity(index) { capacity(index) / requested } else { 1.0 };
            (side.share, side.load) = (side.own, requested * side.own);
            if let Some(pod) = self.pod(index).filter(|_| index < racks) {
                self.sides[pod].requested += self.sides[index].load.round() as i64;
            }
        }
        // The link of a rack carries only traffic that its pod's link carries too.
        for index in 0..racks {
            if let Some(pod) = self.pod(index) {
                let through = self.sides[pod].own;
                let side = &mut self.sides[index];
                side.share *= through;
                side.load *= through;
            }
        }
    }

    /// Advances time by `seconds`.
    pub fn carry(&mut self, seconds: f64, truth: &Capacities) {
        for (side, link) in self.sides.iter_mut().zip(self.first..) {
            side.work += side.load * seconds;
            side.hot = side.load > self.hot * truth.get(ResourceId(link)).0 as f64;
        }
    }

    /// Returns the bits that a link has carried, `seconds` into the step.
    pub fn carried(&self, link: ResourceId, seconds: f64) -> f64 {
        let side = link.0.checked_sub(self.first).and_then(|index| self.sides.get(index as usize));
        side.map_or(0.0, |side| side.work + side.load * seconds)
    }

    /// Returns true if a link of a rack was hot in the last step.
    pub fn is_hot(&self, rack: DomainId) -> bool {
        self.sides[2 * rack.index()..][..2].iter().any(|side| side.hot)
    }

    /// Returns the carried shares of the traffic of a rack's tasks, out of it and into it.
    pub fn shares(&self, rack: DomainId) -> [f64; 2] {
        [0, 1].map(|direction| self.sides[2 * rack.index() + direction].share)
    }

    /// Returns the same direction of the link of the rack's pod.
    fn pod(&self, index: usize) -> Option<usize> {
        let pod = self.fabric.parent(DomainId(index as u32 / 2))?;
        Some(2 * pod.index() + index % 2)
    }
}
