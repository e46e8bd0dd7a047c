//! Tournament tree over a fixed set of alarms, which finds the earliest alarm quickly. The time to set an alarm is
//! proportional to the height of the tree, and setting it allocates nothing. Among alarms at the same time, the lowest
//! number is first.
//!
//! Hand-written: alarms change all the time, and the binary heap of the standard library cannot change a key in place.

/// Time of an alarm that is not set.
pub const NEVER: u64 = u64::MAX;

/// A fixed set of alarms, numbered from 0.
#[derive(Clone, Debug)]
pub struct Timers {
    /// Earliest time below each node; node 1 is the root, and the second half holds the alarms themselves.
    earliest: Vec<u64>,
    leaves: usize,
}

impl Timers {
    /// Creates `alarms` alarms, none of them set.
    pub fn new(alarms: usize) -> Timers {
        let leaves = alarms.max(2).next_power_of_two();
        Timers { earliest: vec![NEVER; 2 * leaves], leaves }
    }

    /// Time of the earliest alarm; [`NEVER`] if none is set.
    #[inline]
    pub fn earliest(&self) -> u64 {
        self.earliest[1]
    }

    /// Number of the earliest alarm; the lowest number among the alarms at [`Timers::earliest`].
    #[inline]
    pub fn first(&self) -> usize {
        let at = self.earliest[1];
        let mut node = 1;
        while node < self.leaves {
            node = 2 * node + usize::from(self.earliest[2 * node] != at);
        }
        node - self.leaves
    }

    /// Time of an alarm.
    #[inline]
    pub fn get(&self, alarm: usize) -> u64 {
        self.earliest[self.leaves + alarm]
    }

    /// Sets an alarm to `at` in place of its previous time.
    #[inline]
    pub fn set(&mut self, alarm: usize, at: u64) {
        let mut node = self.leaves + alarm;
        if self.earliest[node] == at {
            return;
        }
        self.earliest[node] = at;
        while node > 1 {
            let earliest = self.earliest[node].min(self.earliest[node ^ 1]);
            node /= 2;
            if self.earliest[node] == earliest {
                return;
            }
            self.earliest[node] = earliest;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_alarm_is_the_earliest_with_the_lowest_number(
            alarms in 1_usize..40,
            sets in prop::collection::vec((0_usize..40, prop_oneof![0_u64..20, Just(NEVER)]), 1..200),
        ) {
            let mut timers = Timers::new(alarms);
            let mut plain = vec![NEVER; alarms];
            for (alarm, at) in sets {
                timers.set(alarm % alarms, at);
                plain[alarm % alarms] = at;
                let earliest = *plain.iter().min().expect("at least one alarm");
                prop_assert_eq!(timers.earliest(), earliest);
                if earliest != NEVER {
                    prop_assert_eq!(Some(timers.first()), plain.iter().position(|&at| at == earliest));
                }
            }
        }
    }
}
