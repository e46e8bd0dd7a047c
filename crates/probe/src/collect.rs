//! Collects the packets of a train at the receiver: number, range and times of each burst's packets.

use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::train::Train;
use crate::wire::Head;

/// Received packets of one burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Number of distinct packets received. The other fields have no meaning if this is 0.
    pub received: u32,
    /// Lowest packet number received.
    pub lowest: u32,
    /// Highest packet number received.
    pub highest: u32,
    /// Arrival time of the first packet, in nanoseconds of the receiver's clock.
    pub first_ns: u64,
    /// Arrival time of the last packet.
    pub last_ns: u64,
    /// Number of received packets whose previous packet, by number, was received too.
    pub steps: u32,
    /// Total time between these packets and the packets before them.
    pub steps_ns: u64,
    /// Total time between the other packets and the nearest received packets with lower numbers: gaps with missing
    /// packets.
    pub jumps_ns: u64,
}

/// Received packets of a train.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainReport {
    /// One entry for each announced burst.
    pub bursts: Vec<Burst>,
    /// Number of packets received more than once.
    pub duplicates: u64,
    /// Number of packets outside the bursts of the train.
    pub strangers: u64,
    /// Number of packets that reached the receiver but overflowed its socket buffer; they were not lost on the network.
    pub overrun: u64,
}

impl TrainReport {
    /// Number of distinct packets received.
    pub fn packets(&self) -> u64 {
        self.bursts.iter().map(|burst| u64::from(burst.received)).sum()
    }

    /// Rejects a report that no receiver of this train can have produced, because a peer may send anything.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] with the violation.
    pub fn check(&self, train: &Train) -> Result<(), ProbeError> {
        if self.bursts.len() != train.bursts as usize {
            let message = format!("{} bursts reported of a train of {}", self.bursts.len(), train.bursts);
            return Err(ProbeError::Nothing(message));
        }
        for (index, burst) in self.bursts.iter().enumerate().filter(|(_, burst)| burst.received > 0) {
            let numbers = burst.lowest <= burst.highest && burst.highest < train.packets;
            let span = numbers && burst.received <= burst.highest - burst.lowest + 1;
            if !span || burst.first_ns > burst.last_ns || burst.steps >= burst.received {
                let message = format!("impossible burst {index}: {burst:?}");
                return Err(ProbeError::Nothing(message));
            }
        }
        Ok(())
    }
}

/// Time of a packet that has not arrived.
const NEVER: u64 = u64::MAX;

/// Collects the packets of a train in any order. The train must have passed [`Train::check`].
pub struct Collector {
    session: u64,
    train: Train,
    /// First arrival time of each packet.
    at_ns: Vec<u64>,
    packets: u64,
    duplicates: u64,
    strangers: u64,
}

impl Collector {
    /// Creates a collector for an announced train.
    pub fn new(session: u64, train: Train) -> Collector {
        let at_ns = vec![NEVER; train.total_packets() as usize];
        Collector { session, train, at_ns, packets: 0, duplicates: 0, strangers: 0 }
    }

    /// Records a datagram of `bytes` bytes that a socket received at `at_ns`.
    pub fn packet(&mut self, head: Option<Head>, bytes: usize, at_ns: u64) {
        let Some(head) = head.filter(|head| self.expects(head, bytes)) else {
            self.strangers += 1;
            return;
        };
        let index = head.burst as usize * self.train.packets as usize + head.number as usize;
        if self.at_ns[index] != NEVER {
            self.duplicates += 1;
            return;
        }
        self.at_ns[index] = at_ns.min(NEVER - 1);
        self.packets += 1;
    }

    fn expects(&self, head: &Head, bytes: usize) -> bool {
        head.session == self.session
            && head.burst < self.train.bursts
            && head.number < self.train.packets
            && bytes == self.train.bytes as usize
    }

    /// Returns true if every packet of the train has arrived.
    pub fn complete(&self) -> bool {
        self.packets == self.train.total_packets()
    }

