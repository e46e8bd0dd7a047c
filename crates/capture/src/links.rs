//! Loads of links by class of service: the traffic of each pair of a matrix, on every link of its path.
//!
//! Weighted-effective utilizations (Hotspots, appendix C) need the load of each class on each link. Few switches count
//! it by class; packets and samples of packets have the code point that decides it.

use leeward_fabric::input::InputError;
use leeward_fabric::{Endpoint, Fabric, ResourceId};

use crate::classes::ClassId;
use crate::matrix::{Cell, Matrix};

/// Largest number of loads.
const MOST_LOADS: u128 = 5_000_000;

/// Traffic of a class on a link in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkLoad {
    /// Start of the interval, in seconds since 1970: a multiple of its length.
    pub start_s: i64,
    /// The link.
    pub link: ResourceId,
    /// The class, as an index into [`Matrix::classes`].
    pub class: ClassId,
    /// Traffic of the class on the link in the interval.
    pub cell: Cell,
}

impl Matrix {
    /// Loads of links by class, sorted by time, link and class. The places of the matrix are hosts, racks or pods of the
    /// cluster.
    ///
    /// Each link above a place has a load in each interval, which is 0 if none of the traffic crossed it. The first and
    /// the last interval are left out, because the capture does not cover them whole. Loads of a link are right if the
    /// captured traffic is all of its traffic.
    ///
    /// # Errors
    ///
    /// Fails if the matrix has no classes or a place that is not in the cluster, if it has fewer than three intervals,
    /// or if there are too many loads.
    pub fn link_loads(&self, fabric: &Fabric) -> Result<Vec<LinkLoad>, InputError> {
        if self.classes.is_empty() && !self.pairs.is_empty() {
            return Err(InputError::new("classes", "none; expected a matrix by class of service"));
        }
        let ends = self.places.iter().map(|name| end_of(fabric, name)).collect::<Result<Vec<_>, _>>()?;
        let Some((first, last)) = self.pairs.first().zip(self.pairs.last()) else { return Ok(Vec::new()) };
        let interval_s = i64::from(self.interval_s.max(1));
        let start_s = first.start_s + interval_s;
        let intervals = (last.start_s - start_s) / interval_s;
        if intervals < 1 {
            let message = "expected at least three intervals: the first and the last are left out, because they are \
                           not captured whole; choose a shorter one";
            return Err(InputError::new("interval", message));
        }

        let mut hops = Vec::new();
        let mut is_used = vec![false; fabric.link_count()];
        for &end in &ends {
            links_above(fabric, end, |link| is_used[link.index()] = true);
        }
        for pair in &self.pairs {
            hops.clear();
            fabric.path(&[ends[pair.source as usize], ends[pair.destination as usize]], &mut hops);
            hops.iter().for_each(|hop| is_used[hop.resource.index()] = true);
        }
        let used = (0..).map(ResourceId).zip(&is_used).filter(|(_, used)| **used);
        let links: Vec<ResourceId> = used.map(|(link, _)| link).collect();
        let mut place_of = vec![0; fabric.link_count()];
        for (place, link) in links.iter().enumerate() {
            place_of[link.index()] = place;
        }

        let classes = self.classes.len();
        let loads = intervals as u128 * links.len() as u128 * classes as u128;
        if loads > MOST_LOADS {
            let message =
                format!("{loads} loads by link and class, more than {MOST_LOADS}: choose a longer one");
            return Err(InputError::new("interval", message));
        }
        let mut cells = vec![Cell::default(); loads as usize];
        for pair in &self.pairs {
            let interval = (pair.start_s - start_s).div_euclid(interval_s);
            let Some(class) = pair.class.filter(|_| (0..intervals).contains(&interval)) else { continue };
            hops.clear();
            fabric.path(&[ends[pair.source as usize], ends[pair.destination as usize]], &mut hops);
            for hop in &hops {
                let link = interval as usize * links.len() + place_of[hop.resource.index()];
                cells[link * classes + usize::from(class)].add(&pair.cell);
            }
        }
        let loads = cells.into_iter().enumerate().map(|(at, cell)| {
            let (row, class) = (at / classes, at % classes);
            let (interval, link) = (row / links.len(), row % links.len());
            let start_s = start_s + interval as i64 * interval_s;
            LinkLoad { start_s, link: links[link], class: class as ClassId, cell }
        });
        Ok(loads.collect())
    }
}

/// The endpoint of paths that a place is.
fn end_of(fabric: &Fabric, name: &str) -> Result<Endpoint, InputError> {
    let host = fabric.host(name).map(Endpoint::Host);
    let end = host.or_else(|| fabric.domain(name).map(Endpoint::Domain));
    end.ok_or_else(|| InputError::new("cluster", fabric.no_place(name)))
}

/// Visits the links between a place and the core, in both directions.
fn links_above(fabric: &Fabric, end: Endpoint, mut visit: impl FnMut(ResourceId)) {
    let mut next = match end {
        Endpoint::Host(host) | Endpoint::DeviceWrite(host, _) | Endpoint::DeviceRead(host, _) => {
            [fabric.egress(host), fabric.ingress(host)].into_iter().flatten().for_each(&mut visit);
            Some(fabric.rack_of(host))
        }
        Endpoint::Domain(domain) => Some(domain),
    };
    while let Some(domain) = next {
        let links = [fabric.out_of_domain(domain), fabric.into_domain(domain)];
        links.into_iter().flatten().for_each(&mut visit);
        next = fabric.parent(domain);
    }
}
