//! The largest eigenvalue of a matrix with non-negative off-diagonal entries, and its positive vector, by Noda's
//! inverse iteration. The iteration converges quadratically, even for a matrix close to diagonal, such as the matrix of
//! a slow chain in short steps. Every step bounds the eigenvalue from above and from below.
//!
//! The iteration is hand-written instead of taken from a linear algebra library. General eigenvalue solvers round to
//! either side, relative to the norm of the matrix. A latency bound needs a value that is never below the true one,
//! with a relative accuracy even for a tiny eigenvalue.

use super::error::MAX_STATES;

/// Iteration limit, never reached; each step about doubles the number of correct digits.
const MOST_ITERATIONS: usize = 64;

/// Relative accuracy at which the iteration ends. The result is an upper bound in any case.
const ENOUGH: f64 = 1e-11;

/// The eigenvalue, never below the true one except for rounding, and its right vector.
pub(super) struct Perron {
    pub(super) root: f64,
    pub(super) vector: [f64; MAX_STATES],
}

/// The largest eigenvalue of the irreducible `n` x `n` matrix `b`, in row-major order, with non-negative off-diagonal
/// entries. `guess` should be a little above the eigenvalue; such a guess saves half of the steps. Any guess changes
/// the result only by rounding.
pub(super) fn perron(n: usize, b: &[f64], guess: Option<f64>) -> Perron {
    let mut vector = [1.0; MAX_STATES];
    let (mut lower, mut upper) = (f64::INFINITY, f64::NEG_INFINITY);
    for row in b.chunks_exact(n) {
        let sum: f64 = row.iter().sum();
        lower = lower.min(sum);
        upper = upper.max(sum);
    }
    let mut shift = guess.filter(|guess| lower < *guess && *guess < upper).unwrap_or(upper);
    let mut matrix = [0.0; MAX_STATES * MAX_STATES];
    for _ in 0..MOST_ITERATIONS {
        if upper - lower <= ENOUGH * upper.abs() {
            break;
        }
        matrix[..n * n].iter_mut().zip(b).for_each(|(entry, b)| *entry = -b);
        for at in 0..n {
            matrix[at * n + at] += shift;
        }
        let Some(next) = solve(n, &mut matrix[..n * n], &vector) else {
            if shift < upper {
                // The guess was too low.
                shift = upper;
                continue;
            }
            break;
        };
        let (mut least, mut largest, mut scale) = (f64::INFINITY, 0.0f64, 0.0f64);
        for (before, next) in vector[..n].iter().zip(&next) {
            let ratio = before / next;
            least = least.min(ratio);
            largest = largest.max(ratio);
            scale = scale.max(*next);
        }
        for (entry, next) in vector[..n].iter_mut().zip(next) {
            *entry = next / scale;
        }
        // Both bounds hold for any positive vector and any shift (Collatz and Wielandt).
        lower = lower.max(shift - largest);
        let better = shift - least;
        let stuck = better >= shift;
        upper = upper.min(better);
        if stuck {
            break;
        }
        shift = upper;
    }
    Perron { root: upper, vector }
}

/// The solution of `matrix` y = `right` for a nonsingular M-matrix, which needs no pivoting. `None` if the matrix is
/// numerically singular, or if the solution is not positive.
fn solve(n: usize, matrix: &mut [f64], right: &[f64; MAX_STATES]) -> Option<[f64; MAX_STATES]> {
    let mut y = *right;
    for pivot in 0..n {
        let (above, below) = matrix.split_at_mut((pivot + 1) * n);
        let own = &above[pivot * n + pivot..];
        let diagonal = own[0];
        if !(diagonal > 0.0 && diagonal.is_finite()) {
            return None;
        }
        let from = y[pivot];
        for (row, y) in below.chunks_exact_mut(n).zip(&mut y[pivot + 1..]) {
            let factor = row[pivot] / diagonal;
            if factor == 0.0 {
                continue;
            }
            row[pivot + 1..].iter_mut().zip(&own[1..]).for_each(|(entry, own)| *entry -= factor * own);
            *y -= factor * from;
        }
    }
    for row in (0..n).rev() {
        let entries = &matrix[row * n + row..(row + 1) * n];
        let known: f64 = entries[1..].iter().zip(&y[row + 1..]).map(|(entry, y)| entry * y).sum();
        y[row] = (y[row] - known) / entries[0];
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
            let result = perron(2, &[a, b, c, d], None);
            let spread: f64 = a - d;
            let root = f64::max(a, d) + 2.0 * b * c / ((spread * spread + 4.0 * b * c).sqrt() + spread.abs());
            assert!((result.root - root).abs() <= 1e-12 * root.abs(), "{} {root}", result.root);
        }
    }

    proptest! {
        #[test]
        fn the_vector_is_positive_and_an_eigenvector(
            n in 2usize..8, entries in prop::collection::vec(1e-7..1.0f64, 64),
        ) {
            let b = &entries[..n * n];
            let result = perron(n, b, None);
            for row in 0..n {
                let image: f64 = (0..n).map(|at| b[row * n + at] * result.vector[at]).sum();
                prop_assert!(result.vector[row] > 0.0);
                prop_assert!((image - result.root * result.vector[row]).abs() <= 1e-9 * result.root);
            }
        }

        #[test]
        fn an_initial_guess_changes_only_rounding(
            n in 1usize..8, entries in prop::collection::vec(1e-7..1.0f64, 64), error in -0.5..0.5f64, digits in 0i32..12,
        ) {
            let b = &entries[..n * n];
            let cold = perron(n, b, None);
            let warm = perron(n, b, Some(cold.root * (1.0 + error * 10f64.powi(-digits))));
            prop_assert!((warm.root - cold.root).abs() <= 1e-10 * cold.root, "{} {}", warm.root, cold.root);
            for at in 0..n {
                prop_assert!((warm.vector[at] - cold.vector[at]).abs() <= 1e-7, "{:?} {:?}", warm.vector, cold.vector);
            }
        }
    }
}
