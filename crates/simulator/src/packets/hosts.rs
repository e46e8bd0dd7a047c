//! Hosts' NICs: a queue and a link each, and a token bucket where what a host sends is limited.

use std::collections::VecDeque;

use leeward_circuits::link::{Link, Pace};
use leeward_circuits::switch::Packet;
use leeward_fabric::Bandwidth;

use super::settings::Limit;
use super::tcp::{Ack, Segment};

/// What a packet carries: a flow's bytes, or the answer to them; or it is one of a train, by its number in that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    Data { flow: u32, segment: Segment },
    Ack { flow: u32, ack: Ack },
    Train { train: u32, packet: u32 },
}

/// What a host is about to send. The packet at the head is on the link.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    link: Link,
    limiter: Option<Limiter>,
    queue: VecDeque<Packet<Carried>>,
}

/// A token bucket at work, as a link that would carry the same at the limit's rate: when that is free, the bucket is full.
#[derive(Clone, Copy, Debug)]
struct Limiter {
    pace: Pace,
    full: Link,
    bucket: u64,
}

impl Limiter {
    /// When a packet may begin that is at the head at `now`, and whose bytes are then out of the bucket. One that is larger than the
    /// bucket waits until that is full.
    fn take(&mut self, now: u64, bytes: u32) -> u64 {
        let rest = u32::try_from(self.bucket.saturating_sub(u64::from(bytes))).unwrap_or(u32::MAX);
        let fills = Link::new(self.pace).after(0, rest).free_at();
        let begin = now.max(self.full.free_at().saturating_sub(fills));
        self.full = self.full.after(begin, bytes);
        begin
    }
}

impl Nic {
    pub(super) fn new(rate: Bandwidth) -> Nic {
        Nic { link: Link::new(Pace::of(rate)), limiter: None, queue: VecDeque::new() }
    }

    /// Limits what it sends from now on.
    pub(super) fn limit(&mut self, limit: &Limit) {
        let pace = Pace::of(limit.rate);
        self.limiter = Some(Limiter { pace, full: Link::new(pace), bucket: limit.bucket });
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
        Some(self.start(begin, packet.bytes))
    }

    /// The packet that has left at `now`, and when the next one will have.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<(Packet<Carried>, Option<u64>)> {
        let packet = self.queue.pop_front()?;
        let next = self.queue.front().map(|next| next.bytes).map(|bytes| self.start(now, bytes));
        Some((packet, next))
    }

    /// Begins to send a packet as soon as it may, from `now` on; returns when it has left.
    #[inline]
    fn start(&mut self, now: u64, bytes: u32) -> u64 {
        let begin = self.limiter.as_mut().map_or(now, |limiter| limiter.take(now, bytes));
        self.link = self.link.after(begin, bytes);
        self.link.free_at()
    }
}
