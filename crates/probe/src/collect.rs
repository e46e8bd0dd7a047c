//! What a receiver keeps of a train: for each burst how many packets came, which and when.

use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::train::Train;
use crate::wire::Head;

/// The packets of one burst that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// How many, each counted once. The other fields mean nothing where none came.
    pub received: u32,
    /// The lowest number that came.
    pub lowest: u32,
    /// The highest number that came.
    pub highest: u32,
    /// When the first of them came, in nanoseconds of the receiver's clock.
    pub first_ns: u64,
    /// When the last of them came.
    pub last_ns: u64,
}

/// What arrived of a train.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// One for each burst that was announced.
    pub bursts: Vec<Burst>,
    /// Packets that came more than once.
    pub duplicates: u64,
    /// Packets that belong to no burst of the train.
    pub strangers: u64,
    /// Packets that arrived, but that the receiver was too slow to take in: not lost on the network.
    pub overrun: u64,
}

impl Received {
    /// Packets that came, each counted once.
    pub fn packets(&self) -> u64 {
        self.bursts.iter().map(|burst| u64::from(burst.received)).sum()
    }

    /// Refuses what no receiver of this train can have seen; a peer may say anything.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Nothing`] with what is wrong.
    pub fn check(&self, train: &Train) -> Result<(), ProbeError> {
        if self.bursts.len() != train.bursts as usize {
            let message = format!("{} bursts reported of a train of {}", self.bursts.len(), train.bursts);
            return Err(ProbeError::Nothing(message));
        }
        for (index, burst) in self.bursts.iter().enumerate().filter(|(_, burst)| burst.received > 0) {
            let numbers = burst.lowest <= burst.highest && burst.highest < train.packets;
            let span = numbers && burst.received <= burst.highest - burst.lowest + 1;
            if !span || burst.first_ns > burst.last_ns {
                let message = format!("burst {index} cannot have been received so: {burst:?}");
                return Err(ProbeError::Nothing(message));
            }
        }
        Ok(())
    }
}

/// Takes in the packets of a train in any order. The train has passed its check.
pub struct Collector {
    session: u64,
    train: Train,
    /// A bit a packet, so that none counts twice.
    seen: Vec<u64>,
    received: Received,
}

impl Collector {
    /// One for a train that was announced.
    pub fn new(session: u64, train: Train) -> Collector {
        let bursts = vec![Burst::default(); train.bursts as usize];
        let seen = vec![0; train.total_packets().div_ceil(64) as usize];
        Collector {
            session,
            train,
            seen,
            received: Received { bursts, duplicates: 0, strangers: 0, overrun: 0 },
        }
    }

    /// Takes in what a socket received at a time, `bytes` long.
    pub fn packet(&mut self, head: Option<Head>, bytes: usize, at_ns: u64) {
        let Some(head) = head.filter(|head| self.expects(head, bytes)) else {
            self.received.strangers += 1;
            return;
        };
        let place = u64::from(head.burst) * u64::from(self.train.packets) + u64::from(head.number);
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        if self.seen[word] & bit != 0 {
            self.received.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        let burst = &mut self.received.bursts[head.burst as usize];
        if burst.received == 0 {
            let number = head.number;
            *burst = Burst { received: 1, lowest: number, highest: number, first_ns: at_ns, last_ns: at_ns };
        } else {
            burst.received += 1;
            burst.lowest = burst.lowest.min(head.number);
            burst.highest = burst.highest.max(head.number);
            burst.first_ns = burst.first_ns.min(at_ns);
            burst.last_ns = burst.last_ns.max(at_ns);
        }
    }

    fn expects(&self, head: &Head, bytes: usize) -> bool {
        head.session == self.session
            && head.burst < self.train.bursts
            && head.number < self.train.packets
            && bytes == self.train.bytes as usize
    }

    /// Whether every packet of the train has come.
    pub fn complete(&self) -> bool {
        self.received.packets() == self.train.total_packets()
    }

    /// What arrived, and how many packets the receiver could not take in.
    pub fn finish(mut self, overrun: u64) -> Received {
        self.received.overrun = overrun;
        self.received
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRAIN: Train = Train { bursts: 3, packets: 70, bytes: 100, gap_ns: 0 };

    #[test]
    fn what_belongs_to_another_train_is_left_out() {
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
            // Of duplicates the first counts, so there are none here.
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
                Burst { received, lowest, highest, first_ns, last_ns }
            });
            let received = Received { bursts: bursts.collect(), duplicates: 0, strangers: 0, overrun: 0 };
            if received.check(&TRAIN).is_ok() {
                prop_assert!(received.packets() <= TRAIN.total_packets());
            }
        }
    }
}
