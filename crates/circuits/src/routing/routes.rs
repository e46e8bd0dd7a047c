//! What a routing makes of a schedule: for each packet a queue to wait in and the circuits to take.

use crate::Schedule;

/// How many circuits a packet takes at most, whatever the routing: of so many the racks between fit in what a queue keeps of it.
pub const MOST_HOPS: u8 = 4;

/// What packets do under a schedule that repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    racks: usize,
    days: usize,
    most_hops: u8,
    rule: Rule,
}

/// Who gets on a circuit that does not lead to its destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// None.
    Direct,
    /// Whoever was drawn to wait for it; from where it leads all go directly.
    Spread { seed: u64 },
    /// Whom the rack at its end has room for: by pair of racks the bytes that the shortest day of its circuit carries.
    Offered { carries: Vec<u64> },
    /// Whom it brings there first: by circuits left, day and rack a set of destinations as bits.
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

    /// Packets at a rack for a destination that may take so many circuits more get on on that day.
    pub(super) fn put(&mut self, left: u8, day: usize, rack: usize, destination: usize) {
        let (days, racks) = (self.days, self.racks);
        if let Rule::Planned { sets, words } = &mut self.rule {
            let set = ((usize::from(left) - 1) * days + day) * racks + rack;
            sets[set * *words + destination / 64] |= 1 << (destination % 64);
        }
    }

    /// How many racks there are.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// How many days the schedule has that they are of.
    pub fn days(&self) -> usize {
        self.days
    }

    /// How many circuits a packet takes at most.
    pub fn most_hops(&self) -> u8 {
        self.most_hops
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// In which of its rack's queues a host's packet waits, the `number`th of its rack: that for the rack its first circuit leads to,
    /// or for its destination if any may come first.
    ///
    /// # Panics
    /// If the source has no rack to send to.
    #[inline]
    pub fn queue(&self, source: usize, destination: usize, number: u64) -> usize {
        match self.rule {
            Rule::Spread { seed } if destination != source => drawn(self.racks, seed, source, number),
            _ => destination,
        }
    }

    /// Whether a packet that may take so many circuits more gets on its rack's circuit on a day by plan, on its way to a
    /// destination that the circuit does not lead to.
    #[inline]
    pub fn gets_on(&self, left: u8, day: usize, rack: usize, destination: usize) -> bool {
        let Rule::Planned { sets, words } = &self.rule else { return false };
        if left == 0 || left > self.most_hops {
            return false;
        }
        let set = ((usize::from(left) - 1) * self.days + day) * self.racks + rack;
        sets[set * words + destination / 64] >> (destination % 64) & 1 == 1
    }
}

/// The rack for the `number`th packet of a source: in each round of as many as there are other racks each of them once, in an order
/// a + b i modulo their number, a and b drawn for the round.
fn drawn(racks: usize, seed: u64, source: usize, number: u64) -> usize {
    let others = racks as u64 - 1;
    let (round, place) = (number / others, number % others);
    let draw = splitmix(splitmix(seed ^ splitmix(source as u64)) ^ round);
    let mut step = (draw >> 32) % others + 1;
    while divisor(step, others) > 1 {
        step += 1;
    }
    let ahead = (u128::from(draw as u32) + u128::from(step) * u128::from(place)) % u128::from(others);
    (source + 1 + ahead as usize) % racks
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The finalizer of SplitMix64 (Steele et al., OOPSLA 2014).
fn splitmix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
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
                (0..others).map(|place| drawn(racks, seed, source, round * others + place)).collect();
            seen.sort_unstable();
            let expected: Vec<usize> = (0..racks).filter(|&rack| rack != source).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
