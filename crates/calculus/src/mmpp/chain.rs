//! Classes of states of a chain, and its stationary distribution.

use super::error::ModelError;

/// Tolerance of the row sums of a transition matrix, and of the difference between opposite transitions of a
/// reversible chain.
const ROW_TOLERANCE: f64 = 1e-9;

/// Checks that each row is a probability distribution.
pub(super) fn check_rows(transitions: &[Vec<f64>]) -> Result<(), ModelError> {
    for (from, row) in transitions.iter().enumerate() {
        if let Some((to, &value)) = row.iter().enumerate().find(|(_, p)| !(0.0..=1.0).contains(*p)) {
            return Err(ModelError::Probability { from, to, value });
        }
        let sum: f64 = row.iter().sum();
        if (sum - 1.0).abs() > ROW_TOLERANCE {
            return Err(ModelError::Row { from, sum });
        }
    }
    Ok(())
}

/// Reachability between states, in any number of steps.
pub(super) fn reachable(n: usize, transitions: &[f64]) -> Vec<bool> {
    let mut reach: Vec<bool> =
        transitions.iter().enumerate().map(|(at, &p)| p > 0.0 || at % (n + 1) == 0).collect();
    for over in 0..n {
        for from in 0..n {
            for to in 0..n {
                reach[from * n + to] |= reach[from * n + over] && reach[over * n + to];
            }
        }
    }
    reach
}

/// Sets of states that reach one another.
pub(super) fn classes(n: usize, reach: &[bool]) -> Vec<Vec<usize>> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for state in 0..n {
        let same = |class: &&mut Vec<usize>| reach[class[0] * n + state] && reach[state * n + class[0]];
        match classes.iter_mut().find(same) {
            Some(class) => class.push(state),
            None => classes.push(vec![state]),
        }
    }
    classes
}

/// The stationary distribution within a class, by the elimination of Grassmann, Taksar and Heyman. It uses no
/// subtraction, so rare transitions keep their precision.
pub(super) fn stationary(n: usize, transitions: &[f64], class: &[usize]) -> Vec<f64> {
    let m = class.len();
    let mut p: Vec<f64> = (0..m * m).map(|at| transitions[class[at / m] * n + class[at % m]]).collect();
    for last in (1..m).rev() {
        let out: f64 = (0..last).map(|to| p[last * m + to]).sum();
        for from in 0..last {
            p[from * m + last] /= out;
            for to in 0..last {
                p[from * m + to] += p[from * m + last] * p[last * m + to];
            }
        }
    }
    let mut law = vec![1.0; m];
    for state in 1..m {
        law[state] = (0..state).map(|from| law[from] * p[from * m + state]).sum();
    }
    let total: f64 = law.iter().sum();
    law.iter_mut().for_each(|share| *share /= total);
    law
}

/// True if each transition is as frequent as its reverse, up to rounding.
pub(super) fn reversible(n: usize, transitions: &[f64], law: &[f64]) -> bool {
    let flow = |from: usize, to: usize| law[from] * transitions[from * n + to];
    let same = |(a, b): (f64, f64)| (a - b).abs() <= ROW_TOLERANCE * a.max(b);
    !law.is_empty() && (0..n).all(|from| (0..from).all(|to| same((flow(from, to), flow(to, from)))))
}

/// True if the successor of a higher state is never stochastically lower.
pub(super) fn monotone(n: usize, transitions: &[f64]) -> bool {
    let tail = |row: usize, from: usize| -> f64 { transitions[row * n + from..(row + 1) * n].iter().sum() };
    (1..n).all(|row| (1..n).all(|from| tail(row - 1, from) <= tail(row, from)))
}
