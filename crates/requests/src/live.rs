//! Requests in progress, in one pool of reused slots.

use leeward_shaping::Ticket;
use leeward_traces::Kind;

/// Marker for no request.
pub(super) const NONE: u32 = u32::MAX;

/// Level of demoted requests, after all others.
pub(super) const DEMOTED: u32 = u32::MAX;

/// A request, or a packet of one, at its current hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) workload: u32,
    /// Index of its current hop, among the hops of all workloads.
    pub(super) hop: u32,
    /// Rank at its current queue, 0 first; [`DEMOTED`] for the rest of a stage in which it was over its limits.
    pub(super) level: u32,
    pub(super) kind: Kind,
    /// True for a packet that is not the last of its request. Such a packet occupies queues and ends with its stage.
    pub(super) is_packet: bool,
    /// True if it was over its limits at any stage.
    pub(super) was_demoted: bool,
    /// Its name at its current server.
    pub(super) ticket: Option<Ticket>,
    /// Sequence number in order of arrival, over all workloads.
    pub(super) number: u64,
    pub(super) arrived: u64,
    /// Start time of its stage.
    pub(super) since: u64,
    /// Work left at its current queue.
    pub(super) left: f64,
    pub(super) work: [f64; 3],
    pub(super) size: u64,
    pub(super) offset: Option<u64>,
    /// Nanoseconds at a device in addition to its work and the device's latency.
    pub(super) tail: u64,
    /// Nanoseconds in each stage so far.
    pub(super) spent: [u64; 3],
}

/// Pool of all requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    places: Vec<Live>,
    free: Vec<u32>,
}

impl Pool {
    #[inline]
    pub(super) fn add(&mut self, live: Live) -> u32 {
        if let Some(id) = self.free.pop() {
            self.places[id as usize] = live;
            return id;
        }
        self.places.push(live);
        (self.places.len() - 1) as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Live {
        &self.places[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Live {
        &mut self.places[id as usize]
    }
}
