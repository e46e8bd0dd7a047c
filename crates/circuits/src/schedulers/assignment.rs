//! Maximum-weight matchings by shortest augmenting paths (the Hungarian method), for any square matrix of weights.
//!
//! Hand-written: `eclipse` solves many problems of one size per schedule, so calls reuse the buffers. Ties are broken
//! by index, so that schedules are reproducible. Graph libraries guarantee neither.

use super::matcher::NONE;

/// Solver with buffers that it reuses between calls, so that a search rarely allocates.
pub(super) struct Assignment {
    racks: usize,
    /// Dual potentials of rows and of columns: the sum of a row's and a column's potential is at least their weight.
    row_potential: Vec<i64>,
    column_potential: Vec<i64>,
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    /// For each column, the smallest slack to a row in the tree, and that row.
    slack: Vec<i64>,
    from: Vec<u32>,
    /// Columns outside the tree.
    outside: Vec<u32>,
}

impl Assignment {
    pub(super) fn new(racks: usize) -> Assignment {
        Assignment {
            racks,
            row_potential: vec![0; racks],
            column_potential: vec![0; racks],
            row_of: vec![NONE; racks],
            column_of: vec![NONE; racks],
            slack: vec![0; racks],
            from: vec![0; racks],
            outside: Vec::with_capacity(racks),
        }
    }

    /// Finds a perfect matching of the largest sum of weights and returns the sum; [`Assignment::column_of`] then holds
    /// the matching. Weights must not be negative. Ties are broken by index.
    pub(super) fn solve(&mut self, weights: &[i64]) -> i64 {
        self.column_potential.fill(0);
        self.row_of.fill(NONE);
        self.column_of.fill(NONE);
        for (row, weights) in weights.chunks_exact(self.racks).enumerate() {
            let best = weights.iter().copied().max().unwrap_or(0);
            self.row_potential[row] = best;
            let free = |&column: &usize| weights[column] == best && self.row_of[column] == NONE;
            if let Some(column) = (0..self.racks).find(free) {
                self.row_of[column] = row as u32;
                self.column_of[row] = column as u32;
            }
        }
        for row in 0..self.racks {
            if self.column_of[row] == NONE {
                self.augment(weights, row);
            }
        }
        (0..)
            .zip(&self.column_of)
            .map(|(row, &column): (usize, _)| weights[row * self.racks + column as usize])
            .sum()
    }

    /// Column of each row.
    pub(super) fn column_of(&self) -> &[u32] {
        &self.column_of
    }

    /// Matches one more row.
    fn augment(&mut self, weights: &[i64], root: usize) {
        self.slack.fill(i64::MAX);
        self.outside.clear();
        self.outside.extend(0..self.racks as u32);
        // Total change of the potentials so far. A row of the tree has decreased, and a column of the tree has
        // increased, by the part of the change after it joined.
        let mut sunk = 0;
        let mut row = root;
        let mut joined: Vec<(u32, i64)> = Vec::with_capacity(16);
        let mut column = loop {
            let worth = self.row_potential[row] + sunk;
            let weights = &weights[row * self.racks..][..self.racks];
            let (mut least, mut at) = (i64::MAX, 0);
            for (position, &column) in self.outside.iter().enumerate() {
                let slack = worth + self.column_potential[column as usize] - weights[column as usize];
                let column_slack = &mut self.slack[column as usize];
                if slack < *column_slack {
                    *column_slack = slack;
                    self.from[column as usize] = row as u32;
                }
                let better = *column_slack < least || (*column_slack == least && column < self.outside[at]);
                if better {
                    (least, at) = (*column_slack, position);
                }
            }
            sunk = least;
            let column = self.outside.swap_remove(at);
            if self.row_of[column as usize] == NONE {
                break column;
            }
            joined.push((column, sunk));
            row = self.row_of[column as usize] as usize;
        };
        // A column that joined at `at` has changed by the difference.
        self.row_potential[root] -= sunk;
        for &(column, at) in &joined {
            self.column_potential[column as usize] += sunk - at;
            self.row_potential[self.row_of[column as usize] as usize] -= sunk - at;
        }
        loop {
            let row = self.from[column as usize];
            self.row_of[column as usize] = row;
            let before = std::mem::replace(&mut self.column_of[row as usize], column);
            if before == NONE {
                return;
            }
            column = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Largest sum over all permutations of columns, by exhaustive search.
    fn exhaustive(racks: usize, weights: &[i64], row: usize, taken: u32) -> i64 {
        let free = (0..racks).filter(|column| taken >> column & 1 == 0);
        free.map(|column| {
            weights[row * racks + column] + exhaustive(racks, weights, row + 1, taken | 1 << column)
        })
        .max()
        .unwrap_or(0)
    }

    proptest! {
        #[test]
        fn no_matching_weighs_more(racks in 1usize..7, drawn in prop::collection::vec(0i64..20, 36)) {
            let weights = &drawn[..racks * racks];
            let mut assignment = Assignment::new(racks);
            prop_assert_eq!(assignment.solve(weights), exhaustive(racks, weights, 0, 0));
            let mut columns = assignment.column_of().to_vec();
            columns.sort_unstable();
            prop_assert_eq!(columns, (0..racks as u32).collect::<Vec<_>>());
        }
    }
}
