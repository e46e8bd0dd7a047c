//! Sets of racks as bits, with round-robin search.

/// One set of racks per owner.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    words: Vec<u64>,
    each: usize,
}

impl Sets {
    /// Creates empty sets of up to `racks` racks for `owners` owners.
    pub(super) fn new(owners: usize, racks: usize) -> Sets {
        let each = racks.div_ceil(64);
        Sets { words: vec![0; owners * each], each }
    }

    /// Adds or removes a rack.
    #[inline]
    pub(super) fn put(&mut self, owner: usize, rack: usize, is_member: bool) {
        let word = &mut self.words[owner * self.each + rack / 64];
        let bit = 1 << (rack % 64);
        if is_member { *word |= bit } else { *word &= !bit }
    }

    /// Clears all sets.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Returns true if the set contains the rack.
    #[inline]
    pub(super) fn has(&self, owner: usize, rack: usize) -> bool {
        self.words[owner * self.each + rack / 64] >> (rack % 64) & 1 == 1
    }

    /// First rack at or after `from` (wrapping around) that is in the owner's set, and not in the owner's set of
    /// `except`.
    #[inline]
    pub(super) fn next(&self, owner: usize, from: usize, except: Option<&Sets>) -> Option<usize> {
        let base = owner * self.each;
        let word = |at: usize| self.words[base + at] & !except.map_or(0, |except| except.words[base + at]);
        let (home, above) = (from / 64, u64::MAX << (from % 64));
        let lowest = |at: usize, word: u64| (word != 0).then(|| at * 64 + word.trailing_zeros() as usize);
        if let Some(rack) = lowest(home, word(home) & above) {
            return Some(rack);
        }
        for step in 1..self.each {
            let at = (home + step) % self.each;
            if let Some(rack) = lowest(at, word(at)) {
                return Some(rack);
            }
        }
        lowest(home, word(home) & !above)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_turn_passes_to_the_nearest_eligible_rack(
            racks in 1_usize..200,
            wanting in prop::collection::vec(0_usize..200, 0..20),
            barred in prop::collection::vec(0_usize..200, 0..20),
            from in 0_usize..200,
        ) {
            let (mut wants, mut bars) = (Sets::new(2, racks), Sets::new(2, racks));
            for rack in &wanting {
                wants.put(1, rack % racks, true);
            }
            for rack in &barred {
                bars.put(1, rack % racks, true);
            }
            let plain = (0..racks).map(|step| (from % racks + step) % racks).find(|&rack| wants.has(1, rack) && !bars.has(1, rack));
            prop_assert_eq!(wants.next(1, from % racks, Some(&bars)), plain);
            prop_assert_eq!(wants.next(0, from % racks, None), None);
        }
    }
}
