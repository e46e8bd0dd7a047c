//! Earliest completion: a tournament over the predicted finish times.
//!
//! The times are in one flat array. Above it are the minima of its blocks of 8 (a cache line), then the minima of
//! blocks of 8 minima, and so on up to a single minimum. Most new predictions cost two comparisons, because they
//! neither become nor replace the smallest of their block. The others examine one cache line per layer. Slots are
//! reused last in, first out, so the length of the array is the largest number of predictions at any time.

const BLOCK: usize = 8;

/// The tournament. Each slot has an owner, a number that the caller interprets.
#[derive(Clone, Debug)]
pub(super) struct Completions {
    times: Vec<f64>,
    /// Minima of the blocks of times.
    blocks: Vec<f64>,
    /// Minima of the blocks of the layer below, starting with `blocks`; the last layer is the root.
    rounds: Vec<Vec<f64>>,
    owners: Vec<u32>,
    free: Vec<u32>,
}

impl Default for Completions {
    fn default() -> Completions {
        Completions {
            times: vec![f64::INFINITY; BLOCK],
            blocks: vec![f64::INFINITY; BLOCK],
            rounds: vec![vec![f64::INFINITY]],
            owners: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl Completions {
    /// Allocates a slot for the predictions of `owner`, initially infinite.
    pub fn claim(&mut self, owner: u32) -> u32 {
        if let Some(place) = self.free.pop() {
            self.owners[place as usize] = owner;
            return place;
        }
        let place = self.owners.len();
        self.owners.push(owner);
        if self.times.len() == place {
            self.grow();
        }
        place as u32
    }

    /// Frees a slot.
    pub fn release(&mut self, place: u32) {
        self.set(place, f64::INFINITY);
        self.free.push(place);
    }

    /// Sets the prediction of a slot.
    #[inline]
    pub fn set(&mut self, place: u32, time: f64) {
        let index = place as usize;
        let old = std::mem::replace(&mut self.times[index], time);
        let least = self.blocks[index / BLOCK];
        if (time <= least) | (old <= least) {
            self.climb(index / BLOCK);
        }
    }

    /// Updates the minima after a change of the least time of a block.
    #[inline(never)]
    fn climb(&mut self, mut index: usize) {
        let mut time = least_of(&self.times, index);
        let mut old = std::mem::replace(&mut self.blocks[index], time);
        for round in 0..self.rounds.len() {
            let (below, above) = self.rounds.split_at_mut(round);
            index /= BLOCK;
            let least = &mut above[0][index];
            if time > *least {
                if old > *least {
                    return;
                }
                time = least_of(below.last().unwrap_or(&self.blocks), index);
            }
            if time == *least {
                return;
            }
            old = std::mem::replace(least, time);
        }
    }

    /// Returns the earliest prediction; infinity if there is none.
    pub fn earliest(&self) -> f64 {
        self.rounds[self.rounds.len() - 1][0]
    }

    /// Appends the owner of every prediction not after `time`, in the order of their slots.
    pub fn due(&self, time: f64, owners: &mut Vec<u32>) {
        if self.earliest() <= time {
            self.descend(self.rounds.len(), 0, time, owners);
        }
    }

    /// Searches one block; `depth` counts upwards from the blocks of times, 0.
    fn descend(&self, depth: usize, index: usize, time: f64, owners: &mut Vec<u32>) {
        let first = index * BLOCK;
        let below = match depth {
            0 => &self.times,
            1 => &self.blocks,
            _ => &self.rounds[depth - 2],
        };
        for (child, &least) in (first..).zip(&below[first..first + BLOCK]) {
            if least <= time {
                match depth {
                    0 => owners.push(self.owners[child]),
                    _ => self.descend(depth - 1, child, time, owners),
                }
            }
        }
    }

    /// Doubles the number of times that can be stored.
    fn grow(&mut self) {
        let mut length = 2 * self.times.len();
        self.times.resize(length, f64::INFINITY);
        length = length.div_ceil(BLOCK);
        self.blocks.resize(length.next_multiple_of(BLOCK), f64::INFINITY);
        for round in 0.. {
            length = length.div_ceil(BLOCK);
            if round == self.rounds.len() {
                let least = least_of(self.rounds.last().unwrap_or(&self.blocks), 0);
                self.rounds.push(vec![least]);
            }
            if length == 1 {
                return;
            }
            self.rounds[round].resize(length.next_multiple_of(BLOCK), f64::INFINITY);
        }
    }
}

/// Returns the least time of one block, by two independent chains of comparisons.
fn least_of(times: &[f64], block: usize) -> f64 {
    let (mut one, mut two) = (f64::INFINITY, f64::INFINITY);
    for pair in times[block * BLOCK..(block + 1) * BLOCK].chunks_exact(2) {
        one = if pair[0] < one { pair[0] } else { one };
        two = if pair[1] < two { pair[1] } else { two };
    }
    if one < two { one } else { two }
}
