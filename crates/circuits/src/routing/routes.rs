//! Routes that a routing computes from a schedule: for each packet, its queue and its circuits.

use leeward_registry::splitmix;

use crate::Schedule;

/// Largest number of circuits on a path, for any routing. The intermediate racks fit into the packet trace that a queue
/// stores.
pub const MOST_HOPS: u8 = 4;

/// Routes of packets under a repeating schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    racks: usize,
    days: usize,
    most_hops: u8,
    rule: Rule,
}

/// Rule that admits packets to a circuit that does not lead to their destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Admits no packets.
    Direct,
    /// Admits packets for which this circuit was drawn; from its end they take the direct circuit.
    Spread { seed: u64 },
    /// Admits packets for which the rack at the circuit's end has room. `carries` holds, by pair of racks, the bytes
    /// that the pair's circuit carries in its shortest day.
    Offered { carries: Vec<u64> },
    /// Admits packets for which the circuit is on the earliest path to the destination. `sets` holds sets of
    /// destinations as bits, by remaining circuits, day and rack.
    Planned { sets: Vec<u64>, words: usize },
}

impl Routes {
    fn new(schedule: &Schedule, most_hops: u8, rule: Rule) -> Routes {
        Routes { racks: schedule.racks(), days: schedule.days().len(), most_hops, rule }
    }

    pub(super) fn direct(schedule: &Schedule) -> Routes {
        Routes::new(schedule, 1, Rule::Direct)
    }

    pub(super) fn spread(schedule: &Schedule, seed: u64) -> Routes {
        Routes::new(schedule, 2, Rule::Spread { seed })
    }

    pub(super) fn offered(schedule: &Schedule, carries: Vec<u64>) -> Routes {
        Routes::new(schedule, 2, Rule::Offered { carries })
    }

    pub(super) fn planned(schedule: &Schedule, most_hops: u8) -> Routes {
        let words = schedule.racks().div_ceil(64);
        let sets = vec![0; usize::from(most_hops) * schedule.days().len() * schedule.racks() * words];
        Routes::new(schedule, most_hops, Rule::Planned { sets, words })
    }

    /// Admits packets at `rack` for `destination` with `left` remaining circuits to the circuit on `day`.
    pub(super) fn admit(&mut self, left: u8, day: usize, rack: usize, destination: usize) {
        let (days, racks) = (self.days, self.racks);
        if let Rule::Planned { sets, words } = &mut self.rule {
            let set = ((usize::from(left) - 1) * days + day) * racks + rack;
            sets[set * *words + destination / 64] |= 1 << (destination % 64);
        }
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// Number of days of the schedule.
    pub fn days(&self) -> usize {
        self.days
    }

    /// Largest number of circuits on a packet's path.
    pub fn most_hops(&self) -> u8 {
        self.most_hops
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Queue in which a host's packet waits at its rack; `number` counts the packets of the rack. The queue belongs to
    /// the rack at the end of the packet's first circuit, or to its destination if any circuit may be first.
    ///
    /// # Panics
    /// Panics if there is no other rack to send to.
    #[inline]
    pub fn queue(&self, source: usize, destination: usize, number: u64) -> usize {
        match self.rule {
            Rule::Spread { seed } if destination != source => draw_rack(self.racks, seed, source, number),
            _ => destination,
        }
    }

    /// Returns true if the plan admits a packet with `left` remaining circuits to its rack's circuit on `day`. The
    /// circuit does not lead to `destination`.
    #[inline]
    pub fn admits(&self, left: u8, day: usize, rack: usize, destination: usize) -> bool {
        let Rule::Planned { sets, words } = &self.rule else { return false };
        if left == 0 || left > self.most_hops {
            return false;
        }
        let set = ((usize::from(left) - 1) * self.days + day) * self.racks + rack;
        sets[set * words + destination / 64] >> (destination % 64) & 1 == 1
    }
}

/// Intermediate rack for the `number`th packet of a source. Each round visits every other rack once, in the order
/// `a + b * i` modulo the number of other racks. `a` and `b` are drawn for each round.
fn draw_rack(racks: usize, seed: u64, source: usize, number: u64) -> usize {
    let others = racks as u64 - 1;
    let (round, place) = (number / others, number % others);
    let draw = splitmix(splitmix(seed ^ splitmix(source as u64)) ^ round);
    let mut step = (draw >> 32) % others + 1;
    while greatest_common_divisor(step, others) > 1 {
        step += 1;
    }
    let ahead = (u128::from(draw as u32) + u128::from(step) * u128::from(place)) % u128::from(others);
    (source + 1 + ahead as usize) % racks
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_round_of_draws_has_each_other_rack_once(
            racks in 2_usize..200,
            seed in any::<u64>(),
            source in 0_usize..200,
            round in 0_u64..1 << 40,
        ) {
            let source = source % racks;
            let others = racks as u64 - 1;
            let mut seen: Vec<usize> =
                (0..others).map(|place| draw_rack(racks, seed, source, round * others + place)).collect();
            seen.sort_unstable();
            let expected: Vec<usize> = (0..racks).filter(|&rack| rack != source).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
