//! Round-trip times of small messages between hosts, as the cluster file states them.

use crate::{Fabric, HostId, Nanos};

/// Round-trip times of a network.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct RoundTrips {
    /// Between hosts of one rack.
    pub rack: Option<Nanos>,
    /// Between hosts of one pod.
    pub pod: Option<Nanos>,
    /// Between any hosts.
    pub network: Option<Nanos>,
    /// Sorted pairs of a mesh with their own time, the host with the lower id first.
    pub pairs: Vec<((HostId, HostId), Nanos)>,
}

impl Fabric {
    /// Round-trip time between two hosts: zero within a host, or the time of the pair, or that of the smallest group of
    /// hosts that has both and a time. `None` if the cluster file does not state it.
    pub fn round_trip(&self, one: HostId, other: HostId) -> Option<Nanos> {
        if one == other {
            return Some(Nanos(0));
        }
        let times = &self.round_trips;
        let pair = (one.min(other), one.max(other));
        if let Ok(at) = times.pairs.binary_search_by_key(&pair, |&(pair, _)| pair) {
            return Some(times.pairs[at].1);
        }
        let (rack, other_rack) = (self.rack_of(one), self.rack_of(other));
        let pod = self.parent(rack).filter(|&pod| self.parent(other_rack) == Some(pod));
        let of_rack = times.rack.filter(|_| rack == other_rack);
        of_rack.or_else(|| times.pod.filter(|_| pod.is_some())).or(times.network)
    }

    /// True if the cluster file states round-trip times.
    pub fn has_round_trips(&self) -> bool {
        let times = &self.round_trips;
        times.rack.or(times.pod).or(times.network).is_some() || !times.pairs.is_empty()
    }
}
