//! Which of a fixed set of alarms is the first: a tournament among them, so that setting one costs the height of a small tree
//! and nothing is allocated. Of alarms at the same time the one of the lowest number is first.

/// An alarm that is not set.
pub(super) const NEVER: u64 = u64::MAX;

/// Alarms, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    at: Vec<u64>,
    /// The winner below each node; node 1 is the root, those of the second half are the alarms themselves.
    winners: Vec<u32>,
    leaves: usize,
}

impl Timers {
    /// So many alarms, none set.
    pub(super) fn new(alarms: usize) -> Timers {
        let leaves = alarms.max(2).next_power_of_two();
        let mut winners: Vec<u32> = (0..2 * leaves).map(|node| node.saturating_sub(leaves) as u32).collect();
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Timers { at: vec![NEVER; leaves], winners, leaves }
    }

    /// The first alarm and its time, [`NEVER`] if none is set.
    #[inline]
    pub(super) fn first(&self) -> (usize, u64) {
        let alarm = self.winners[1] as usize;
        (alarm, self.at[alarm])
    }

    /// When an alarm goes off.
    #[inline]
    pub(super) fn get(&self, alarm: usize) -> u64 {
        self.at[alarm]
    }

    /// Sets an alarm, in place of what it was set to.
    #[inline]
    pub(super) fn set(&mut self, alarm: usize, at: u64) {
        self.at[alarm] = at;
        let mut node = (self.leaves + alarm) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let winner = if self.at[right as usize] < self.at[left as usize] { right } else { left };
            // A match that another alarm won before and wins again changes nothing further up.
            if winner as usize != alarm && self.winners[node] == winner {
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_alarm_is_the_earliest_and_of_the_lowest_number(
            alarms in 1_usize..40,
            sets in prop::collection::vec((0_usize..40, prop_oneof![0_u64..20, Just(NEVER)]), 1..200),
        ) {
            let mut timers = Timers::new(alarms);
            let mut plain = vec![NEVER; alarms];
            for (alarm, at) in sets {
                timers.set(alarm % alarms, at);
                plain[alarm % alarms] = at;
                let earliest = *plain.iter().min().expect("there is one");
                let (first, when) = timers.first();
                prop_assert_eq!(when, earliest);
                if earliest != NEVER {
                    prop_assert_eq!(Some(first), plain.iter().position(|&at| at == earliest));
                }
            }
        }
    }
}
