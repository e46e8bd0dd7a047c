//! Proof of a linear program's solution, computed from the program alone with twice the precision of the solver.
//!
//! Any prices y of the rows prove a lower bound on the objective: the cost of x is y A x + (c - y A) x, each term at
//! least its minimum within the bounds of its row or variable (Neumaier, Shcherbina: "Safe bounds in linear and
//! mixed-integer linear programming", Mathematical Programming 99, 2004). If all variables have finite bounds, nothing is
//! assumed. A variable without a bound, whose reduced cost is not exactly 0 because of rounding, counts within a range:
//! the largest value of the solution, times [`RANGE`], times the ratio of the program's coefficients.

use crate::extended::Sum;
use crate::{Program, Row};

/// Range of variables without a bound, in largest values of the solution and ratios of coefficients.
const RANGE: f64 = 1e3;
/// Largest violation of a bound, as a share of the magnitude of the terms in it.
pub(crate) const VIOLATION: f64 = 1e-8;
/// Largest difference of the objective to its proven bound, as a share of the objective.
const GAP: f64 = 1e-8;

/// A solution and the prices that prove it.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Values of variables.
    pub values: Vec<f64>,
    /// Prices of rows: change of the optimum with the right side.
    pub prices: Vec<f64>,
}

/// Properties of a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Certificate {
    /// Objective of the values.
    pub objective: f64,
    /// Proven lower bound on the objective.
    pub bound: f64,
    /// Magnitude of the terms of the objective and of its bound.
    pub magnitude: f64,
    /// Largest violation of a row or a variable's bounds, as a share of the magnitude of its terms.
    pub violation: f64,
    /// Largest violation of a row or a variable's bounds.
    pub excess: f64,
    /// Largest reduced cost of the wrong sign.
    pub mispriced: f64,
}

impl Certificate {
    /// True if the values satisfy the program, and the prices prove that no values are better.
    pub fn is_proof(&self) -> bool {
        let scale = self.objective.abs().max(self.bound.abs()).max(1e-3 * self.magnitude);
        self.violation <= VIOLATION && self.gap() <= GAP * scale
    }

    /// Difference of the objective to its proven bound.
    pub fn gap(&self) -> f64 {
        (self.objective - self.bound).abs()
    }

    /// Certificate of a point, in the units of a scaled program.
    pub fn of(program: &Program, point: &Point) -> Certificate {
        let largest = point.values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let floor = largest.min(1.0);
        let range = RANGE * spread(program) * if largest > 0.0 { largest } else { 1.0 };
        let (mut violation, mut excess) = (0.0f64, 0.0f64);
        let mut check = |beyond: f64, magnitude: f64| {
            if beyond > 0.0 || beyond.is_nan() {
                violation =
                    violation.max(beyond / magnitude.max(floor)).max(if beyond.is_nan() { 1.0 } else { 0.0 });
                excess = excess.max(beyond);
            }
        };
        let mut bound = Sum::default();
        for (row, &price) in program.rows.iter().zip(&point.prices) {
            let (sum, side) = (
                activity(row, &point.values),
                if price > 0.0 { row.bounds.start() } else { row.bounds.end() },
            );
            for beyond in beyond(sum, &row.bounds) {
                check(beyond.0, sum.magnitude.max(beyond.1.abs()));
            }
            // A price for a side that is absent counts nothing, and remains in the reduced costs.
            if side.is_finite() {
                bound.add(price, *side);
            }
        }
        let (mut objective, mut mispriced) = (Sum::default(), 0.0f64);
        for ((column, &value), reduced) in
            program.columns.iter().zip(&point.values).zip(reduced_costs(program, &point.prices))
        {
            objective.add(column.cost, value);
            let mut own = Sum::default();
            own.add(1.0, value);
            for beyond in beyond(own, &column.bounds) {
                check(beyond.0, value.abs().max(beyond.1.abs()));
            }
            let side = if reduced > 0.0 { *column.bounds.start() } else { *column.bounds.end() };
            if side.is_finite() {
                bound.add(reduced, side);
            } else if reduced != 0.0 {
                mispriced = mispriced.max(reduced.abs());
                bound.add(-reduced.abs(), range);
            }
        }
        let magnitude = objective.magnitude.max(bound.magnitude);
        Certificate {
            objective: objective.value(),
            bound: bound.value(),
            magnitude,
            violation,
            excess,
            mispriced,
        }
    }
}

/// Largest ratio of two coefficients.
fn spread(program: &Program) -> f64 {
    let terms = program.rows.iter().flat_map(|row| &row.terms);
    let values = terms.map(|(_, value)| value.abs()).filter(|value| *value > 0.0);
    let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(a, b), value| (a.min(value), b.max(value)));
    if most > 0.0 { most / least } else { 1.0 }
}

/// Prices without those of sides that a row does not have.
pub(crate) fn admissible(program: &Program, prices: &[f64]) -> Vec<f64> {
    let keep = |(row, &price): (&Row, &f64)| {
        let side = if price > 0.0 { row.bounds.start() } else { row.bounds.end() };
        if side.is_finite() { price } else { 0.0 }
    };
    program.rows.iter().zip(prices).map(keep).collect()
}

/// Reduced cost of each variable: its cost minus the prices of its rows.
pub(crate) fn reduced_costs(program: &Program, prices: &[f64]) -> Vec<f64> {
    let mut sums = vec![Sum::default(); program.columns.len()];
    for (sum, column) in sums.iter_mut().zip(&program.columns) {
        sum.add(1.0, column.cost);
    }
    for (row, &price) in program.rows.iter().zip(prices) {
        for &(variable, value) in row.terms.iter().filter(|_| price != 0.0) {
            sums[variable.0].add(-price, value);
        }
    }
    sums.into_iter().map(Sum::value).collect()
}

/// Value of a row.
pub(crate) fn activity(row: &Row, values: &[f64]) -> Sum {
    let mut sum = Sum::default();
    for &(variable, value) in &row.terms {
        sum.add(value, values[variable.0]);
    }
    sum
}

/// For each finite side: the amount by which a sum is beyond it, and the side.
fn beyond(sum: Sum, bounds: &std::ops::RangeInclusive<f64>) -> impl Iterator<Item = (f64, f64)> {
    let (start, end) = (*bounds.start(), *bounds.end());
    [(-sum.less(start), start), (sum.less(end), end)].into_iter().filter(|(_, side)| side.is_finite())
}