    /// Returns the result; `overrun` is the number of packets that the receiver's socket dropped.
    pub fn finish(self, overrun: u64) -> TrainReport {
        let bursts = self.at_ns.chunks(self.train.packets as usize).map(burst).collect();
        TrainReport { bursts, duplicates: self.duplicates, strangers: self.strangers, overrun }
    }
}

/// Summarizes a burst from the arrival times of its packets.
fn burst(at_ns: &[u64]) -> Burst {
    let mut burst = Burst { first_ns: NEVER, ..Burst::default() };
    let mut before: Option<(u32, u64)> = None;
    for (number, &at) in (0..).zip(at_ns).filter(|&(_, &at)| at != NEVER) {
        // A packet that overtook the previous one took no time.
        let waited = before.map_or(0, |(_, then)| at.saturating_sub(then));
        match before {
            None => burst.lowest = number,
            Some((last, _)) if last + 1 == number => {
                burst.steps += 1;
                burst.steps_ns = burst.steps_ns.saturating_add(waited);
            }
            Some(_) => burst.jumps_ns = burst.jumps_ns.saturating_add(waited),
        }
        burst.received += 1;
        burst.highest = number;
        burst.first_ns = burst.first_ns.min(at);
        burst.last_ns = burst.last_ns.max(at);
        before = Some((number, at));
    }
    if burst.received == 0 { Burst::default() } else { burst }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRAIN: Train = Train { bursts: 3, packets: 70, bytes: 100, gap_ns: 0 };

    #[test]
    fn packets_of_other_trains_are_ignored() {
        let mut collector = Collector::new(5, TRAIN);
        let head = Head { session: 5, burst: 2, number: 69 };
        collector.packet(Some(head), 100, 10);
        collector.packet(Some(head), 100, 11);
        for stranger in [
            None,
            Some(Head { session: 6, ..head }),
            Some(Head { burst: 3, ..head }),
            Some(Head { number: 70, ..head }),
            Some(Head { number: u32::MAX, burst: u32::MAX, ..head }),
        ] {
            collector.packet(stranger, 100, 12);
        }
        collector.packet(Some(Head { number: 3, ..head }), 99, 12);
        let received = collector.finish(2);
        assert_eq!((received.packets(), received.duplicates, received.strangers), (1, 1, 6));
        assert_eq!(received.bursts[2].first_ns, 10);
        assert_eq!(received.check(&TRAIN), Ok(()));
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            packets in prop::collection::vec((0..4_u32, 0..80_u32, any::<u64>()), 0..200), seed: u64,
        ) {
            let take = |packets: &[(u32, u32, u64)]| {
                let mut collector = Collector::new(1, TRAIN);
                for &(burst, number, at_ns) in packets {
                    collector.packet(Some(Head { session: 1, burst, number }), 100, at_ns);
                }
                collector.finish(0)
            };
            // Only the first of several duplicates counts, so the input has none.
            let mut once = packets;
            once.sort_by_key(|&(burst, number, _)| (burst, number));
            once.dedup_by_key(|&mut (burst, number, _)| (burst, number));
            let straight = take(&once);
            once.sort_by_key(|&(burst, number, _)| u64::from(burst * 80 + number).wrapping_mul(seed | 1));
            prop_assert_eq!(&take(&once), &straight);
            prop_assert_eq!(straight.check(&TRAIN), Ok(()));
        }

        #[test]
        fn reports_of_any_content_are_checked(
            bursts in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>()), 0..5),
        ) {
            let bursts = bursts.into_iter().map(|(received, lowest, highest, first_ns, last_ns)| {
                Burst { received, lowest, highest, first_ns, last_ns, ..Burst::default() }
            });
            let received = TrainReport { bursts: bursts.collect(), duplicates: 0, strangers: 0, overrun: 0 };
            if received.check(&TRAIN).is_ok() {
                prop_assert!(received.packets() <= TRAIN.total_packets());
            }
        }
    }
}
