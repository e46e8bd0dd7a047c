//! Links of hosts to their racks: a frame enters the switch when its last bit has left the host, as in the simulator.
//!
//! The token bucket of `tc` at a host bounds what the host sends, but passes a frame at the beginning of the time that the
//! frame takes on the link. Round trips of a lab without these links would be shorter than those of its scenario.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use leeward_circuits::link::{Link, Pace};
use leeward_fabric::Bandwidth;

/// Frames that a host has on its link at once, for which room is made in advance.
const ROOM: usize = 16;

/// Links of hosts, by number of the host.
#[derive(Debug)]
pub(super) struct HostLinks<T> {
    links: Vec<Link>,
    /// Frames on the link of each host, in the order in which they leave.
    leaving: Vec<VecDeque<T>>,
    /// Time at which each frame leaves, and its host.
    order: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<T> HostLinks<T> {
    /// Creates idle links of one rate.
    pub(super) fn new(hosts: usize, rate: Bandwidth) -> HostLinks<T> {
        HostLinks {
            links: vec![Link::new(Pace::of(rate)); hosts],
            leaving: (0..hosts).map(|_| VecDeque::with_capacity(ROOM)).collect(),
            order: BinaryHeap::with_capacity(ROOM * hosts),
        }
    }

    /// Puts a frame on the link of its host, behind those that are there.
    pub(super) fn push(&mut self, host: usize, now: u64, bytes: u32, frame: T) {
        let start = now.max(self.links[host].free_at());
        self.links[host] = self.links[host].after(start, bytes);
        self.leaving[host].push_back(frame);
        self.order.push(Reverse((self.links[host].free_at(), host as u32)));
    }

    /// Time at which the next frame has left; `None` without a frame.
    pub(super) fn next(&self) -> Option<u64> {
        self.order.peek().map(|&Reverse((at, _))| at)
    }

    /// Takes the next frame that has left at `now` or earlier, with its host and the time at which it left.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, usize, T)> {
        let &Reverse((at, host)) = self.order.peek().filter(|&&Reverse((at, _))| at <= now)?;
        self.order.pop();
        let host = host as usize;
        self.leaving[host].pop_front().map(|frame| (at, host, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_one_after_another_and_hosts_do_not_wait_for_each_other() {
        // 9,000 bytes take 7.2 us at 10 Gb/s.
        let mut links = HostLinks::new(2, Bandwidth(10_000_000_000));
        links.push(0, 100, 9_000, 'a');
        links.push(0, 100, 9_000, 'b');
        links.push(1, 1_000, 9_000, 'c');
        links.push(0, 20_000, 9_000, 'd');
        assert_eq!(links.next(), Some(7_300));
        assert_eq!(links.pop(7_299), None);
        let order: Vec<_> = std::iter::from_fn(|| links.pop(u64::MAX)).collect();
        assert_eq!(order, [(7_300, 0, 'a'), (8_200, 1, 'c'), (14_500, 0, 'b'), (27_200, 0, 'd')]);
        assert_eq!(links.next(), None);
    }
}
