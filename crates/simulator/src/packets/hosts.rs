//! Hosts' NICs: a queue and a link each.

use std::collections::VecDeque;

use leeward_circuits::link::{Link, Pace};
use leeward_circuits::switch::Packet;
use leeward_fabric::Bandwidth;

use super::tcp::{Ack, Segment};

/// What a packet carries: a flow's bytes, or the answer to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    Data { flow: u32, segment: Segment },
    Ack { flow: u32, ack: Ack },
}

/// What a host is about to send. The packet at the head is on the link.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    link: Link,
    queue: VecDeque<Packet<Carried>>,
}

impl Nic {
    pub(super) fn new(rate: Bandwidth) -> Nic {
        Nic { link: Link::new(Pace::of(rate)), queue: VecDeque::new() }
    }

    /// Whether nothing is on the link.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes a packet. If the link was idle it begins at `begin`, and when it has left is returned.
    #[inline]
    pub(super) fn push(&mut self, packet: Packet<Carried>, begin: u64) -> Option<u64> {
        self.queue.push_back(packet);
        if self.queue.len() > 1 {
            return None;
        }
        self.link = self.link.after(begin, packet.bytes);
        Some(self.link.free_at())
    }

    /// The packet that has left at `now`, and when the next one will have.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<(Packet<Carried>, Option<u64>)> {
        let packet = self.queue.pop_front()?;
        let next = self.queue.front().map(|next| {
            self.link = self.link.after(now, next.bytes);
            self.link.free_at()
        });
        Some((packet, next))
    }
}
