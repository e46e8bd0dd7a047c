//! True loads of the links of racks and pods.
//!
//! A load is the sum of the rates that cross the link, in whole bit/s. It may exceed the capacity: the link then
//! carries its capacity, and the rest waits. Means over a window are exact, and an event costs the links that it
//! changes.

use leeward_fabric::Nanos;

/// A link.
#[derive(Clone, Copy, Debug)]
struct Link {
    capacity: i64,
    /// Sum of the rates that cross the link, in bit/s.
    load: i64,
    /// Time up to which the work below counts.
    since: Nanos,
    /// Load times time since the beginning of the window, in bit/s times ns.
    asked: i128,
    /// The part that the link carries.
    carried: i128,
}

/// Means of a link over a window, in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Means {
    /// Mean load, which may exceed the capacity.
    pub asked: i64,
    /// Mean of the load that the link carries.
    pub carried: i64,
}

/// Loads of all links of racks and pods.
#[derive(Debug)]
pub(crate) struct Truth {
    links: Vec<Link>,
    began: Nanos,
}

impl Truth {
    /// Creates idle links with these capacities, in bit/s.
    pub fn new(capacities: impl Iterator<Item = i64>) -> Truth {
        let link = |capacity| Link { capacity, load: 0, since: Nanos(0), asked: 0, carried: 0 };
        Truth { links: capacities.map(link).collect(), began: Nanos(0) }
    }

    /// Capacity of a link, in bit/s.
    pub fn capacity(&self, link: usize) -> i64 {
        self.links[link].capacity
    }

    /// Load of a link, in bit/s; it may exceed the capacity.
    pub fn load(&self, link: usize) -> i64 {
        self.links[link].load
    }

    /// Changes the load of a link by `bps`.
    pub fn add(&mut self, now: Nanos, link: usize, bps: i64) {
        let link = &mut self.links[link];
        link.count(now);
        link.load += bps;
    }

    /// Ends a window, and writes the means of all links over it. Returns the window.
    pub fn end_window(&mut self, now: Nanos, means: &mut Vec<Means>) -> (Nanos, Nanos) {
        let window = (std::mem::replace(&mut self.began, now), now);
        let length = i128::from(window.1.since(window.0).0.max(1));
        means.clear();
        means.extend(self.links.iter_mut().map(|link| {
            link.count(now);
            let mean = |work: i128| (work / length) as i64;
            let means = Means { asked: mean(link.asked), carried: mean(link.carried) };
            (link.asked, link.carried) = (0, 0);
            means
        }));
        window
    }
}

impl Link {
    /// Adds the work up to now.
    fn count(&mut self, now: Nanos) {
        let time = i128::from(now.since(self.since).0);
        self.asked += i128::from(self.load) * time;
        self.carried += i128::from(self.load.min(self.capacity)) * time;
        self.since = now;
    }
}
