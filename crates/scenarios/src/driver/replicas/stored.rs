//! Blocks on disk, in the order of files and of their blocks. The order is the same under every policy, because it does
//! not depend on the order of writes.

/// Written blocks, found by their rank.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Blocks of each file by number; the blocks of a file are written one after another.
    files: Vec<Vec<u32>>,
    /// Numbers of blocks in ranges of files, as a binary indexed tree (Fenwick 1994).
    sums: Vec<u32>,
    count: usize,
}

impl Stored {
    /// Creates a state for `files` files without blocks.
    pub fn new(files: usize) -> Stored {
        Stored { files: vec![Vec::new(); files], sums: vec![0; files + 1], count: 0 }
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds the next block of a file.
    pub fn add(&mut self, file: u32, block: u32) {
        self.files[file as usize].push(block);
        self.count += 1;
        let mut node = file as usize + 1;
        while node < self.sums.len() {
            self.sums[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the block with `rank` blocks before it, if it exists.
    pub fn block_at(&self, rank: usize) -> Option<u32> {
        let (mut file, mut left) = (0, rank);
        let mut step = self.files.len().checked_ilog2().map_or(0, |log| 1 << log);
        while step > 0 {
            if let Some(&sum) = self.sums.get(file + step).filter(|&&sum| sum as usize <= left) {
                (file, left) = (file + step, left - sum as usize);
            }
            step /= 2;
        }
        self.files.get(file)?.get(left).copied()
    }
}

/// Ranks by Zipf's law over a growing number of elements. The element of rank r has the weight (r + 1)^-exponent.
#[derive(Debug)]
pub(super) struct Zipf {
    exponent: f64,
    /// Cumulative weights of the ranks.
    sums: Vec<f64>,
}

impl Zipf {
    /// Creates the law with an exponent. At 0, all ranks have the same weight.
    pub fn new(exponent: f64) -> Zipf {
        Zipf { exponent, sums: Vec::new() }
    }

    /// Returns the rank of a draw from 0 to 1 among `count` elements, at least one.
    pub fn rank(&mut self, count: usize, draw: f64) -> usize {
        if self.exponent == 0.0 {
            return ((draw * count as f64) as usize).min(count - 1);
        }
        let mut sum = self.sums.last().copied().unwrap_or(0.0);
        for rank in self.sums.len()..count {
            sum += ((rank + 1) as f64).powf(-self.exponent);
            self.sums.push(sum);
        }
        let target = draw * self.sums[count - 1];
        self.sums[..count].partition_point(|&sum| sum <= target).min(count - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_are_in_file_order_whatever_the_write_order(
            (files, written) in (1usize..40).prop_flat_map(|files| {
                (Just(files), prop::collection::vec(0..files as u32, 0..200))
            }),
        ) {
            let mut stored = Stored::new(files);
            let mut expected = Vec::new();
            for (block, &file) in (0..).zip(&written) {
                stored.add(file, block);
                expected.push((file, block));
            }
            // Blocks of one file have numbers in the order of their writing.
            expected.sort();
            let actual: Vec<Option<u32>> = (0..=written.len()).map(|rank| stored.block_at(rank)).collect();
            let expected: Vec<Option<u32>> =
                expected.into_iter().map(|(_, block)| Some(block)).chain([None]).collect();
            prop_assert_eq!(actual, expected);
            prop_assert_eq!(stored.count(), written.len());
        }
    }

    #[test]
    fn ranks_follow_zipfs_law_while_items_are_added() {
        for exponent in [0.0, 0.8, 1.0, 2.0] {
            let mut zipf = Zipf::new(exponent);
            for count in [1, 3, 10] {
                let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect();
                let all: f64 = weights.iter().sum();
                let draws = 100_000;
                let mut counts = vec![0; count];
                (0..draws).for_each(|i| counts[zipf.rank(count, f64::from(i) / f64::from(draws))] += 1);
                for (weight, drawn) in weights.iter().zip(counts) {
                    let share = f64::from(drawn) / f64::from(draws);
                    assert!((share - weight / all).abs() < 1e-4, "{exponent}, {count}: {share}");
                }
            }
        }
    }
}
