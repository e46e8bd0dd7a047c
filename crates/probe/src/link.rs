//! Simulated link to test trains without a network: a token bucket with a queue before it, like `tc tbf`.
//!
//! Packets leave in order, each when the bucket holds enough bytes for it. A packet that finds the queue full is lost.

use std::collections::VecDeque;

use crate::collect::{Collector, TrainReport};
use crate::estimate::SendStatistics;
use crate::train::Train;
use crate::wire::Head;

/// Bytes of Ethernet, IP and UDP headers around a packet's payload.
pub const HEADER_BYTES: u64 = 42;

/// Parameters of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Rate in bits per second; positive.
    pub rate_bps: f64,
    /// Size of the bucket in bytes; at least one packet.
    pub bucket_bytes: f64,
    /// Size of the queue in bytes.
    pub queue_bytes: u64,
}

/// State of a link.
pub struct Shaper {
    link: Link,
    /// Bytes in the bucket when the last packet left.
    tokens: f64,
    /// Time at which the last packet left, in nanoseconds.
    left_ns: f64,
    /// Departure time and bytes of each waiting packet.
    waiting: VecDeque<(f64, u64)>,
    waiting_bytes: u64,
}

impl Shaper {
    /// Creates a link with a full bucket and an empty queue.
    pub fn new(link: Link) -> Shaper {
        let (waiting, waiting_bytes) = (VecDeque::new(), 0);
        Shaper { link, tokens: link.bucket_bytes, left_ns: 0.0, waiting, waiting_bytes }
    }

    /// Returns the departure time of a packet that arrives at `at_ns`; `None` if it is lost. Calls must be in order of
    /// arrival.
    pub fn packet(&mut self, at_ns: u64, bytes: u64) -> Option<u64> {
        let now = at_ns as f64;
        while let Some(&(leaves, waited)) = self.waiting.front().filter(|(leaves, _)| *leaves <= now) {
            debug_assert!(leaves <= now);
            self.waiting_bytes -= waited;
            self.waiting.pop_front();
        }
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > self.link.queue_bytes {
            return None;
        }
        let from = now.max(self.left_ns);
        let per_ns = self.link.rate_bps / 8e9;
        let held = (self.tokens + (from - self.left_ns) * per_ns).min(self.link.bucket_bytes);
        let leaves = from + (bytes as f64 - held).max(0.0) / per_ns;
        self.tokens = (held - bytes as f64).max(0.0);
        self.left_ns = leaves;
        self.waiting.push_back((leaves, bytes));
        self.waiting_bytes += bytes;
        Some(leaves.round() as u64)
    }
}

/// Sends a train at the rate `line_bps` over a link and returns the receiver's report. `arrives` returns false for a
/// packet, by burst and number, that is lost behind the link.
pub fn send(
    train: &Train,
    line_bps: f64,
    link: Link,
    mut arrives: impl FnMut(u32, u32) -> bool,
) -> (SendStatistics, TrainReport) {
    const SESSION: u64 = 1;
    let bytes = u64::from(train.bytes) + HEADER_BYTES;
    let apart = bytes as f64 * 8e9 / line_bps;
    let mut shaper = Shaper::new(link);
    let mut collector = Collector::new(SESSION, *train);
    let mut now = 0.0;
    for burst in 0..train.bursts {
        for number in 0..train.packets {
            let leaves = shaper.packet(now as u64, bytes);
            if let Some(at) = leaves.filter(|_| arrives(burst, number)) {
                collector.packet(Some(Head { session: SESSION, burst, number }), train.bytes as usize, at);
            }
            now += apart;
        }
        now += train.gap_ns as f64;
    }
    let busy_ns = (train.total_packets() as f64 * apart) as u64;
    (SendStatistics { packets: train.total_packets(), busy_ns, waited_ns: 0 }, collector.finish(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn departures_conform_to_rate_and_bucket_in_order(
            gaps in prop::collection::vec(0..200_000_u64, 1..200),
            rate_bps in 1e6..1e10,
            bucket in 1500..100_000_u64,
            queue_bytes in 0..200_000_u64,
        ) {
            let mut shaper = Shaper::new(Link { rate_bps, bucket_bytes: bucket as f64, queue_bytes });
            let (mut at, mut sent, mut before) = (0, 0, 0);
            for gap in gaps {
                at += gap;
                let Some(leaves) = shaper.packet(at, 1500) else { continue };
                sent += 1500;
                prop_assert!(leaves >= at && leaves >= before);
                before = leaves;
                let allowed = bucket as f64 + (leaves as f64 + 1.0) * rate_bps / 8e9;
                prop_assert!(sent as f64 <= allowed * (1.0 + 1e-9), "{sent} > {allowed}");
            }
        }
    }
}
