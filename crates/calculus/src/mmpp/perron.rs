//! The largest eigenvalue of a matrix with no negative entry off its diagonal, and the positive vector that goes
//! with it, by Noda's inverse iteration: it converges quadratically, also when the matrix is close to diagonal (as
//! those of slow chains in short steps are), and every step bounds the eigenvalue from above and from below.

use super::model::MAX_STATES;

/// More than the iteration ever takes; each step about doubles the number of right digits.
const MOST_ITERATIONS: usize = 64;

/// The eigenvalue, never below the true one but for rounding, and its right vector.
pub(super) struct Perron {
    pub(super) root: f64,
    pub(super) vector: [f64; MAX_STATES],
}

/// Of the irreducible `n` x `n` matrix `b`, row after row. Its off-diagonal entries are not negative.
pub(super) fn perron(n: usize, b: &[f64]) -> Perron {
    let mut vector = [1.0; MAX_STATES];
    let (mut lower, mut upper) = (f64::INFINITY, f64::NEG_INFINITY);
    for row in b.chunks_exact(n) {
        let sum: f64 = row.iter().sum();
        lower = lower.min(sum);
        upper = upper.max(sum);
    }
    let mut matrix = [0.0; MAX_STATES * MAX_STATES];
    for _ in 0..MOST_ITERATIONS {
        if upper - lower <= 2.0 * f64::EPSILON * upper.abs() {
            break;
        }
        for (at, entry) in matrix[..n * n].iter_mut().enumerate() {
            *entry = if at % (n + 1) == 0 { upper - b[at] } else { -b[at] };
        }
        let Some(next) = solve(n, &mut matrix, &vector) else { break };
        let ratios = || (0..n).map(|at| vector[at] / next[at]);
        let least = ratios().fold(f64::INFINITY, f64::min);
        let largest = ratios().fold(0.0, f64::max);
        lower = lower.max(upper - largest);
        let scale = next[..n].iter().copied().fold(0.0, f64::max);
        for at in 0..n {
            vector[at] = next[at] / scale;
        }
        let better = upper - least;
        if better >= upper {
            break;
        }
        upper = better;
    }
    Perron { root: upper, vector }
}

/// The solution of `matrix` y = `right` for a nonsingular M-matrix, which needs no pivoting; nothing if it is
/// singular to the last digit, or has a solution that is not positive.
fn solve(n: usize, matrix: &mut [f64], right: &[f64; MAX_STATES]) -> Option<[f64; MAX_STATES]> {
    let mut y = *right;
    for pivot in 0..n {
        let diagonal = matrix[pivot * n + pivot];
        if !(diagonal > 0.0 && diagonal.is_finite()) {
            return None;
        }
        for row in pivot + 1..n {
            let factor = matrix[row * n + pivot] / diagonal;
            if factor == 0.0 {
                continue;
            }
            for column in pivot + 1..n {
                matrix[row * n + column] -= factor * matrix[pivot * n + column];
            }
            y[row] -= factor * y[pivot];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row * n + column] * y[column]).sum();
        y[row] = (y[row] - known) / matrix[row * n + row];
        if !(y[row] > 0.0 && y[row].is_finite()) {
            return None;
        }
    }
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_states_agree_with_the_closed_form() {
        for (a, b, c, d) in [(0.3, 0.2, 0.1, 0.4), (-1e-6, 1e-6, 3e-7, 2e-4), (5.0, 1e-9, 1e-9, 1.0)] {
            let found = perron(2, &[a, b, c, d]);
            let spread: f64 = a - d;
            let root = f64::max(a, d) + 2.0 * b * c / ((spread * spread + 4.0 * b * c).sqrt() + spread.abs());
            assert!((found.root - root).abs() <= 1e-12 * root.abs(), "{} {root}", found.root);
        }
    }

    proptest! {
        #[test]
        fn the_vector_is_positive_and_an_eigenvector(
            n in 2usize..8, entries in prop::collection::vec(1e-7..1.0f64, 64),
        ) {
            let b = &entries[..n * n];
            let found = perron(n, b);
            for row in 0..n {
                let image: f64 = (0..n).map(|at| b[row * n + at] * found.vector[at]).sum();
                prop_assert!(found.vector[row] > 0.0);
                prop_assert!((image - found.root * found.vector[row]).abs() <= 1e-10 * found.root);
            }
        }
    }
}
