//! State of a cell for the others, and the choice of the cell that is asked to place copies.
//!
//! The least loaded cell by old numbers draws all requests until the next numbers come. To compare two cells that are
//! drawn at random nearly balances as well with fresh numbers, and much better with old ones (Mitzenmacher, "How
//! useful is old information?", IEEE Transactions on Parallel and Distributed Systems, 2000).

use leeward_fabric::{Load, Nanos};
use leeward_registry::splitmix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Links from the core into a cell, at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    /// Time at which the cell read its ledger.
    pub at: Nanos,
    /// Link from the core into each pod, in order.
    pub pods: Vec<PodRoom>,
}

/// Link from the core into a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRoom {
    /// Capacity, in bit/s.
    pub capacity: Load,
    /// Capacity left for best-effort work, in bit/s. It counts work that telemetry does not show yet.
    pub left: Load,
}

impl Digest {
    /// Share of capacity left into the emptiest pod, from 0 to 1.
    pub fn room(&self) -> f64 {
        let share = |pod: &PodRoom| pod.left.0 as f64 / (pod.capacity.0.max(1)) as f64;
        self.pods.iter().map(share).fold(0.0, f64::max)
    }
}

/// Choice among the cells that may take copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The cell with the most room.
    Best,
    /// The one with more room of two cells that are drawn at random.
    #[default]
    Two,
    /// A cell drawn at random.
    Random,
}

/// Digests that a cell has of the others.
#[derive(Clone, Debug)]
pub struct Directory {
    /// By cell; `None` for the cell itself, and for a cell that was never heard of.
    digests: Vec<Option<Digest>>,
    /// Time for which a digest counts.
    known_for: Nanos,
}

impl Directory {
    /// A directory without digests. A digest counts for `known_for`.
    pub fn new(cells: u32, known_for: Nanos) -> Directory {
        Directory { digests: vec![None; cells as usize], known_for }
    }

    /// Takes in the digest of a cell. One that is older than the last is ignored.
    pub fn update(&mut self, cell: u32, digest: &Digest) {
        let known = &mut self.digests[cell as usize];
        if known.as_ref().is_none_or(|known| known.at <= digest.at) {
            *known = Some(digest.clone());
        }
    }

    /// Room of a cell by its last digest; `None` if that is too old, or if there is none.
    pub fn room(&self, cell: u32, now: Nanos) -> Option<f64> {
        let digest = self.digests[cell as usize].as_ref()?;
        (now.since(digest.at) <= self.known_for).then(|| digest.room())
    }

    /// Chooses a known cell for the copies of a request, but none of `except`. Returns it with its room; `None` if no
    /// cell is left. A hash of the request and the cell draws, and breaks ties.
    pub fn choose(&self, choice: Choice, request: u64, except: &[u32], now: Nanos) -> Option<(u32, f64)> {
        let hash = |cell: u32| splitmix(splitmix(request) ^ u64::from(cell));
        let cells = (0..self.digests.len() as u32).filter(|cell| !except.contains(cell));
        let mut known: Vec<(u32, f64)> =
            cells.filter_map(|cell| Some((cell, self.room(cell, now)?))).collect();
        let drawn = match choice {
            Choice::Best => known.len(),
            Choice::Two => 2,
            Choice::Random => 1,
        };
        if drawn < known.len() {
            known.sort_unstable_by_key(|&(cell, _)| hash(cell));
            known.truncate(drawn);
        }
        let better = |a: &(u32, f64), b: &(u32, f64)| a.1.total_cmp(&b.1).then(hash(a.0).cmp(&hash(b.0)));
        known.into_iter().max_by(better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(at: u64, left: i64) -> Digest {
        let pod = |left| PodRoom { capacity: Load(100), left: Load(left) };
        Digest { at: Nanos(at), pods: vec![pod(left / 2), pod(left)] }
    }

    fn directory(lefts: &[i64]) -> Directory {
        let mut directory = Directory::new(lefts.len() as u32, Nanos(10));
        (0..).zip(lefts).for_each(|(cell, &left)| directory.update(cell, &digest(5, left)));
        directory
    }

    #[test]
    fn the_newest_digest_counts_until_it_is_too_old() {
        let mut directory = directory(&[40, 60]);
        directory.update(1, &digest(4, 90));
        assert_eq!(directory.room(1, Nanos(15)), Some(0.6));
        directory.update(1, &digest(6, 90));
        assert_eq!(directory.room(1, Nanos(15)), Some(0.9));
        assert_eq!(directory.room(0, Nanos(16)), None);
        assert_eq!(directory.choose(Choice::Best, 1, &[], Nanos(16)), Some((1, 0.9)));
        assert_eq!(directory.choose(Choice::Best, 1, &[1], Nanos(16)), None);
    }

    #[test]
    fn more_draws_find_more_room() {
        let directory = directory(&[10, 20, 30, 40, 50, 60, 70, 80]);
        let mean = |choice| {
            let room =
                |request| directory.choose(choice, request, &[], Nanos(5)).map_or(0.0, |found| found.1);
            (0..4000).map(room).sum::<f64>() / 4000.0
        };
        assert_eq!(mean(Choice::Best), 0.8);
        // The mean of one draw is 0.45, and of the better of two distinct draws 0.60; standard deviations are 0.004.
        assert!((mean(Choice::Random) - 0.45).abs() < 0.02, "{}", mean(Choice::Random));
        assert!((mean(Choice::Two) - 0.60).abs() < 0.02, "{}", mean(Choice::Two));
    }

    #[test]
    fn equal_cells_are_chosen_equally_often() {
        let directory = directory(&[50; 5]);
        for choice in [Choice::Best, Choice::Two, Choice::Random] {
            let mut counts = [0_u32; 5];
            for request in 0..10_000 {
                counts[directory.choose(choice, request, &[], Nanos(5)).expect("a known cell").0 as usize] +=
                    1;
            }
            // The standard deviation of a count is 40.
            assert!(counts.iter().all(|count| count.abs_diff(2000) < 200), "{choice:?}: {counts:?}");
        }
    }
}
