//! Hosts' NICs: each has a queue and a link, and a token bucket if the host has a rate limit.

use std::collections::VecDeque;

use leeward_circuits::link::{Link, Pace};
use leeward_circuits::switch::Packet;
use leeward_fabric::Bandwidth;
use leeward_tcp::{Ack, Segment};

use super::settings::Limit;

/// Payload of a packet: bytes of a flow, an acknowledgement of them, or the number of the packet in its train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Payload {
    Data { flow: u32, segment: Segment },
    Ack { flow: u32, ack: Ack },
    Train { train: u32, packet: u32 },
}

/// Packets that a host sends. The packet at the head is on the link.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    link: Link,
    limiter: Option<Limiter>,
    queue: VecDeque<Packet<Payload>>,
}

/// An active token bucket, modeled as a link that carries the same traffic at the limit's rate: when this
/// link is free, the bucket is full.
#[derive(Clone, Copy, Debug)]
struct Limiter {
    pace: Pace,
    full: Link,
    bucket: u64,
}

impl Limiter {
    /// Returns the time at which the packet at the head may start, and takes its bytes from the bucket. A packet larger
    /// than the bucket waits until the bucket is full.
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

    /// Limits the rate of the host from now on.
    pub(super) fn limit(&mut self, limit: &Limit) {
        let pace = Pace::of(limit.rate);
        self.limiter = Some(Limiter { pace, full: Link::new(pace), bucket: limit.bucket });
    }

    /// Returns true if nothing is on the link.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a packet. On an idle link, the packet starts at `begin`, and the method returns the time at which the
    /// packet has left.
    #[inline]
    pub(super) fn push(&mut self, packet: Packet<Payload>, begin: u64) -> Option<u64> {
        self.queue.push_back(packet);
        if self.queue.len() > 1 {
            return None;
        }
        Some(self.start(begin, packet.bytes))
    }

    /// Returns the packet that has left at `now`, and the time at which the next packet will have left.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<(Packet<Payload>, Option<u64>)> {
        let packet = self.queue.pop_front()?;
        let next = self.queue.front().map(|next| next.bytes).map(|bytes| self.start(now, bytes));
        Some((packet, next))
    }

    /// Starts to send a packet when the limit allows it, from `now` on. Returns the time at which the packet has left.
    #[inline]
    fn start(&mut self, now: u64, bytes: u32) -> u64 {
        let begin = self.limiter.as_mut().map_or(now, |limiter| limiter.take(now, bytes));
        self.link = self.link.after(begin, bytes);
        self.link.free_at()
    }
}
