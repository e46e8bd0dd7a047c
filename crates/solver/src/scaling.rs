//! Units in which the numbers of a program have similar magnitudes.
//!
//! Coefficients, right sides and costs are one matrix, whose rows and columns are divided by geometric means of their
//! entries until these are near 1 (Fulkerson, Wolfe: "An algorithm for scaling matrices", SIAM Review 4, 1962; Curtis,
//! Reid, 1972). All factors are powers of two, so the program in these units is the given program without rounding.

use crate::{Column, Program, Row, Variable};

/// Most passes over rows and columns. They end when no factor changes by more than [`STEP`], a binary logarithm.
const PASSES: usize = 200;
const STEP: f64 = 0.05;
/// Largest exponent of a factor.
const MOST: f64 = 400.0;

/// Factors of a program's columns, and its right sides.
#[derive(Debug)]
pub(crate) struct Scaling {
    /// Value of each variable that counts as 1.
    units: Vec<f64>,
    /// Factors of the rows, of the costs, and of the right sides.
    rows: Vec<f64>,
    cost: f64,
    right: f64,
}

/// An entry of the matrix: row, column, and binary logarithm of its magnitude.
type Entry = (usize, usize, f64);

impl Scaling {
    /// The program in units that suit its numbers, and these units.
    pub fn of(program: &Program) -> (Program, Scaling) {
        let (count, rows) = (program.columns.len(), program.rows.len());
        let entries = entries(program);
        // Index `count` is the column of right sides; index `rows` is the row of costs.
        let mut column = vec![0.0; count + 1];
        let mut row = vec![0.0; rows + 1 + count];
        for _ in 0..PASSES {
            let rows = balance(&mut row, &column, entries.iter().copied());
            let columns =
                balance(&mut column, &row, entries.iter().map(|&(other, at, log)| (at, other, log)));
            if rows.max(columns) < STEP {
                break;
            }
        }
        let factor = |log: f64| log.clamp(-MOST, MOST).round().exp2();
        let right = factor(column[count]);
        let of_column: Vec<f64> = column[..count].iter().map(|&log| factor(log)).collect();
        let cost = factor(row[rows]);
        let columns = program.columns.iter().zip(&of_column).map(|(column, factor)| Column {
            cost: column.cost * cost * factor,
            bounds: column.bounds.start() * right / factor..=column.bounds.end() * right / factor,
            integer: column.integer,
        });
        let of_row: Vec<f64> = row[..rows].iter().map(|&log| factor(log)).collect();
        let scaled_rows = program.rows.iter().zip(&of_row).map(|(given, by)| {
            let term = |&(variable, value): &(Variable, f64)| (variable, value * of_column[variable.0] * by);
            let bounds = given.bounds.start() * right * by..=given.bounds.end() * right * by;
            Row { bounds, terms: given.terms.iter().map(term).collect() }
        });
        let scaled = Program { columns: columns.collect(), rows: scaled_rows.collect() };
        let units = of_column.iter().map(|factor| factor / right).collect();
        (scaled, Scaling { units, rows: of_row, cost, right })
    }

    /// Values in the units of the given program.
    pub fn given(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(&self.units).map(|(value, unit)| value * unit).collect()
    }

    /// Prices of rows of the given program in these units.
    pub fn scaled_prices(&self, prices: &[f64]) -> Vec<f64> {
        prices.iter().zip(&self.rows).map(|(price, row)| price * self.cost / row).collect()
    }

    /// An objective in the units of the given program.
    pub fn given_objective(&self, objective: f64) -> f64 {
        objective / self.cost / self.right
    }

    /// Values of the given program in these units.
    pub fn scaled(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(&self.units).map(|(value, unit)| value / unit).collect()
    }
}

/// Entries of the rows with their right sides, of the costs, and of the bounds of columns as rows of their own.
fn entries(program: &Program) -> Vec<Entry> {
    let (count, rows) = (program.columns.len(), program.rows.len());
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |row, column, value: f64| {
        if value != 0.0 && value.is_finite() {
            entries.push((row, column, value.abs().log2()));
        }
    };
    for (at, row) in program.rows.iter().enumerate() {
        row.terms.iter().for_each(|&(variable, value)| add(at, variable.0, value));
        add(at, count, *row.bounds.start());
        if row.bounds.end() != row.bounds.start() {
            add(at, count, *row.bounds.end());
        }
    }
    for (at, column) in program.columns.iter().enumerate() {
        add(rows, at, column.cost);
        for &bound in [column.bounds.start(), column.bounds.end()] {
            if bound != 0.0 && bound.is_finite() {
                add(rows + 1 + at, at, 1.0);
                add(rows + 1 + at, count, bound);
            }
        }
    }
    entries
}

/// Sets each factor so that the geometric mean of its scaled entries is 1; returns the largest change.
fn balance(factors: &mut [f64], others: &[f64], entries: impl Iterator<Item = Entry>) -> f64 {
    let mut sums = vec![(0.0, 0u32); factors.len()];
    for (at, other, log) in entries {
        sums[at].0 += log + others[other];
        sums[at].1 += 1;
    }
    let mut most = 0.0f64;
    for (factor, (sum, count)) in factors.iter_mut().zip(sums) {
        let before = *factor;
        *factor = if count == 0 { 0.0 } else { -sum / f64::from(count) };
        most = most.max((*factor - before).abs());
    }
    most
}
